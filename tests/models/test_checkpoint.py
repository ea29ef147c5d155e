# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pybench.catalogue.models import MODELS
from pybench.errors import InputError
from pybench.models.building import build
from pybench.models.checkpoint import difference, read_state
from pybench.models.distilbert import DistilBert

STATE = {"fc.weight": torch.ones(2, 3), "fc.bias": torch.zeros(2)}


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "model.", "_orig_mod.module."])
@pytest.mark.parametrize("wrapping", [None, "state_dict", "model_state_dict", "model"])
def test_the_wrappings_of_trainers_are_taken_off(tmp_path: Path, prefix: str, wrapping: str | None) -> None:
    stored = {prefix + name: value for name, value in STATE.items()}
    torch.save({wrapping: stored, "epoch": 3} if wrapping else stored, tmp_path / "weights.pt")
    assert read_state(tmp_path / "weights.pt", MODELS["resnet50"]).keys() == STATE.keys()


def test_a_bare_distilbert_gets_its_prefix_and_parts_that_do_not_classify_are_left_out(tmp_path: Path) -> None:
    own = DistilBert(layers=1)
    bare = {name.removeprefix("distilbert."): value for name, value in own.state_dict().items()}
    others = {"embeddings.position_ids": torch.arange(512), "vocab_projector.bias": torch.zeros(30_522)}
    torch.save(bare | others, tmp_path / "bare.pt")
    state = read_state(tmp_path / "bare.pt", MODELS["distilbert"])
    assert difference(own, state) == ""
    torch.save({name: value for name, value in bare.items() if "classifier" not in name}, tmp_path / "headless.pt")
    with pytest.raises(InputError, match=r"missing \(classifier\.bias, classifier\.weight, distilbert\.tr"):
        build("distilbert", checkpoint=tmp_path / "headless.pt")


def test_a_difference_lists_missing_and_unknown_names_and_shapes() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    assert difference(model, {"0.weight": torch.zeros(3, 4), "head": torch.zeros(1)}) == (
        "1 missing (0.bias); 1 unknown (head); 0.weight is [3, 4], not [3, 2]"
    )


def test_safetensors_are_read_and_a_broken_file_is_named(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file(build("digits-cnn", seed=3).state_dict(), tmp_path / "weights.safetensors")
    loaded = build("digits-cnn", checkpoint=tmp_path / "weights.safetensors")
    assert torch.equal(loaded.get_parameter("fc.weight"), build("digits-cnn", seed=3).get_parameter("fc.weight"))
    (tmp_path / "weights.safetensors").write_bytes(b"\x08\x00\x00\x00\x00\x00\x00\x00nonsense")
    with pytest.raises(InputError, match=r"weights\.safetensors is not a readable safetensors file"):
        build("digits-cnn", checkpoint=tmp_path / "weights.safetensors")


def test_a_safetensors_without_tensors_is_named(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_file({}, tmp_path / "empty.safetensors")
    with pytest.raises(InputError, match=r"empty\.safetensors contains no tensors"):
        build("digits-cnn", checkpoint=tmp_path / "empty.safetensors")


def test_a_count_of_batches_may_be_missing(tmp_path: Path) -> None:
    state = build("mobilenet-v2", seed=3).state_dict()
    for name in [name for name in state if name.endswith("num_batches_tracked")]:
        del state[name]
    torch.save(state, tmp_path / "weights.pth")
    build("mobilenet-v2", checkpoint=tmp_path / "weights.pth")
