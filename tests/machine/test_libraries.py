# SPDX-License-Identifier: Apache-2.0
"""A model that its library does not have, and weights that do not fit, are errors before the first run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.errors import InputError, RefusedValuesError
from pybench.machine import Machine

KNOWN = Case(workload="infer", model="torchvision/r3d_18", runtime="torch", device="cpu")
UNKNOWN = KNOWN.with_factors(model="torchvision/r3d_81")
_HERE = {"available": True}
FACTS = {"machine": _HERE, "torch": {**_HERE, "cuda_devices": []}, "torchvision": _HERE}


@pytest.mark.usefixtures("ready_workers")
@pytest.mark.skipif(find_spec("torchvision") is None, reason="the extra `zoo` is not installed")
def test_a_worker_is_asked_for_the_names() -> None:
    with pytest.raises(InputError, match="torchvision has no model 'r3d_81'") as raised:
        Machine(FACTS).open_files([KNOWN, UNKNOWN], {KNOWN.id, UNKNOWN.id}, {})
    assert raised.value.hint is not None
    assert "torchvision/r3d_18" in raised.value.hint


@pytest.mark.usefixtures("ready_workers")
@pytest.mark.skipif(find_spec("torchvision") is None, reason="the extra `zoo` is not installed")
def test_several_unknown_names_are_one_error() -> None:
    other = KNOWN.with_factors(model="torchvision/no_such_net")
    with pytest.raises(RefusedValuesError) as raised:
        Machine(FACTS).open_files([UNKNOWN, other], {UNKNOWN.id, other.id}, {})
    assert [(one.factor, one.value) for one in raised.value.values] == [
        ("model", "torchvision/r3d_81"), ("model", "torchvision/no_such_net"),
    ]  # fmt: skip
    first, second = raised.value.message.splitlines()
    assert first.startswith(
        "`model`: torchvision/r3d_81: torchvision has no model 'r3d_81' (did you mean torchvision/r3d_18"
    )
    assert second.startswith("`model`: torchvision/no_such_net: torchvision has no model 'no_such_net'")


@pytest.mark.usefixtures("ready_workers")
@pytest.mark.skipif(find_spec("transformers") is None, reason="the extra `zoo` is not installed")
def test_a_config_of_a_type_that_there_is_not_is_told_before_the_runs(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "nonsense"}')
    case = KNOWN.with_factors(model="mine/config.json", sources=(("model", "6" * 64),))
    with pytest.raises(RefusedValuesError, match=r"transformers .* has no type nonsense") as raised:
        Machine({**FACTS, "transformers": _HERE}).open_files([case], {case.id}, {"mine/config.json": str(path)})
    assert raised.value.values[0].value == "mine/config.json"


@pytest.mark.usefixtures("ready_workers")
@pytest.mark.skipif(find_spec("torchvision") is None, reason="the extra `zoo` is not installed")
def test_images_are_for_models_that_take_images() -> None:
    judged = KNOWN.with_factors(workload="accuracy", images="synthetic-100")
    with pytest.raises(
        RefusedValuesError, match=r"torchvision/r3d_18: it takes images \[None, 3, 16, 112, 112\] float32, not"
    ):
        Machine(FACTS).open_files([KNOWN, judged], {KNOWN.id, judged.id}, {})
    resnet = judged.with_factors(model="torchvision/resnet18")
    assert Machine(FACTS).open_files([resnet], {resnet.id}, {}).refused == {}


def test_no_library_is_asked_for_cases_that_have_their_runs_or_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybench.machine.opening._ask", lambda *_: pytest.fail("a worker was asked"))
    assert Machine(FACTS).open_files([UNKNOWN], set(), {}).refused == {}
    without = {**FACTS, "torchvision": {"available": False, "why": "No package"}}
    machine = Machine(without).open_files([UNKNOWN], {UNKNOWN.id}, {})
    refusal = machine.unsupported(UNKNOWN)
    assert refusal is not None
    assert refusal.reason.stored_code == "no_torchvision"


@pytest.mark.usefixtures("ready_workers")
@pytest.mark.skipif(find_spec("transformers") is None, reason="the extra `zoo` is not installed")
def test_a_sequence_beyond_the_models_positions_is_told_before_the_runs() -> None:
    machine = Machine({**FACTS, "transformers": _HERE})
    cases = [KNOWN.with_factors(model="hf/bert", seq_len=seq_len) for seq_len in (512, 513)]
    with pytest.raises(RefusedValuesError, match="hf/bert has 512 positions, the case asks for seq_len 513"):
        machine.open_files(cases, {case.id for case in cases}, {})
    assert machine.open_files(cases[:1], {cases[0].id}, {}).refused == {}


@pytest.mark.usefixtures("ready_workers")
@pytest.mark.skipif(find_spec("transformers") is None, reason="the extra `zoo` is not installed")
def test_what_cannot_be_generated_with_is_told_before_the_runs() -> None:
    machine = Machine({**FACTS, "transformers": _HERE})
    generated = KNOWN.with_factors(workload="generate", model="hf/gpt2", seq_len=1000, new_tokens=24)
    inferred = KNOWN.with_factors(model="hf/bert")
    fitting = [generated, inferred]
    assert machine.open_files(fitting, {case.id for case in fitting}, {}).refused == {}
    wrong = [generated.with_factors(new_tokens=25), generated.with_factors(model="hf/bert", seq_len=8)]
    with pytest.raises(RefusedValuesError) as raised:
        machine.open_files([inferred, *wrong], {case.id for case in (inferred, *wrong)}, {})
    positions, encoder = raised.value.message.splitlines()
    assert "hf/gpt2 has 1024 positions, the case asks for seq_len 1000 and new_tokens 25" in positions
    assert "hf/bert is built as BertModel, which does not continue text" in encoder


@pytest.mark.usefixtures("ready_workers")
def test_all_broken_files_are_one_error(tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("first.onnx", "second.onnx")}
    for path in paths.values():
        path.write_bytes(b"no model")
    cases = [
        Case(
            workload="infer",
            model=name,
            runtime="onnxruntime",
            device="cpu",
            batch=batch,
            sources=(("model", "6" * 64),),
        )
        for name in paths
        for batch in (1, 2)
    ]
    facts = {**FACTS, "onnx": _HERE, "onnxruntime": {**_HERE, "providers": ["CPUExecutionProvider"]}}
    files = {name: str(path) for name, path in paths.items()}
    with pytest.raises(RefusedValuesError) as raised:
        Machine(facts).open_files(cases, {case.id for case in cases}, files)
    assert [(one.factor, one.value) for one in raised.value.values] == [("model", name) for name in paths]
    assert str(tmp_path) not in raised.value.message


WEIGHTS = Case(
    workload="infer", model="digits-cnn", runtime="torch", device="cpu", checkpoint="mine.pt",
    sources=(("checkpoint", "6" * 64),),
)  # fmt: skip


@pytest.mark.usefixtures("ready_workers")
def test_weights_of_another_model_are_one_error(tmp_path: Path) -> None:
    import torch

    torch.save({"fc.weight": torch.zeros(3, 3)}, tmp_path / "mine.pt")
    cases = [WEIGHTS, WEIGHTS.with_factors(batch=2)]
    with pytest.raises(InputError, match=r"mine\.pt does not fit digits-cnn: \d+ missing") as raised:
        Machine(FACTS).open_files(cases, {case.id for case in cases}, {"mine.pt": str(tmp_path / "mine.pt")})
    assert raised.value.hint == "give weights of this model, at this `image_size`"


def test_weights_of_cases_that_have_their_runs_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybench.machine.opening._ask", lambda *_: pytest.fail("a worker was asked"))
    assert Machine(FACTS).open_files([WEIGHTS], set(), {}).refused == {}
