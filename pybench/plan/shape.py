# SPDX-License-Identifier: Apache-2.0
"""The shape of a plan: typed mappings, and the reader that makes them of a tree in which every value has its place.

Which keys a mapping may have comes from factors, criteria and protocols; `pybench.plan.schema` describes the same keys
for editors. What needs more than one key to judge (factors that do not go together, files, baselines) is not here but
in `cells`, `cases` and `comparisons`.

Everything that does not fit is a problem with its place. The rest is kept, so that it can be judged as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from pybench.case.curves import PlannedCurve
from pybench.case.factor import Factor
from pybench.case.factors import factors_of
from pybench.case.references import Reference, meaning_of, reference_names, value_problem
from pybench.case.repetitions import LOOKS, StoppingRule
from pybench.catalogue.catalogue import BUILT_IN, Catalogue
from pybench.catalogue.criteria import criteria_of, threshold_problem
from pybench.catalogue.metrics import Metric
from pybench.catalogue.protocols import PAIRED_BLOCKS, PROTOCOLS
from pybench.catalogue.validities import VALIDITIES
from pybench.document import Node, Plain
from pybench.document.keys import described
from pybench.errors import Problem
from pybench.plan.keys import (
    CRITERIA_KEYS,
    CURVE_KEYS,
    ENTRY_KEYS,
    MEANINGS,
    PLAN_KEYS,
    REFERENCE_KEYS,
    STOPPING_KEYS,
)
from pybench.plan.packages import install_hint
from pybench.plan.settings import (
    LARGEST_SEED,
    SCHEMA_VERSION,
    check_at_most,
    check_blocks,
    check_drawable,
    check_integer,
    check_name,
    check_number,
    check_repetitions,
    check_text,
    check_truth,
    check_until,
    check_version,
    check_within_s,
)
from pybench.plan.values import PSEUDO_FACTORS, Value, ValueProblem, bounds_ms, check_value, nearest, nearest_option

DATA = ("images", "corpus", "tokenizer")  # factors that `data`, where it is a mapping, is another way to write
LONG_LIST = 12  # names that a hint still enumerates

Single = Mapping[str, Value]  # factor -> its value
Lists = Mapping[str, tuple[Value, ...]]  # factor -> its values
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the matrix: a product of factors, with what is added to it and left out of it."""

    factors: Lists = field(default_factory=dict)
    data: Lists = field(default_factory=dict)
    zip: tuple[Lists, ...] = ()
    include: tuple[Single, ...] = ()
    exclude: tuple[Lists, ...] = ()
    repetitions: int | None = None
    slo_ms: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CriteriaEntry:
    """Which cases are compared with which, and the bounds on the comparison."""

    name: str | None
    baseline: Single
    where: Lists
    accept: Mapping[str, float]
    reference: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanShape:
    """A plan as it is written, every value in its canonical form."""

    name: str
    description: str | None
    seed: int
    repetitions: int | StoppingRule
    defaults: Single
    matrix: tuple[Entry, ...]
    criteria: tuple[CriteriaEntry, ...]
    require: tuple[str, ...]
    protocol: tuple[str, ...]
    curves: tuple[PlannedCurve, ...] = ()


@dataclass(frozen=True, slots=True)
class Shaped:
    """A tree read as a plan.

    plan: what fits; None where no entry can be read. It has no criteria where something does not fit, because half a
        matrix is no ground to compare on.
    damaged: numbers of the entries that lost a part or a default
    problems: what does not fit, each with its place
    """

    plan: PlanShape | None
    damaged: frozenset[int]
    problems: tuple[Problem, ...]


def read_shape(root: Node, catalogue: Catalogue = BUILT_IN) -> Shaped:
    """The plan in a tree and everything in it that does not fit. `catalogue`: the rows that a plan may name."""
    factors = factors_of(catalogue)
    reader = _Reader(catalogue, factors, {**factors, **PSEUDO_FACTORS})
    plan = reader.plan(root)
    return Shaped(plan, frozenset(reader.damaged), tuple(reader.problems))


