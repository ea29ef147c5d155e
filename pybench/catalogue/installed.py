# SPDX-License-Identifier: Apache-2.0
"""The rows of installed packages, found through their entry points. Only the reading of a plan looks for them.

A package declares `[project.entry-points."pybench.catalogue"]` with `acme = "acme_bench.rows:ROWS"`: a tuple of rows.
The module of the rows imports nothing but `pybench.catalogue`: it is read with every plan.
Workers and readers never look: a campaign stores the rows that it uses.
A package that cannot be used is an error of the plans that need it, and of no others.
"""

from __future__ import annotations

import importlib
import itertools
import re
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points

from pybench.catalogue.catalogue import BUILT_IN, Catalogue, Row, kind_of
from pybench.catalogue.criteria import compared_of
from pybench.catalogue.metrics import Metric
from pybench.catalogue.models import Model
from pybench.catalogue.options import Option
from pybench.catalogue.plugins import Plugin, sha256_of_package
from pybench.catalogue.row_faults import MODULE, fault_of
from pybench.catalogue.runtimes import Runtime
from pybench.catalogue.stored import row_from_json, row_to_json
from pybench.catalogue.workloads import Workload
from pybench.errors import PluginError, in_short

GROUP = "pybench.catalogue"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_OPTION = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_CODE = re.compile(rf"{MODULE.pattern}:[A-Za-z_]\w*")
# Properties of rows that name code: a module, or `module:name`.
NAMING_CODE = (
    "module",
    "audit",
    "profile",
    "generates",
    "parts",
    "build",
    "work",
    "translate",
    "drawn_by",
    "solved_by",
)
# Frameworks that take seconds to import, and that a probing worker imports on purpose.
_HEAVY = ("numpy", "torch", "onnx", "onnxruntime")


@dataclass(frozen=True, slots=True)
class Installed:
    """What is installed. `catalogue`: pybench's own rows, and those of every package that can be used.

    `refused`: one error for each package that cannot, in the order of their names; none of its rows are in the
    catalogue.
    """

    catalogue: Catalogue
    refused: tuple[PluginError, ...] = ()

    def refuse_names(self, names: Iterable[str]) -> None:
        """Raises the PluginError of a refused package that claims one of these names of rows."""
        wanted = set(names)
        for error in self.refused:
            if wanted & error.names:
                raise error


def installed() -> Installed:
    """Pybench's own rows, and those of every installed package. A package that cannot be used stops nothing by itself:
    it fails to import, has no rows, or takes a name."""
    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    usable: dict[EntryPoint, tuple[Row, ...]] = {}
    refused: dict[EntryPoint, PluginError] = {}
    for point in dict.fromkeys(found):
        try:
            rows = _rows_of(point)
            _refuse_foreign_code(point, rows)
            _refuse_faults(point, rows)
            _refuse_options(point, rows)
            _refuse_taken(point, rows, BUILT_IN.with_rows(itertools.chain(*usable.values())))
            usable[point] = rows
        except PluginError as error:
            refused[point] = error
    refused |= _without_metrics(usable)
    catalogue = BUILT_IN.with_rows(row for point, rows in usable.items() if point not in refused for row in rows)
    return Installed(catalogue, tuple(error for _, error in sorted(refused.items(), key=lambda pair: pair[0].name)))


def _without_metrics(usable: Mapping[EntryPoint, tuple[Row, ...]]) -> dict[EntryPoint, PluginError]:
    """The packages with a row that names a metric which no row describes: what its runs yield could not be stored.

    A package may name metrics of another one, and falls with it.
    """
    refused: dict[EntryPoint, PluginError] = {}
    while True:
        kept = {point: rows for point, rows in usable.items() if point not in refused}
        metrics = BUILT_IN.with_rows(itertools.chain(*kept.values())).metrics
        lacking = {point: pair for point, rows in kept.items() if (pair := _unknown_metric(rows, metrics)) is not None}
        if not lacking:
            return refused
        for point, (row, metric) in lacking.items():
            verb = "yields" if isinstance(row, Workload) else "is made of"
            what = f"adds the {kind_of(row)} {row.name}, which {verb} {metric}, and no row describes that metric"
            refused[point] = _refusal(point, what, f"add a Metric row for {metric}, or correct its name", kept[point])


def _rows_of(point: EntryPoint) -> tuple[Row, ...]:
    """The rows that an entry point names, each with the package that adds it."""
    distribution = point.dist
    if distribution is None or not _NAME.fullmatch(point.name):
        raise _refusal(point, "its entry point has no usable name", "use lower case letters, digits and _")
    before = set(sys.modules)
    try:
        listed = point.load()
    except (Exception, SystemExit) as error:  # whatever a module can raise at import
        what = f"cannot be imported: {type(error).__name__}: {in_short(error, 300)}"
        raise _refusal(point, what, "repair it") from error
    heavy = [name for name in _HEAVY if name in sys.modules and name not in before]
    if heavy:
        hint = f"import {heavy[0]} in the modules that its rows name: the rows are read with every plan"
        raise _refusal(point, f"imports {', '.join(heavy)} with its rows", hint)
    if not isinstance(listed, tuple | list) or not all(isinstance(row, Row) for row in listed):
        what = "does not name rows"
        raise _refusal(point, what, "name a tuple of Workload, Runtime, Model and Metric of pybench.catalogue")
    package = point.module.partition(".")[0]
    plugin = Plugin(
        name=point.name,
        distribution=distribution.name,
        version=distribution.version,
        package=package,
        sha256=sha256_of_package(package),
    )
    importlib.invalidate_caches()
    return tuple(replace(_checked(point, row, listed), plugin=plugin) for row in listed)


