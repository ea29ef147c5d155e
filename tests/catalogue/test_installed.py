# SPDX-License-Identifier: Apache-2.0
"""Rows of installed packages: found through entry points; what cannot be used is one error with a hint."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from pybench.catalogue.catalogue import BUILT_IN
from pybench.catalogue.installed import NAMING_CODE, installed
from pybench.catalogue.plugins import sha256_of_package
from pybench.errors import PluginError

MODEL = """
from pybench.catalogue.models import Model
ROWS = (Model(name="%s", kind="vector", build="pybench.models.mlp:Mlp", input="vectors", shape=(4,), outputs=2,
              head="a", multiply_adds=8.0),)
"""
WORKLOAD = """
from pybench.catalogue.workloads import Workload
ROWS = (Workload(name="echo", label="Echo", meaning="echoes", module="pybench.workloads.noop", takes=("run",),
                 model="none", yields=("echoes_per_s",)),)
"""
METRIC = """
from pybench.catalogue.metrics import Metric
ROWS = (Metric(name="m_ms", group="time", unit="ms", better="lower", label="M", meaning="m", rests_on="timing"),)
"""
OPTION = """
from pybench.catalogue.options import Option
from pybench.catalogue.runtimes import Runtime
ROWS = (Runtime(name="r", module="pybench.runtimes.torch", opens="module", needs=("torch",), start_s=1.0,
                precisions=dict(fp32="anywhere"),
                options=(Option(name="%s", kind="integer", default=1, meaning="depth"),)),)