@dataclass(slots=True)
class _Reader:
    """Reads mappings and keeps what was wrong. `settable`: the factors, and other units to write them in."""

    catalogue: Catalogue
    factors: Mapping[str, Factor]
    settable: Mapping[str, Factor]
    problems: list[Problem] = field(default_factory=list)
    damaged: set[int] = field(default_factory=set)

    def plan(self, root: Node) -> PlanShape | None:
        keys = self._mapping(root, "the plan", PLAN_KEYS, required=("schema_version", "name", "matrix"))
        if keys is None:
            return None
        self._checked(keys, "schema_version", check_version, SCHEMA_VERSION)
        name = self._checked(keys, "name", check_name, "unnamed")
        description = self._checked(keys, "description", lambda value: check_text("description", value), None)
        seed = self._checked(keys, "seed", lambda value: check_integer("seed", value, 0, LARGEST_SEED), 0)
        repetitions = self._repetitions(keys)
        before = len(self.problems)
        defaults = self._singles(keys.get("defaults"), "`defaults`", self.factors)
        are_whole = len(self.problems) == before
        matrix = self._matrix(keys.get("matrix"))
        self.damaged.update(() if are_whole else range(len(matrix)))
        criteria = tuple(self._criteria(node) for node in self._blocks(keys.get("criteria")))
        require = self._names(keys.get("require"), "require", VALIDITIES, many=True)
        protocol = self._protocol(keys.get("protocol"))
        curves = tuple(self._curve(node) for node in self._blocks(keys.get("curves")))
        if not matrix:
            return None
        return PlanShape(
            name=name,
            description=description,
            seed=seed,
            repetitions=repetitions,
            defaults=defaults,
            matrix=matrix,
            criteria=() if self.problems else tuple(each for each in criteria if each is not None),
            require=require,
            protocol=protocol,
            curves=tuple(each for each in curves if each is not None),
        )

    # --- mappings ---------------------------------------------------------------------------------------------------

    def _repetitions(self, plan: Mapping[str, Node]) -> int | StoppingRule:
        """A number, or the mapping that says when there are enough."""
        node = plan.get("repetitions")
        if node is None or node.children is None:
            return self._checked(plan, "repetitions", check_blocks, 10)
        keys = self._mapping(node, "`repetitions`", STOPPING_KEYS, required=("until", "at_most")) or {}
        self._checked(keys, "until", check_until, "")
        return StoppingRule(
            self._checked(keys, "at_most", check_at_most, LOOKS[-1]),
            self._checked(keys, "within_s", check_within_s, None),
        )

    def _entry_repetitions(self, keys: Mapping[str, Node]) -> int | None:
        node = keys.get("repetitions")
        if node is None or node.children is None:
            return self._checked(keys, "repetitions", check_repetitions, None)
        hint = "all cases stop together: write the mapping at the top level of the plan"
        self._say(node, "`repetitions` of an entry takes a number", hint)
        return None

    def _matrix(self, node: Node | None) -> tuple[Entry, ...]:
        if node is None:
            return ()
        if node.items is None:
            self._say(node, f"`matrix` takes a list; not {described(node.plain())}")
            return ()
        if not node.items:
            self._say(node, "`matrix` is an empty list", "an entry is a mapping of factors")
        entries = []
        for index, item in enumerate(node.items):
            before = len(self.problems)
            entries.append(self._entry(item))
            if len(self.problems) > before:
                self.damaged.add(index)
        return tuple(entries)

    def _entry(self, node: Node) -> Entry:
        keys = self._mapping(node, "`matrix`", (*self.settable, *ENTRY_KEYS), of_list=True)
        if keys is None:
            return Entry()
        data = {name: self.factors[name] for name in DATA}
        is_mapping = "data" in keys and keys["data"].children is not None
        return Entry(
            factors=self._lists_of(
                {name: keys[name] for name in keys if name != "data" or not is_mapping}, self.settable
            ),
            data=self._lists(keys["data"], "`data`", data) if is_mapping else {},
            zip=tuple(
                self._lists(each, "`zip`", self.settable, of_list=True) for each in self._blocks(keys.get("zip"))
            ),
            include=tuple(
                self._singles(each, "`include`", self.settable, of_list=True)
                for each in self._blocks(keys.get("include"))
            ),
            exclude=tuple(
                self._lists(each, "`exclude`", self.factors, of_list=True) for each in self._blocks(keys.get("exclude"))
            ),
            repetitions=self._entry_repetitions(keys),
            slo_ms=self._checked(keys, "slo_ms", bounds_ms, ()),
        )

    def _criteria(self, node: Node) -> CriteriaEntry | None:
        keys = self._mapping(node, "`criteria`", CRITERIA_KEYS, required=("baseline",), of_list=True)
        if keys is None:
            return None
        name = self._checked(keys, "name", lambda value: check_text("name", value), None)
        if "baseline" in keys and keys["baseline"].children == {}:
            self._say(keys["baseline"], "`baseline` names no factor", "as in {precision: fp32}")
        baseline = self._singles(keys.get("baseline"), "`baseline`", self.factors, may_be_null=False)
        where = self._lists(keys.get("where"), "`where`", self.factors)
        kinds = criteria_of(self.catalogue)
        bounds = self._optional(keys.get("accept"), "`accept`", kinds)
        accept = {
            each: self._checked(bounds, each, check_number(partial(threshold_problem, kinds[each])), None)
            for each in kinds
            if each in bounds
        }
        return CriteriaEntry(
            name,
            baseline,
            where,
            {each: value for each, value in accept.items() if value is not None},
            self._references(keys.get("reference")),
        )

    def _references(self, node: Node | None) -> tuple[Reference, ...]:
        """Published values: mappings from a name to one value or several, with a `where` of their own or in common."""
        found, names = [], (*reference_names(self.catalogue), "where")
        for block, mapping in enumerate(self._blocks(node)):
            keys = self._mapping(mapping, "`reference`", names, of_list=True) or {}
            common = self._lists(keys.pop("where", None), "`where`", self.factors)
            for name, values in keys.items():
                for index, item in enumerate(self._blocks(values)):
                    found.append(self._reference(name, item, common, ("reference", block, name, index)))
        return tuple(one for one in found if one is not None)

    def _reference(self, name: str, node: Node, common: Lists, path: tuple[str | int, ...]) -> Reference | None:
        keys = self._mapping(node, f"`{name}`", REFERENCE_KEYS, required=("value", "source"), of_list=True)
        if keys is None or "value" not in keys or "source" not in keys:
            return None
        value = self._checked(keys, "value", check_number(partial(value_problem, name, self.catalogue)), None)
        source = self._checked(keys, "source", lambda given: check_text("source", given), None)
        if source is None or value is None:
            return None
        row, kind, inverse = meaning_of(name, self.catalogue)
        row = self._at_bound(name, row, node, keys.get("slo_ms"))
        over_cells = self._checked(keys, "over_cells", check_truth, False)
        if over_cells and kind != "ratio":
            self._say(keys["over_cells"], f"`over_cells` is for ratios, and {name} is none", "remove the key")
        return Reference(
            name=name,
            row=row,
            kind=kind,
            inverse=inverse,
            value=value,
            source=source,
            device=self._checked(keys, "device", lambda given: check_text("device", given), None),
            where={**common, **self._lists(keys.get("where"), "`where`", self.factors)},
            over_cells=over_cells,
            path=path,
        )

    def _at_bound(self, name: str, row: Metric, node: Node, bound: Node | None) -> Metric:
        """The metric at the bound that a value was published for, where the metric has a value for each bound."""
        if not row.is_per_bound:
            if bound is not None:
                self._say(bound, f"`slo_ms` has no meaning for {name}", "remove the key")
            return row
        if bound is None:
            self._say(node, f"`{name}` needs the bound that it was published for", "add the key, as in `slo_ms: 50`")
            return row
        bounds: tuple[float, ...] = self._checked({"slo_ms": bound}, "slo_ms", bounds_ms, ())
        if len(bounds) > 1:
            self._say(bound, f"`{name}` was published for one bound, not {len(bounds)}", "write a value for each bound")
        return row.at_bound(bounds[0]) if bounds else row

    def _curve(self, node: Node) -> PlannedCurve | None:
        keys = self._mapping(node, "`curves`", CURVE_KEYS, required=("over", "metric"), of_list=True)
        if keys is None or len(keys) < len(CURVE_KEYS):
            return None
        numeric = tuple(name for name, factor in self.factors.items() if factor.kind in ("integer", "number"))
        over = self._names(keys["over"], "over", numeric, many=False)
        metric = self._checked(keys, "metric", partial(check_drawable, self.catalogue), None)
        return PlannedCurve(over[0], metric) if over and metric else None

    def _mapping(
        self,
        node: Node,
        called: str,
        names: Iterable[str],
        *,
        required: tuple[str, ...] = (),
        of_list: bool = False,
    ) -> dict[str, Node] | None:
        """The known keys of a mapping; None for what is no mapping. `of_list`: it is one of a list of mappings."""
        if node.children is None:
            takes = "a list of mappings" if of_list else "a mapping"
            self._say(node, f"{called} takes {takes}; not {described(node.plain())}")
            return None
        known = tuple(names)
        for key in node.children:
            if key not in known:
                self.problems.append(node.key_place((key,)).problem(f"unknown key `{key}`", self._hint(key, known)))
        for key in required:
            if key not in node.children:
                meaning = MEANINGS.get(key)
                self.problems.append(node.place.problem(f"`{key}` is missing", meaning))
        return {key: child for key, child in node.children.items() if key in known}

    def _hint(self, key: str, names: tuple[str, ...]) -> str:
        of_metric = [name for name, kind in criteria_of(self.catalogue).items() if key.startswith(kind.metric)]
        may_be_option = "." in key and not set(self.factors).isdisjoint(names)
        alike = nearest_option if may_be_option else nearest
        near = nearest(key, set(of_metric).intersection(names)) or alike(key, names)
        if near is not None:
            return near
        if "." in key:
            return f"an option of a package; {install_hint(key)}"
        if key in self.factors and names == tuple(PLAN_KEYS):
            return "a factor: write it in `defaults` or in an entry of `matrix`"
        if key in ENTRY_KEYS:
            return "write it in an entry of `matrix`"
        if key in PLAN_KEYS:
            return "write it at the top level of the plan"
        return (
            "`pybench schema` lists the valid keys"
            if len(names) > LONG_LIST
            else f"valid keys here: {', '.join(names)}"
        )

    def _optional(
        self, node: Node | None, called: str, names: Iterable[str], *, of_list: bool = False, may_be_null: bool = True
    ) -> dict[str, Node]:
        """The known keys of a mapping that may be absent or null."""
        if node is None or (may_be_null and node.is_null and not of_list):
            return {}
        return self._mapping(node, called, names, of_list=of_list) or {}

    def _blocks(self, node: Node | None) -> tuple[Node, ...]:
        """Mappings of a list; a single mapping or null will do."""
        if node is None or node.is_null:
            return ()
        return (node,) if node.items is None else node.items

    def _singles(
        self,
        node: Node | None,
        called: str,
        factors: Mapping[str, Factor],
        *,
        of_list: bool = False,
        may_be_null: bool = True,
    ) -> Single:
        keys = self._optional(node, called, factors, of_list=of_list, may_be_null=may_be_null)
        found = {name: self._one_value(keys[name], factor) for name, factor in factors.items() if name in keys}
        return {name: value[0] for name, value in found.items() if value}

    def _lists(self, node: Node | None, called: str, factors: Mapping[str, Factor], *, of_list: bool = False) -> Lists:
        return self._lists_of(self._optional(node, called, factors, of_list=of_list), factors)

    def _lists_of(self, keys: Mapping[str, Node], factors: Mapping[str, Factor]) -> Lists:
        found = {name: self._values(keys[name], factor) for name, factor in factors.items() if name in keys}
        return {name: values for name, values in found.items() if values}

    # --- values -----------------------------------------------------------------------------------------------------

    def _values(self, node: Node, factor: Factor) -> tuple[Value, ...]:
        """One value or a list of them; empty where any of them does not fit."""
        if factor.form == "sizes" and node.children is not None:
            return self._sizes(node, factor)
        if node.items is None:
            return self._value(node, factor)
        if not node.items:
            self._say(
                node, f"`{factor.name}` is an empty list, which leaves no case", "give a value, or remove the key"
            )
        found = [self._value(item, factor) for item in node.items]
        return tuple(value[0] for value in found) if all(found) else ()

    def _sizes(self, node: Node, factor: Factor) -> tuple[Value, ...]:
        """`{INPUT: {DIM: N or [N, ...]}}` as the product of all dimensions; empty where any of it does not fit."""
        axes = []
        for name, dimensions in (node.children or {}).items():
            if not dimensions.children:
                self._say(dimensions, f"`{factor.name}`: {name} takes a mapping of dimensions", "as in {height: 224}")
                return ()
            for dimension, sizes in dimensions.children.items():
                items = sizes.items if sizes.items is not None else (sizes,)
                found = [self._value(_sized(item, f"{name}.{dimension}"), factor) for item in items]
                if not found or not all(found):
                    return ()
                axes.append([str(value[0]) for value in found])
        if not axes:
            self._say(node, f"`{factor.name}` names no input", "remove the key, or write {image: {height: 224}}")
            return ()
        joined = [check_value(factor, ",".join(sizes)) for sizes in itertools.product(*axes)]
        return tuple(joined)

    def _one_value(self, node: Node, factor: Factor) -> tuple[Value, ...]:
        """`_value` where several would do in another place of the plan."""
        if node.items is None:
            return self._value(node, factor)
        hint = "an entry of `matrix` takes a list, and has a case for each of its values"
        self._say(node, f"`{factor.name}` takes one value here, not a list", hint)
        return ()

    def _value(self, node: Node, factor: Factor) -> tuple[Value, ...]:
        """A value in a tuple of one; empty where it does not fit, since null is a value."""
        if factor.form == "sizes" and node.children is not None:
            values = self._sizes(node, factor)
            if len(values) > 1:
                self._say(node, f"`{factor.name}` takes one size for each dimension here", "write one case for each")
            return values[:1]
        try:
            return (check_value(factor, node.plain()),)
        except ValueProblem as problem:
            self._say(node, problem.what, problem.hint)
            return ()

    def _names(self, node: Node | None, key: str, choices: tuple[str, ...], *, many: bool) -> tuple[str, ...]:
        """Names out of a closed list. `many`: only a list will do."""
        if node is None:
            return ()
        if many and node.items is None:
            self._say(node, f"`{key}` takes a list; not {described(node.plain())}")
            return ()
        factor = Factor(name=key, kind="choice", default=choices[0], meaning=key, choices=choices)
        found = [self._value(item, factor) for item in (node.items if node.items is not None else (node,))]
        return tuple(str(value[0]) for value in found) if all(found) else ()

    def _protocol(self, node: Node | None) -> tuple[str, ...]:
        if node is not None and node.items == ():
            self._say(node, "`protocol` is an empty list", f"remove the key for {PAIRED_BLOCKS} alone")
        return self._names(node, "protocol", tuple(PROTOCOLS), many=False) or (PAIRED_BLOCKS,)

    def _checked(self, keys: Mapping[str, Node], key: str, check: Callable[[Plain], T], default: T) -> T:
        """The value of a key by its own check; the default where it is absent or does not fit."""
        if key not in keys:
            return default
        try:
            return check(keys[key].plain())
        except ValueProblem as problem:
            self._say(keys[key], problem.what, problem.hint)
            return default

    def _say(self, node: Node, what: str, hint: str | None = None) -> None:
        self.problems.append(node.place.problem(what, hint))


def _sized(node: Node, key: str) -> Node:
    """A size as the text that the factor takes, at the place of the size."""
    return Node(node.place, scalar=f"{key}={node.plain()}")
