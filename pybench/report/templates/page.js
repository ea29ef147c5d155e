// SPDX-License-Identifier: Apache-2.0
// What the page can do besides being read: filter by factors, sort, search, and tell what is known of a number.
// The fragment of the address has the whole view: #SECTION?FACTOR=VALUE&sort=TABLE*COLUMN&find=TABLE*WORDS.
// Therefore a link shows the same view, and Back the one before. Without this script the page is whole.
"use strict";

const LONG_TABLE = 20; // rows from which a table has a search box
const MOST_ROWS = 300; // of a table at first: browsers take seconds to lay out 10,000
const TYPING_MS = 150; // without a key, before the rows are searched
const HOVER_MS = 120; // on a number, before its card shows; longer than the way across a cell

const collator = new Intl.Collator("en", { numeric: true });
const main = document.querySelector("main");
const { factors, cases } = JSON.parse(main.dataset.campaign ?? '{"factors": [], "cases": []}');
const tables = Array.from(document.querySelectorAll("figure.table"), tableOf);
const blocks = Array.from(document.querySelectorAll("div[data-cases], li[data-cases]"), partOf);
const marks = Array.from(document.querySelectorAll("svg [data-cases]"), partOf);
const pictures = Array.from(document.querySelectorAll("figure.picture")).filter((one) => !hasCases(one));
const bar = factors.length ? barOf() : null;
let view, shownHash, searched, isPrinting;

// --- the view and the address ---------------------------------------------------------------------------------------

function viewOf(hash) {
  const at = (hash + "?").indexOf("?");
  const found = { anchor: hash.slice(1, at), chosen: new Map(), sorts: new Map(), finds: new Map(), unknown: [] };
  for (const [name, value] of new URLSearchParams(hash.slice(at + 1))) {
    if (name === "sort" || name === "find") {
      const [table, rest] = [value.slice(0, value.indexOf("*")), value.slice(value.indexOf("*") + 1)];
      if (tables.some((one) => one.name === table)) found[name + "s"].set(table, rest);
      else found.unknown.push(`table ${table}`);
      continue;
    }
    const factor = factors.findIndex((one) => one.name === name);
    const place = factor < 0 ? -1 : value === "" ? null : factors[factor].values.indexOf(value);
    if (place === -1) found.unknown.push(`${name} ${value}`);
    else found.chosen.set(factor, place);
  }
  return found;
}

function hashOf({ anchor, chosen, sorts, finds }) {
  const query = new URLSearchParams();
  for (const [factor, place] of chosen) query.append(factors[factor].name, factors[factor].values[place] ?? "");
  for (const [table, column] of sorts) query.append("sort", `${table}*${column}`);
  for (const [table, words] of finds) query.append("find", `${table}*${words}`);
  return `#${anchor}?${query}`; // never empty, with which browsers scroll to the top
}

// `typed`: the table whose search box changed; all keys in it are one entry of the history.
function go(changed, { anchor = "", typed } = {}) {
  view = { ...view, unknown: [], ...changed, anchor };
  const replaces = typed && typed === searched;
  searched = typed;
  if (replaces) location.replace(hashOf(view));
  else location.hash = hashOf(view);
  shownHash = location.hash;
  show();
}

function changedMap(map, key, value) {
  const changed = new Map(map);
  changed.delete(key);
  if (value !== undefined) changed.set(key, value);
  return changed;
}

function open() {
  if (location.hash === shownHash) return;
  shownHash = location.hash;
  searched = undefined;
  view = viewOf(shownHash);
  show();
  if (view.anchor) document.getElementById(view.anchor)?.scrollIntoView();
}

// --- what is shown --------------------------------------------------------------------------------------------------

function hasCases(figure) {
  return figure.closest("[data-cases]") !== null || figure.querySelector("[data-cases]") !== null;
}

function partOf(element) {
  return { element, cases: element.getAttribute("data-cases")?.split(" ").filter(Boolean).map(Number) };
}