"""


def runtime(**properties: object) -> str:
    """Rows with one runtime that has these properties, too."""
    given = {"precisions": {"fp32": "anywhere"}, **properties}
    return (
        "from pybench.catalogue.runtimes import Runtime\n"
        'ROWS = (Runtime(name="r", module="pybench.runtimes.torch", opens="module", needs=("torch",), start_s=1.0, '
        f"**{given!r}),)"
    )


class Site:
    """A folder of installed packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, rows: str, distribution: str | None = None, target: str = "rows:ROWS") -> None:
        package = self.folder / name
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "rows.py").write_text(rows)
        described = self.folder / f"{name}-1.2.dist-info"
        described.mkdir()
        (described / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution or name}\nVersion: 1.2\n")
        (described / "entry_points.txt").write_text(f"[pybench.catalogue]\n{name} = {name}.{target}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Site(tmp_path)
    for name in set(sys.modules) - before:
        if name.startswith("acme"):
            del sys.modules[name]


def test_without_packages_the_catalogue_is_pybenchs_own() -> None:
    assert installed().catalogue is BUILT_IN
    assert installed().refused == ()


def test_rows_of_several_packages_are_found_with_what_they_came_from(site: Site) -> None:
    site.install("acme_b", MODEL % "b-model", distribution="acme-b")
    site.install("acme_a", MODEL % "a-model")
    added = installed().catalogue.added()
    assert [row.name for row in added] == ["a-model", "b-model"], "in the order of the packages' names"
    plugin = added[1].plugin
    assert plugin is not None
    assert (plugin.name, plugin.distribution, plugin.version, plugin.package) == ("acme_b", "acme-b", "1.2", "acme_b")
    assert plugin.sha256 == sha256_of_package("acme_b")


def test_the_digest_is_of_the_code_and_of_nothing_that_python_writes(site: Site) -> None:
    site.install("acme_c", MODEL % "c-model")
    before = sha256_of_package("acme_c")
    cache = site.folder / "acme_c" / "__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "rows.cpython-311.pyc").write_bytes(b"compiled")
    assert sha256_of_package("acme_c") == before
    (site.folder / "acme_c" / "weights.bin").write_bytes(b"\0")
    assert sha256_of_package("acme_c") != before
    with pytest.raises(ModuleNotFoundError):
        sha256_of_package("acme_absent")


@pytest.mark.parametrize(
    ("rows", "target", "said", "hint"),
    [
        (
            "import acme_nowhere",
            "rows:ROWS",
            "cannot be imported: ModuleNotFoundError: No module named",
            "repair it",
        ),
        ("1 / 0", "rows:ROWS", "cannot be imported: ZeroDivisionError: division by zero", "repair it"),
        ("", "rows:ROWS", "cannot be imported: AttributeError", "repair it"),
        ("raise SystemExit('no licence')", "rows:ROWS", "cannot be imported: SystemExit: no licence", "repair it"),
        ("ROWS = (1, 2)", "rows:ROWS", "does not name rows", "a tuple of Workload, Runtime, Model and Metric"),
        (MODEL % "mlp", "rows:ROWS", "adds the model mlp, which pybench has", "rename its row, as in acme_x-mlp"),
        (
            METRIC.replace("m_ms", "latency_mean_ms"),
            "rows:ROWS",
            "adds the metric latency_mean_ms, which pybench has",
            "rename its row, as in acme_x_latency_mean_ms",
        ),
        (f"{METRIC}ROWS *= 2", "rows:ROWS", "adds the metric m_ms twice", "remove one of its rows"),
        (OPTION % "depth", "rows:ROWS", "adds the option depth, whose name does not begin", "as in acme_x.depth"),
        (OPTION % "acme_y.depth", "rows:ROWS", "adds the option acme_y.depth, whose name", "as in acme_x.depth"),
        (
            METRIC.replace("m_ms", "speedup"),
            "rows:ROWS",
            "adds the metric speedup, which is what a criterion of pybench compares",
            "rename its row, as in acme_x_speedup",
        ),
        (
            METRIC.replace("rests_on", "is_per_bound=True, rests_on"),
            "rows:ROWS",
            "adds the metric m_ms, a rate at bounds of latency that no rate is named for",
            "name the metric of the whole rate as its `share_of`",
        ),
        (WORKLOAD, "rows:ROWS", "adds the workload echo, which yields echoes_per_s", "add a Metric row"),
    ],
)
def test_what_cannot_be_used_is_one_error_with_a_hint(site: Site, rows: str, target: str, said: str, hint: str) -> None:
    site.install("acme_x", rows, distribution="acme-x", target=target)
    (error,) = installed().refused
    assert error.message.startswith(f"the installed package acme-x {said}")
    assert hint in str(error.hint)
    assert str(error.hint).endswith("; or remove the package: pip uninstall acme-x")
    assert (error.distribution, error.version, error.exit_code) == ("acme-x", "1.2", 2)
    assert installed().catalogue is BUILT_IN, "none of its rows are taken"


@pytest.mark.parametrize(
    ("rows", "said", "hint"),
    [
        (
            METRIC.replace('"time"', '"nowhere"'),
            "adds a metric that is malformed: m_ms.group has another type than the property: 'nowhere' (one of time, ",
            "correct the row",
        ),
        (METRIC.replace("timing", "timming"), "malformed: m_ms.rests_on has another type", "correct the row"),
        (
            WORKLOAD.replace('("run",)', '("run", "nogroup")'),
            "adds a workload that is malformed: echo.takes has another type than the property: 'nogroup'",
            "correct the row",
        ),
        (
            METRIC.replace("m_ms", "rows/s"),
            "adds a metric that is malformed: the name 'rows/s' is not of a to z, 0 to 9, _, or does not begin",
            "correct the row",
        ),
        (MODEL % "../../x", "adds a model that is malformed: the name '../../x' is not of", "correct the row"),
        (MODEL.replace('"vector"', '"vectr"') % "m", "malformed: m.kind has another type", "correct the row"),
        (
            MODEL.replace("outputs=2", 'outputs=2, judged_on="acme-data"') % "m",
            "adds the model m, whose `judged_on` names no data set of pybench: acme-data",
            "name one of digits, ",
        ),
        (
            MODEL.replace("outputs=2", 'outputs=2, shaped_by=("height",)') % "m",
            "adds the model m, whose `shaped_by` names no factor of models of pybench: height",
            "name one of block_type, ",
        ),
        (METRIC.replace("rests_on", "bound_ms=5.0, rests_on"), "m_ms, which has a `bound_ms`", "set `is_per_bound`"),
        (
            METRIC.replace("rests_on", "of='gpu_energy', rests_on"),
            "adds the metric m_ms, which is made of gpu_energy, and no row describes that metric",
            "add a Metric row for gpu_energy",
        ),
        (
            runtime(quantiser="nope"),
            "adds the runtime r, whose `quantiser` names no quantiser of pybench: nope",
            "name one of pybench, ",
        ),
        (
            runtime(factors=("nope",)),
            "whose `factors` names no factor of runtimes of pybench: nope",
            "name one of workspace_bytes, ",
        ),
        (
            runtime(modes=("fastest",)),
            "whose `modes` names no value of `compile_mode` of pybench: fastest",
            "name one of default, ",
        ),
        (runtime(own_path="perl"), "whose `own_path` names no path of pybench: perl", "name one of none, "),
        (
            runtime(precisions={"fp32": "anywhere", "int3": "anywhere"}),
            "whose `precisions` names no precision of pybench: int3",
            "name one of fp32, ",
        ),
        (
            runtime(trains={"int3": "on_gpu"}),
            "whose `trains` names no precision of pybench: int3",
            "name one of fp32, ",
        ),
        (runtime(precisions={}), "which does not say in one way what it infers in", "set one of `precisions`, "),
        (runtime(computes_in="fp64"), "which does not say in one way what it infers in", "set one of `precisions`, "),
        (
            (OPTION % "acme_x.depth").replace("1.0", "float('nan')"),
            "malformed: r.start_s is nan, which is no finite number",
            "correct the row",
        ),
        (
            (OPTION % "acme_x.depth").replace('"torch",', '"acme-lib",'),
            "adds the runtime r, whose `needs` has no name of a package: 'acme-lib'",
            "name it as Python imports it",
        ),
        (
            MODEL.replace("pybench.models.mlp", "acme_network.layers") % "m",
            "adds the model m, whose `build` is outside of acme_x: acme_network.layers:Mlp",
            "put this code into acme_x: changes of other packages are not noticed",
        ),
        (
            (OPTION % "acme_x.depth").replace("needs=", 'audit="acme_x.audits", needs='),
            "adds the runtime r, whose `audit` names no code: 'acme_x.audits'",
            "write it as in acme_x.code:name",
        ),
        (
            WORKLOAD.replace("pybench.workloads.noop", "acme_x.echo:run"),
            "adds the workload echo, whose `module` names no code: 'acme_x.echo:run'",
            "write it as in acme_x.code; or",
        ),
        (
            WORKLOAD.replace("pybench.workloads.noop", "acme_xy"),
            "adds the workload echo, whose `module` is outside of acme_x: acme_xy",
            "put this code into acme_x",
        ),
    ],
)
def test_a_row_with_a_wrong_value_is_refused_with_the_value(site: Site, rows: str, said: str, hint: str) -> None:
    site.install("acme_x", rows, distribution="acme-x")
    (error,) = installed().refused
    assert said in error.message
    assert str(error.hint).startswith(hint)
    assert installed().catalogue is BUILT_IN


def test_a_row_is_read_as_it_will_be_stored(site: Site) -> None:
    site.install("acme_k", MODEL.replace("(4,)", "[4]") % "k-model")
    (row,) = installed().catalogue.added()
    assert getattr(row, "shape", None) == (4,)


def test_every_property_that_names_code_is_known() -> None:
    rows = [row for table in BUILT_IN._tables() for row in table.values()]
    named = {one.name for row in rows for one in fields(row) if re.match(r"pybench\.", str(getattr(row, one.name)))}
    assert named <= set(NAMING_CODE)
    assert set(NAMING_CODE) <= {one.name for row in rows for one in fields(row)}


def test_a_name_that_two_packages_add_names_both(site: Site) -> None:
    site.install("acme_e", MODEL % "same")
    site.install("acme_f", MODEL % "same")
    found = installed()
    (error,) = found.refused
    assert error.message == "the installed package acme_f adds the model same, which acme_e has"
    assert [row.plugin.name for row in found.catalogue.added() if row.plugin] == ["acme_e"]
    found.refuse_names(["mlp"])
    with pytest.raises(PluginError, match="the model same, which acme_e has"):
        found.refuse_names(["mlp", "same"])


def test_a_package_falls_with_the_metrics_that_it_yields_and_no_other_does(site: Site) -> None:
    site.install("acme_h", METRIC.replace("m_ms", "echoes_per_s"))
    site.install("acme_i", WORKLOAD)
    assert installed().refused == ()
    (site.folder / "acme_h" / "rows.py").write_text("import acme_nowhere")
    del sys.modules["acme_h.rows"]
    site.install("acme_j", MODEL % "j-model")
    found = installed()
    assert [error.distribution for error in found.refused] == ["acme_h", "acme_i"]
    assert [row.name for row in found.catalogue.added()] == ["j-model"]


def test_rows_that_import_a_framework_are_refused(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.install("acme_g", f"import onnxruntime\n{MODEL % 'g-model'}")
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    (error,) = installed().refused
    assert re.search(r"imports .*onnxruntime with its rows", error.message)