def _checked(point: EntryPoint, row: Row, rows: Iterable[Row]) -> Row:
    """The row as a campaign stores and reads it, so that every property has its type."""
    try:
        return row_from_json(row_to_json(row))
    except ValueError as error:
        what = f"adds a {kind_of(row)} that is malformed: {error}"
        raise _refusal(point, what, "correct the row", rows) from error


def _refuse_foreign_code(point: EntryPoint, rows: tuple[Row, ...]) -> None:
    """A change of code is noticed by the digest of the package, or by the version of pybench."""
    package = point.module.partition(".")[0]
    for row in rows:
        for name in NAMING_CODE:
            code = getattr(row, name, None)
            if not isinstance(code, str):  # a workload says by `generates` whether it does
                continue
            form, written = (MODULE, f"{package}.code") if name == "module" else (_CODE, f"{package}.code:name")
            if not form.fullmatch(code):
                what = f"adds the {kind_of(row)} {row.name}, whose `{name}` names no code: {code!r}"
                raise _refusal(point, what, f"write it as in {written}", rows)
            if re.split("[.:]", code)[0] not in (package, "pybench"):
                what = f"adds the {kind_of(row)} {row.name}, whose `{name}` is outside of {package}: {code}"
                hint = f"put this code into {package}: changes of other packages are not noticed"
                raise _refusal(point, what, hint, rows)


def _refuse_faults(point: EntryPoint, rows: tuple[Row, ...]) -> None:
    for row in rows:
        fault = fault_of(row)
        if fault is not None:
            raise _refusal(point, f"adds the {kind_of(row)} {row.name}, {fault.what}", fault.hint, rows)


def _refuse_taken(point: EntryPoint, rows: tuple[Row, ...], catalogue: Catalogue) -> None:
    seen: set[tuple[type[Row], str]] = set()
    for row in rows:
        if isinstance(row, Metric) and row.name in compared_of(BUILT_IN):
            what = f"adds the metric {row.name}, which is what a criterion of pybench compares"
            raise _refusal(point, what, f"rename its row, as in {_own_name(point, row)}", rows)
        if (type(row), row.name) in seen:
            raise _refusal(point, f"adds the {kind_of(row)} {row.name} twice", "remove one of its rows", rows)
        seen.add((type(row), row.name))
        taken = _table(row, catalogue).get(row.name)
        if taken is not None:
            owner = "pybench" if taken.plugin is None else taken.plugin.distribution
            what = f"adds the {kind_of(row)} {row.name}, which {owner} has"
            raise _refusal(point, what, f"rename its row, as in {_own_name(point, row)}", rows)


def _own_name(point: EntryPoint, row: Row) -> str:
    """A name that no other package has: names of metrics are words."""
    return f"{point.name}{'_' if isinstance(row, Metric) else '-'}{row.name}"


def _refuse_options(point: EntryPoint, rows: tuple[Row, ...]) -> None:
    """An option is told from a factor by its dot, and its first word says whose it is."""
    known: dict[str, Option] = {}
    for row in rows:
        for option in () if isinstance(row, Metric) else row.options:
            if not _OPTION.fullmatch(option.name) or option.name.split(".")[0] != point.name:
                what = f"adds the option {option.name}, whose name does not begin with `{point.name}.`"
                raise _refusal(point, what, f"rename it, as in {point.name}.{option.name.split('.')[-1]}", rows)
            if known.setdefault(option.name, option) != option:
                raise _refusal(point, f"describes the option {option.name} in two ways", "describe it once", rows)


def _unknown_metric(rows: Iterable[Row], metrics: Collection[str]) -> tuple[Row, str] | None:
    """The first row that names what no row describes, and that metric."""
    named = ((row, name) for row in rows for name in _metrics_in(row) if name is not None)
    return next((pair for pair in named if pair[1] not in metrics), None)


def _metrics_in(row: Row) -> tuple[str | None, ...]:
    if isinstance(row, Metric):
        return row.of, row.energy, row.delay, row.share_of
    if isinstance(row, Workload):
        return (*row.metrics(), *row.shown, row.headline, row.headline_without_ids, *row.rates)
    return ()


def _table(row: Row, catalogue: Catalogue) -> dict[str, Row]:
    tables: dict[type[Row], dict[str, Row]] = {
        Workload: dict(catalogue.workloads),
        Runtime: dict(catalogue.runtimes),
        Model: dict(catalogue.models),
        Metric: dict(catalogue.metrics),
    }
    return tables[type(row)]


def _refusal(point: EntryPoint, what: str, hint: str, rows: Iterable[Row] = ()) -> PluginError:
    """`rows`: what the package would add, where that is known. Cases name no metrics."""
    named = [row for row in rows if not isinstance(row, Metric)]
    called = point.dist.name if point.dist is not None else point.value
    return PluginError(
        called,
        what,
        hint=f"{hint}; or remove the package: pip uninstall {called}",
        version=point.dist.version if point.dist is not None else None,
        names=frozenset(name for row in named for name in (str(row.name), *(option.name for option in row.options))),
    )