function show() {
  hideCard();
  const passes = cases.map((values) => Array.from(view.chosen).every(([factor, place]) => values[factor] === place));
  const isShown = (part) => !part.cases?.length || part.cases.some((one) => passes[one]);
  for (const table of tables) showTable(table, isShown);
  for (const block of blocks) block.element.hidden = !isShown(block);
  for (const mark of marks) mark.element.classList.toggle("dim", !isShown(mark));
  for (const picture of pictures) picture.classList.toggle("whole", view.chosen.size > 0);
  if (bar) showBar(passes.filter(Boolean).length);
}

function showTable(table, isShown) {
  const column = view.sorts.get(table.name) ?? "";
  if (column !== table.sorted) sort(table, column);
  const text = view.finds.get(table.name) ?? "";
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const most = table.showsAll || isPrinting ? Infinity : MOST_ROWS;
  const found = table.order.filter((row) => isShown(row) && words.every((word) => textOf(row).includes(word)));
  place(table, found.slice(0, most));
  const isCounted = words.length || (view.chosen.size && table.rows.some((row) => row.cases));
  table.count.textContent = isCounted ? `${found.length} of ${table.rows.length} rows` : "";
  if (table.more) {
    table.more.hidden = found.length <= most;
    table.more.textContent = `Show ${found.length - most} more rows`;
  }
  if (table.box && table.box.value.trim() !== text) table.box.value = text;
  placeStop(table);
}

// Other rows are taken out of the page, which then needs no time for them.
function place(table, rows) {
  if (rows.length === table.placed.length && rows.every((row, at) => row === table.placed[at])) return;
  table.placed = rows;
  const fragment = document.createDocumentFragment();
  for (const row of rows) fragment.append(row.element);
  table.body.replaceChildren(fragment);
}

function textOf(row) {
  return (row.text ??= row.element.textContent.toLowerCase());
}

function showBar(shown) {
  bar.selects.forEach((select, factor) => {
    const place = view.chosen.get(factor);
    select.value = place === undefined ? "" : place === null ? "none" : place;
    select.classList.toggle("chosen", place !== undefined);
  });
  const said = [`${shown} of ${cases.length} cases.`];
  if (view.chosen.size) said.push("Sentences are of all cases.");
  bar.status.textContent = [...said, ...view.unknown.map((one) => `Not in this campaign: ${one}.`)].join(" ");
}

// --- the bar of factors ---------------------------------------------------------------------------------------------

function made(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function barOf() {
  const selects = factors.map(({ values }, factor) => {
    const options = values.map((value, place) => made("option", { value: place }, value));
    if (cases.some((one) => one[factor] === null)) options.push(made("option", { value: "none" }, "(without)"));
    return made("select", {}, made("option", { value: "" }, "all"), ...options);
  });
  selects.forEach((select, factor) =>
    select.addEventListener("change", () => {
      const place = select.value === "" ? undefined : select.value === "none" ? null : Number(select.value);
      go({ chosen: changedMap(view.chosen, factor, place) });
    }),
  );
  const labels = factors.map(({ title }, factor) => made("label", {}, title, selects[factor]));
  const all = made("button", { type: "button" }, "Show all");
  all.addEventListener("click", () => go({ chosen: new Map(), finds: new Map() }));
  const status = made("output", {});
  const form = made("form", { className: "filter", ariaLabel: "Filter of cases" }, ...labels, all, status);
  form.addEventListener("submit", (event) => event.preventDefault());
  main.before(form);
  return { selects, all, status };
}

// --- tables ---------------------------------------------------------------------------------------------------------

function tableOf(figure) {
  const table = { name: figure.id.slice("table-".length), figure, body: figure.querySelector("tbody"), sorted: "" };
  table.rows = table.order = table.placed = Array.from(table.body.rows, partOf);
  table.heads = Array.from(figure.querySelector("thead tr").cells);
  table.heads.forEach((head, index) => {
    const button = made("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isAscending = view.sorts.get(table.name) === String(index + 1);
      go({ sorts: changedMap(view.sorts, table.name, `${isAscending ? "-" : ""}${index + 1}`) });
    });
  });
  table.count = made("span", { className: "count" });
  const caption = figure.querySelector("figcaption");
  if (table.rows.length >= LONG_TABLE) {
    const ariaLabel = `Search in ${caption.firstChild.data.trim()}`;
    table.box = made("input", { type: "search", placeholder: "Search", ariaLabel });
    table.box.addEventListener("input", () => {
      clearTimeout(table.waiting);
      table.waiting = setTimeout(() => search(table), TYPING_MS);
    });
    caption.append(table.box);
  }
  caption.append(table.count);
  if (table.rows.length > MOST_ROWS) {
    table.more = made("button", { type: "button", className: "more", hidden: true });
    table.more.addEventListener("click", () => {
      table.showsAll = true;
      show();
    });
    figure.querySelector(".scroll").after(table.more);
  }
  return table;
}

