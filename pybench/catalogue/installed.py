# SPDX-License-Identifier: Apache-2.0
"""The rows of installed packages, found through their entry points. Only the reading of a plan looks for them.

A package declares `[project.entry-points."pybench.catalogue"]` with `acme = "acme_bench.rows:ROWS"`: a tuple of rows.
The module of the rows imports nothing but `pybench.catalogue`: it is read with every plan.
Workers and readers never look: a campaign stores the rows that it uses.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points

from pybench.catalogue.catalogue import BUILT_IN, Catalogue, Row
from pybench.catalogue.metrics import Metric
from pybench.catalogue.models import Model
from pybench.catalogue.options import Option
from pybench.catalogue.plugins import Plugin, sha256_of_package
from pybench.catalogue.runtimes import Runtime
from pybench.catalogue.workloads import Workload
from pybench.errors import PluginError

GROUP = "pybench.catalogue"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_OPTION = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
# Frameworks that take seconds to import, and that a probing worker imports on purpose.
_HEAVY = ("numpy", "torch", "onnx", "onnxruntime")


def installed_catalogue() -> Catalogue:
    """Pybench's own rows, and those of every installed package.

    Raises PluginError for a package that fails to import, has no rows, or takes a name.
    """
    found = sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value))
    catalogue = BUILT_IN
    for point in dict.fromkeys(found):
        rows = _rows_of(point)
        _refuse_taken(point, rows, catalogue)
        _refuse_options(point, rows)
        catalogue = catalogue.with_rows(rows)
    for row in catalogue.added():
        _refuse_unknown_metrics(row, catalogue)
    return catalogue


def _rows_of(point: EntryPoint) -> tuple[Row, ...]:
    """The rows that an entry point names, each with the package that adds it."""
    distribution = point.dist
    if distribution is None or not _NAME.fullmatch(point.name):
        raise _refusal(point, "its entry point has no usable name", "use lower case letters, digits and _")
    before = set(sys.modules)
    try:
        listed = point.load()
    except Exception as error:  # whatever a module can raise at import
        what = f"cannot be imported: {type(error).__name__}: {error}"
        raise _refusal(point, what, "repair or uninstall it") from error
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
    return tuple(replace(row, plugin=plugin) for row in listed)


def _refuse_taken(point: EntryPoint, rows: Iterable[Row], catalogue: Catalogue) -> None:
    seen: set[tuple[type[Row], str]] = set()
    for row in rows:
        taken = _table(row, catalogue).get(row.name)
        if taken is None and (type(row), row.name) not in seen:
            seen.add((type(row), row.name))
            continue
        owner = "itself" if taken is None else "pybench" if taken.plugin is None else taken.plugin.distribution
        what = f"adds the {_kind(row)} {row.name}, which {owner} has"
        raise _refusal(point, what, f"rename its row, as in {point.name}-{row.name}")


def _refuse_options(point: EntryPoint, rows: Iterable[Row]) -> None:
    """An option is told from a factor by its dot, and its first word says whose it is."""
    known: dict[str, Option] = {}
    for row in rows:
        for option in () if isinstance(row, Metric) else row.options:
            if not _OPTION.fullmatch(option.name) or option.name.split(".")[0] != point.name:
                what = f"adds the option {option.name}, whose name does not begin with `{point.name}.`"
                raise _refusal(point, what, f"rename it, as in {point.name}.{option.name.split('.')[-1]}")
            if known.setdefault(option.name, option) != option:
                raise _refusal(point, f"describes the option {option.name} in two ways", "describe it once")


def _refuse_unknown_metrics(row: Row, catalogue: Catalogue) -> None:
    """A metric that a workload yields needs a row, or its runs could not be stored."""
    if not isinstance(row, Workload):
        return
    named = (*row.metrics(), *row.shown, *([] if row.headline is None else [row.headline]))
    unknown = next((name for name in named if name not in catalogue.metrics), None)
    if unknown is not None and row.plugin is not None:
        raise PluginError(
            row.plugin.distribution,
            f"adds the workload {row.name}, which yields {unknown}, and no row describes that metric",
            hint=f"add a Metric row for {unknown}, or correct its name",
        )


def _table(row: Row, catalogue: Catalogue) -> dict[str, Row]:
    tables: dict[type[Row], dict[str, Row]] = {
        Workload: dict(catalogue.workloads),
        Runtime: dict(catalogue.runtimes),
        Model: dict(catalogue.models),
        Metric: dict(catalogue.metrics),
    }
    return tables[type(row)]


def _kind(row: Row) -> str:
    return type(row).__name__.lower()


def _refusal(point: EntryPoint, what: str, hint: str) -> PluginError:
    return PluginError(point.dist.name if point.dist is not None else point.value, what, hint=hint)
