# SPDX-License-Identifier: Apache-2.0
"""The tables of docs/user/plans.md: what workloads require, what runtimes infer in, what criteria bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from documents.markdown import ROWS_SAY, code, table
from pybench.catalogue.criteria import CRITERIA
from pybench.catalogue.precisions import quantised_type
from pybench.catalogue.runtimes import RUNTIMES, Backend, Runtime, Where
from pybench.catalogue.workloads import WORKLOADS, Workload


def workloads_table() -> str:
    """What an entry has to set for each workload, and the runtimes that it can name."""
    rows = ((f"`{row.name}`", _required(row), _run_in(row)) for row in WORKLOADS.values())
    return table(("workload", "requires", "runtime"), rows)


def runtimes_table() -> str:
    """What each runtime, or each of its backends, infers in."""
    rows = (_infers_in(row, backend) for row in RUNTIMES.values() for backend in row.backends or (None,))
    return table(("runtime", "what is timed", "on a CPU", "on a GPU", "weights alone"), rows)


def criteria_table() -> str:
    """What each criterion bounds."""
    rows = ((f"`{kind.name}`", kind.meaning, f"`{kind.metric}`") for kind in CRITERIA.values())
    return table(("criterion", "bounds", "metric"), rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "workloads": workloads_table,
    "runtimes": runtimes_table,
    "criteria": criteria_table,
}


def filled(text: str) -> str:
    """A page whose tables are what the rows say. Each is between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.

    Raises ValueError where the page has no place for a table, or several."""
    for name, made in TABLES.items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
        if not text.count(begin) == text.count(end) == 1:
            raise ValueError(f"the table of {name} has no place, or several")
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{ROWS_SAY}\n\n{made()}\n\n{end}{rest.partition(end)[2]}"
    return text


def _required(row: Workload) -> str:
    """Factors without a default, as far as the row tells: data and weights also follow from the model."""
    if row.model == "none":
        return "a GPU" if row.needs_gpu is not None else "nothing"
    parts = ["`model`"] if row.model == "required" else ["`path`, if no `model` is given"]
    if row.runtime is None:
        parts.append("`runtime`")
    if row.fits:
        parts.append("`target_top1_percent`")
    if row.parts_pairs:
        parts.append(f"`precision: {' or '.join(_taken_apart(row))}`")
    if row.needs_images:
        parts.append("`images` for an image model")
    return ", ".join(parts)


def _taken_apart(row: Workload) -> list[str]:
    """The quantised precisions of the runtime that takes pairs of Q/DQ apart on a CPU."""
    backend = RUNTIMES[str(row.runtime)].backend(None, has_gpu=False)
    return [name for name in (backend.precisions if backend else ()) if quantised_type(name) is not None]


def _run_in(row: Workload) -> str:
    """The runtimes that a workload can use."""
    if row.model == "none":
        return "none"
    if row.parts_pairs:
        return f"`{row.runtime}` on a CPU"
    if row.trains:
        return code(each.name for each in RUNTIMES.values() if each.trains)
    if row.generates:
        return code(each.name for each in RUNTIMES.values() if each.generates is not None)
    return "any" if row.runtime is None else f"any, by default `{row.runtime}`"


def _infers_in(row: Runtime, backend: Backend | None) -> tuple[str, ...]:
    name = f"`{row.name}`" if backend is None else f"`{row.name}`, `provider: {backend.name}`"
    if row.computes_in is not None:
        return (name, row.meaning, f"always `{row.computes_in}`", "none", "none")
    executes = row.precisions if backend is None else backend.precisions
    on_cpu = backend is None or not backend.needs_gpu
    on_gpu = row.gpu_fact is not None if backend is None else backend.needs_gpu

    def at(*places: Where) -> str:
        return code(name for name, place in executes.items() if place in places)

    some = f"{at('on_some_cpus')} if the CPU multiplies in them" if at("on_some_cpus") else ""
    cpu = "; ".join(part for part in (at("anywhere"), some) if part and on_cpu)
    gpu = at("anywhere", "on_gpu") if on_gpu else ""
    stored = code(backend.stores) if backend is not None else ""
    return (name, row.meaning, cpu or "none", gpu or "none", stored or "none")