function search(table) {
  table.count.ariaLive = "polite"; // a filter changes the counts of all tables, which nobody wants to hear
  go({ finds: changedMap(view.finds, table.name, table.box.value.trim() || undefined) }, { typed: table });
}

// `column`: counted from 1, with a minus for descending; anything else is the order of the report.
function sort(table, column) {
  table.sorted = column;
  const index = Math.abs(Number(column)) - 1;
  const sign = column.startsWith("-") ? -1 : 1;
  table.heads.forEach((head) => head.removeAttribute("aria-sort"));
  table.heads[index]?.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
  table.order = table.rows;
  if (table.heads[index]) {
    const keyed = table.rows.map((row) => ({ row, ...keyOf(row.element.cells[index]) }));
    table.order = keyed.sort((a, b) => compare(a, b, sign)).map(({ row }) => row);
  }
}

function keyOf(cell) {
  const isMissing = cell.hasAttribute("data-missing") || !cell.textContent.trim();
  return { text: cell.textContent, number: Number(cell.getAttribute("data-sort") ?? NaN), isMissing };
}

// Numbers by value, text by locale, missing cells always last.
function compare(a, b, sign) {
  if (a.isMissing !== b.isMissing) return a.isMissing - b.isMissing;
  const difference = a.number - b.number;
  return sign * (Number.isNaN(difference) ? collator.compare(a.text, b.text) : difference);
}

// --- the card of a number -------------------------------------------------------------------------------------------

const card = made("div", { className: "card", id: "card", role: "tooltip", hidden: true });
let described, timer;

function knownOf(cell) {
  const row = cell.parentElement;
  const table = row.closest("table");
  const heads = Array.from(table.tHead.rows[0].cells);
  if (cell.title) {
    cell.dataset.note = cell.title; // the browser's own tooltip would cover the card
    cell.removeAttribute("title");
  }
  const cells = Array.from(row.cells);
  const firstNumber = cells.findIndex((one) => one.matches(".number"));
  const where = cells.slice(0, firstNumber < 0 ? 1 : firstNumber).filter((one) => one !== cell);
  const n = heads.findIndex((head) => head.hasAttribute("data-n"));
  return [
    made("p", { className: "where" }, where.map(plainText).join(" · ")),
    made("p", {}, made("b", {}, heads[cell.cellIndex].textContent), ` ${plainText(cell)}`),
    ...(n >= 0 && n !== cell.cellIndex ? [made("p", {}, `n = ${plainText(cells[n])}`)] : []),
    ...(cell.dataset.note ? [made("p", {}, cell.dataset.note)] : []),
    ...linksOf(row),
  ];
}

function plainText(cell) {
  return Array.from(cell.childNodes, (node) => (node.nodeName === "SUP" ? "" : node.textContent)).join("").trim();
}

