// SPDX-License-Identifier: Apache-2.0
// Makes every table sortable by its columns: numbers by value, text by locale, missing cells always last.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, index) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = Array.from(body.rows);
      rows.sort((a, b) => compare(a.cells[index], b.cells[index], down ? -1 : 1));
      body.append(...rows);
    });
  });
}

function compare(a, b, sign) {
  const missing = Number(a.hasAttribute("data-missing")) - Number(b.hasAttribute("data-missing"));
  if (missing !== 0) return missing;
  if (a.dataset.sort !== undefined && b.dataset.sort !== undefined) return sign * (Number(a.dataset.sort) - Number(b.dataset.sort));
  return sign * a.textContent.localeCompare(b.textContent, "en", { numeric: true });
}
