# SPDX-License-Identifier: Apache-2.0
"""The recipes of CONTRIBUTING.md for rows that no package can add: they are followed in a copy of pybench."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pybench

pytestmark = pytest.mark.process

SOURCE = Path(pybench.__file__).parent
LIBRARY = """\
import acme
from torch import nn

from pybench.models.zoo.build import Built
from pybench.models.zoo.feeds import image_feeds


def names():
    return ["tiny"]


def inputs(request):
    return image_feeds("images", (3, 8, 8))


def build(request):
    return Built(nn.Sequential(nn.Flatten(), nn.Linear(192, acme.WIDTH)), inputs(request))
"""
QUANTISER = """\
from pybench.artefacts.quantised import by_onnxruntime


def by_acme(request, source, path, samples):
    return by_onnxruntime(request, source, path, samples)
"""
METADATA = "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n"
DATA = """\
import numpy as np

from pybench.models.samples import Samples


def open_points(split, model):
    values = np.arange(12.0).reshape(6, 2)
    return Samples(tuple("abcdef"), (2,), lambda chosen: values[chosen], lambda chosen: values[chosen, :1])
"""
PLAN = """\
schema_version: 1
name: own
repetitions: 1
defaults: {warmup_iterations: 1, iterations: 3, energy_window_s: 0, idle_window_s: 0, device: cpu, threads: 1}
matrix: [{workload: infer, model: acme/tiny, runtime: torch}]
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The folder of a copy, next to the sources of its compiled module and the program that writes documents."""
    (tmp_path / "native").symlink_to(SOURCE.parent / "native")
    (tmp_path / "documents").symlink_to(Path(__file__).parents[2] / "documents")
    return Path(shutil.copytree(SOURCE, tmp_path / "pybench", ignore=shutil.ignore_patterns("__pycache__")))


@pytest.mark.slow
def test_a_library_of_models_is_a_row_a_package_and_a_module(copied: Path) -> None:
    _insert(
        copied / "catalogue/zoo.py",
        "_ROWS = (\n",
        'Library(name="acme", package="acme", module="pybench.models.zoo.acme", form="acme/NAME", kind="model"),\n',
    )
    row = 'Package(name="acme", gives="models acme/NAME", install="pip install acme", found="acme {version}",'
    row += ' loaded_as="acme", distributions=("acme",)),\n'
    _insert(copied / "catalogue/packages.py", "_ROWS = (\n", row)
    for name, text in (("acme/__init__.py", "WIDTH = 4\n"), ("acme-1.0.dist-info/METADATA", METADATA)):
        (copied.parent / name).parent.mkdir()
        (copied.parent / name).write_text(text)
    (copied / "models/zoo/acme.py").write_text(LIBRARY)
    (copied.parent / "plan.yaml").write_text(PLAN)
    assert "1 ok of 1 run" in _python(copied, "-m", "pybench.cli", "run", "plan.yaml")
    assert "acme 1.0" in _python(copied, "-m", "pybench.cli", "doctor")


def test_a_factor_is_a_field_with_a_group_that_workloads_take(copied: Path) -> None:
    """A group whose name is a title is written nowhere else; one without a factor has no section."""
    field = '    nap_s: float = factor("number", 0.5, "seconds of rest", "napping", answers=False, minimum=0)\n'
    _insert(copied / "case/factors/running.py", '    pinned: bool = factor("boolean"', field)
    _insert(copied / "catalogue/workloads.py", '    "copying", "file", "inputs",', '    "napping", "waking",\n')
    _insert(copied / "catalogue/workloads.py", '"copying"),', '"napping", ')
    code = "from pybench.case import Case; from documents.factors import factors_page; page = factors_page()\n"
    code += "print(Case(workload='h2d').nap_s, 'Waking' in page); print(page[page.index('## Napping') :][:200])"
    told, *section = _python(copied, "-c", code).splitlines()
    assert told == "0.5 False"
    assert section[:7] == ["## Napping", "", "Taken by `h2d`.", "", "### `nap_s`", "", "- seconds of rest"]
    assert '"nap_s"' in _python(copied, "-m", "pybench.cli", "schema")


@pytest.mark.slow
def test_a_quantiser_and_a_precision_are_rows_that_runtimes_name(copied: Path) -> None:
    row = 'Quantiser(name="acme", make="pybench.artefacts.acme:by_acme", calibrations={"minmax": "MinMax"},\n'
    row += 'types=("int8",), why_not="it is for integers", schemes=SCHEMES),\n'
    _insert(copied / "catalogue/quantisers.py", "_ROWS = (\n", row)
    (copied / "artefacts/acme.py").write_text(QUANTISER)
    contract = '    Precision("whole", ("int8",), floating="fp32", quantised="int8"),\n'
    _insert(copied / "catalogue/precisions.py", '    Precision("int4",', contract)
    _insert(copied / "catalogue/runtimes.py", 'anywhere("fp32", "int8"),\n        why_not=', 'anywhere("whole") | ')
    text = PLAN.replace("acme/tiny, runtime: torch", "mlp, runtime: onnxruntime, precision: whole, quantiser: acme")
    (copied.parent / "plan.yaml").write_text(text)
    assert "1 ok of 1 run" in _python(copied, "-m", "pybench.cli", "run", "plan.yaml")
    made = [json.loads(path.read_text()) for path in copied.parent.glob("results/own/artefacts/*/summary.json")]
    assert [one["labels"]["quantiser"] for one in made if "quantiser" in one["labels"]] == ["acme"]


def test_a_data_set_is_a_row_and_a_module_that_opens_it(copied: Path) -> None:
    row = 'DataSet(name="points", meaning="six points", task="regression", unit="point",\n'
    row += 'open="pybench.models.points:open_points", train="pybench.models.training.points:train"),\n'
    _insert(copied / "catalogue/data_sets.py", "_ROWS = (\n", row)
    (copied / "models/points.py").write_text(DATA)
    code = "from pybench.catalogue.code import named_code; from pybench.catalogue.data_sets import DATA_SETS\n"
    code += "import numpy as np; samples = named_code(DATA_SETS['points'].open)('test', None)\n"
    code += "print(len(samples.ids), samples.truth(np.array([1]))[0, 0])"
    assert _python(copied, "-c", code).split() == ["6", "2.0"]
    assert '"points"' in _python(copied, "-m", "pybench.cli", "schema")  # a plan can train on it


def test_a_caution_is_a_member_with_an_advice(copied: Path) -> None:
    member = '    DAMP = ("damp", "the air is damp", "close the window")\n'
    _insert(copied / "catalogue/cautions.py", "    NOT_STEADY = (\n", member)
    code = "from pybench.catalogue.cautions import CautionCode; from documents.rows import cautions_page\n"
    code += "print(CautionCode.DAMP.advice, '`damp`' in cautions_page())"
    assert _python(copied, "-c", code).strip() == "close the window True"


@pytest.mark.parametrize(
    ("file", "before"), [("reasons.py", "    GAP = (\n"), ("causes.py", "    NO_AUDIT = _invalid(\n")]
)
def test_a_reason_is_a_member_whose_names_are_required(copied: Path, file: str, before: str) -> None:
    _insert(copied / "catalogue" / file, before, '    DAMP = ("damp_<room>", "invalid", "the air is damp", "air it")\n')
    kind = "ReasonCode" if file == "reasons.py" else "Cause"
    code = "from pybench.catalogue.reasons import Cause, Reason, ReasonCode, reason_from_text\n"
    code += f"stored = Reason({kind}.DAMP, names=('cellar',)).stored_code; print(stored)\n"
    code += f"assert reason_from_text(stored).code is {kind}.DAMP\n"
    code += f"try:\n    Reason({kind}.DAMP)\nexcept ValueError:\n    print('refused')"
    assert _python(copied, "-c", code).split() == ["damp_cellar", "refused"]


def _insert(path: Path, before: str, text: str) -> None:
    """Next to an anchor: below the head of a list, or above a member."""
    content = path.read_text()
    assert content.count(before) == 1
    joined = before + text if before.startswith("_ROWS") else text + before
    path.write_text(content.replace(before, joined))


def _python(copied: Path, *arguments: str) -> str:
    """What Python prints with the copy in place of pybench."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYBENCH")}
    environment |= {"PYTHONPATH": str(copied.parent)}
    ended = subprocess.run(
        [sys.executable, "-P", *arguments], cwd=copied.parent, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
