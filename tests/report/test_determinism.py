# SPDX-License-Identifier: Apache-2.0
"""A report is its runs: the same bytes on another machine, for another user, in another place."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from fontTools.ttLib import TTFont

from pybench.analysis.statistics.elementary import exp, exp_of, log
from pybench.case import Case
from pybench.catalogue.protocols import PROTOCOLS
from pybench.dataset import load
from pybench.processes import Processes
from pybench.report import write_report
from tests.support.campaigns import CampaignBuilder, build_typical
from tests.support.energies import ON_A_BOARD, energy_metrics, energy_window, store_energy

MATPLOTLIBRC = """
font.size: 17
font.family: serif
axes.grid: False
axes.formatter.limits: -1, 1
savefig.bbox: tight
xtick.direction: in
path.simplify: False
pdf.compression: 9
svg.fonttype: path
"""


def _campaigns(folder: Path) -> list[Path]:
    """Every kind of table and figure: comparisons, protocols, and where each joule comes from."""
    builder = CampaignBuilder(folder / "joules", [Case(workload="infer", model="digits-cnn", runtime="torch")])
    run = builder.run(builder.cases[0], 1, energy_metrics(), environment=ON_A_BOARD)
    store_energy(run, energy_window())
    typical = build_typical(folder / "typical", repetitions=4, protocols=[*PROTOCOLS])
    return [typical.path, builder.path]


def _reports(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and "report" in path.relative_to(folder).parts]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _dispatched() -> str:
    """What NumPy chooses at run time by the processor: without it, it computes as on the oldest one."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))


def _hostile_home(folder: Path) -> Path:
    """Settings of the user's for matplotlib, and fonts that say that they are DejaVu Sans."""
    fonts = folder / ".fonts"
    fonts.mkdir(parents=True)
    (folder / ".config" / "matplotlib").mkdir(parents=True)
    (folder / ".config" / "matplotlib" / "matplotlibrc").write_text(MATPLOTLIBRC)
    for face, style in (("DejaVuSerif", "Book"), ("DejaVuSerif-Bold", "Bold")):
        font = TTFont(Path(matplotlib.get_data_path(), "fonts", "ttf", f"{face}.ttf"))
        for record in font["name"].names:
            if record.nameID in (1, 16):
                record.string = "DejaVu Sans"
            elif record.nameID in (4, 6):
                record.string = "DejaVu Sans" if style == "Book" else "DejaVu Sans Bold"
        font.save(fonts / f"{face}.ttf")
    return folder


def test_a_report_is_the_same_bytes_in_a_hostile_environment(tmp_path: Path) -> None:
    for campaign in _campaigns(tmp_path / "here"):
        write_report(load(campaign), pdf=True)
    expected = _reports(tmp_path / "here")
    there = tmp_path / "über there" / "x"
    shutil.copytree(tmp_path / "here", there, ignore=shutil.ignore_patterns("report"))
    for path in there.rglob("*"):
        os.utime(path, (1, 1))
    home = _hostile_home(tmp_path / "home")
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / "matplotlibrc").write_text(MATPLOTLIBRC)
    environment = {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "HOME": str(home),
        "USER": "eve",
        "TZ": "Asia/Kathmandu",
        "LANG": "C",
        "LC_ALL": "tr_TR.UTF-8",  # where it is installed: i is not the small letter of I there
        "PYTHONHASHSEED": "77",
        "COLUMNS": "20",
        "MPLBACKEND": "svg",
        "SOURCE_DATE_EPOCH": "1",
        "POLARS_MAX_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "OPENBLAS_CORETYPE": "Nehalem",
        "NPY_DISABLE_CPU_FEATURES": _dispatched(),
    }
    program = (
        "import os, sys; from pybench.cli import main; os.umask(63); "
        "[main(['report', x, '--pdf']) for x in sys.argv[1:]]"
    )
    command = [sys.executable, "-c", program, f"{there}/typical", "../über there/x/joules"]
    subprocess.run(command, cwd=tmp_path / "cwd", env=environment, check=True, capture_output=True, timeout=120)
    found = _reports(there)
    assert found.keys() == expected.keys()
    assert len(expected) > 60
    assert [name for name in expected if expected[name] != found[name]] == []


def test_the_processors_vectors_would_have_mattered() -> None:
    """Why there is `pybench.analysis.statistics.elementary`: NumPy's logarithms differ between processors."""
    if not _dispatched():
        pytest.skip("this processor has nothing that NumPy would choose at run time")
    program = "import numpy as np; print(np.log(np.random.default_rng(1).random(60000)).tobytes().hex())"
    results = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "NPY_DISABLE_CPU_FEATURES": disabled},
            capture_output=True,
            check=True,
        ).stdout
        for disabled in ("", _dispatched())
    ]
    if results[0] == results[1]:
        pytest.skip("this processor's vectors give NumPy the same logarithms as none")


def test_elementary_functions_are_those_of_numpy_within_a_rounding() -> None:
    values = np.geomspace(1e-300, 1e300, 1000).reshape(10, 100)
    np.testing.assert_array_max_ulp(log(values), np.log(values), 2)
    np.testing.assert_array_max_ulp(exp_of(log(values) / 2), np.exp(log(values) / 2), 2)
    assert exp(1e4) == float("inf")
    assert exp(-1e4) == 0.0


def test_two_processes_draw_what_one_draws(tmp_path: Path) -> None:
    processes = Processes(2)
    try:
        for campaign in _campaigns(tmp_path):
            dataset = load(campaign)
            alone = write_report(dataset, tmp_path / "alone" / "report", run_link="runs", pdf=True).parent
            page = write_report(dataset, tmp_path / "shared" / "report", run_link="runs", processes=processes, pdf=True)
            shared = page.parent
            assert list(alone.glob("figures/*.pdf"))
            assert _reports(alone.parent) == _reports(shared.parent)
    finally:
        processes.close()