function linksOf(row) {
  const numbers = row.dataset.cases?.split(" ") ?? [];
  const links = numbers.slice(0, 2).map((one) => document.querySelector(`details .runs li[data-cases="${one}"] a`));
  return links
    .filter(Boolean)
    .map(({ href, textContent }) => made("p", {}, "Runs: ", made("a", { href, tabIndex: -1 }, textContent)));
}

function showCard(cell) {
  clearTimeout(timer);
  described?.removeAttribute("aria-describedby");
  described = cell;
  card.replaceChildren(...knownOf(cell));
  card.classList.toggle("pinned", cell === document.activeElement);
  cell.setAttribute("aria-describedby", card.id);
  card.hidden = false;
  placeCard();
}

function placeCard() {
  if (!described) return;
  const place = described.getBoundingClientRect();
  const isAbove = place.bottom + card.offsetHeight > innerHeight && place.top > card.offsetHeight;
  card.style.top = `${isAbove ? place.top - card.offsetHeight : place.bottom}px`;
  card.style.left = `${Math.max(0, Math.min(place.left, document.documentElement.clientWidth - card.offsetWidth))}px`;
}

function hideCard() {
  clearTimeout(timer);
  described?.removeAttribute("aria-describedby");
  described = undefined;
  card.hidden = true;
}

function cardCell(target) {
  return target instanceof Element ? target.closest("figure.table td:is(.number, [title], [data-note])") : null;
}

// A pinned card stays: its cell has the focus.
function pointAt({ target }) {
  const cell = cardCell(target);
  clearTimeout(timer);
  if (cell === described || (described && described === document.activeElement)) return;
  timer = setTimeout(() => (cell ? showCard(cell) : hideCard()), HOVER_MS);
}

// One cell of each table is a stop of Tab; arrows go on from there, and Enter opens the runs.
function placeStop(table) {
  if (table.stop?.isConnected) return;
  const cell = table.body.querySelector("td.number");
  if (cell) moveStop(table, cell);
}

function moveStop(table, cell) {
  table.stop?.removeAttribute("tabindex");
  table.stop = cell;
  cell.tabIndex = 0;
}

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function press(event) {
  if (event.key === "Escape") return hideCard();
  if (event.key === "Enter" && event.target === described) return card.querySelector("a")?.click();
  const table = tables.find(({ stop }) => stop && stop === event.target);
  const step = STEPS[event.key];
  if (!table || !step || event.altKey || event.ctrlKey || event.metaKey) return;
  const row = table.body.rows[event.target.parentElement.sectionRowIndex + step[0]];
  const cell = row?.cells[event.target.cellIndex + step[1]];
  event.preventDefault();
  if (cell) focusOn(table, cell);
}

function focusOn(table, cell) {
  moveStop(table, cell);
  cell.focus();
}

function click(event) {
  if (!(event.target instanceof Element)) return;
  const link = event.target.closest("a");
  const cell = link ? null : cardCell(event.target);
  if (cell) focusOn(tables.find(({ body }) => body.contains(cell)), cell);
  const anchor = link?.getAttribute("href").startsWith("#") ? link.getAttribute("href").slice(1) : null;
  const isPlain = !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey);
  if (anchor === null || !isPlain || view.chosen.size + view.sorts.size + view.finds.size === 0) return;
  event.preventDefault();
  go({}, { anchor });
  document.getElementById(anchor)?.scrollIntoView();
}

// --- the beginning --------------------------------------------------------------------------------------------------

document.body.append(card);
document.addEventListener("pointerover", pointAt);
document.addEventListener("focusin", ({ target }) => cardCell(target) === target && showCard(target));
document.addEventListener("focusout", ({ relatedTarget }) => card.contains(relatedTarget) || hideCard());
document.addEventListener("keydown", press);
document.addEventListener("click", click);
addEventListener("scroll", placeCard, { capture: true, passive: true });
addEventListener("hashchange", open);
for (const event of ["beforeprint", "afterprint"]) {
  addEventListener(event, () => {
    isPrinting = event === "beforeprint";
    show();
  });
}
open();
