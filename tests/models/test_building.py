# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pybench.errors import InputError, UsageError
from pybench.models.building import build, parameter_count
from pybench.models.catalogue import BUILT_IN
from pybench.models.tinylm import SIZES, Size, TinyLm


def test_the_catalogue_and_the_sizes_in_the_headers_hold() -> None:
    assert parameter_count(build("digits-cnn")) == 25_978
    assert parameter_count(build("tinylm-small")) == 20_058_624
    assert set(BUILT_IN) == {"resnet50", "digits-cnn", *SIZES}


def test_resnet50_has_the_names_and_number_of_parameters_of_torchvision() -> None:
    model = build("resnet50")
    state = model.state_dict()
    assert parameter_count(model) == 25_557_032  # as torchvision documents
    assert len(state) == 320
    for name, shape in {
        "conv1.weight": (64, 3, 7, 7),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer1.0.downsample.1.running_var": (256,),
        "layer3.5.conv2.weight": (256, 256, 3, 3),
        "layer4.2.bn3.num_batches_tracked": (),
        "fc.weight": (1000, 2048),
    }.items():
        assert state[name].shape == shape


def test_equal_seeds_give_equal_weights_and_leave_the_global_state_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    one, same, other = build("digits-cnn", seed=1), build("digits-cnn", seed=1), build("digits-cnn", seed=2)
    assert torch.rand(1) == expected
    assert torch.equal(one.get_parameter("fc.weight"), same.get_parameter("fc.weight"))
    assert not torch.equal(one.get_parameter("fc.weight"), other.get_parameter("fc.weight"))


def test_a_token_sees_those_before_it_and_none_after() -> None:
    model = TinyLm(Size(64, 2, 2), vocabulary=50).eval()
    ids = torch.arange(10).reshape(1, 10)
    changed = ids.clone()
    changed[0, 6] = 40
    with torch.inference_mode():
        before, after = model.every_position(ids), model.every_position(changed)
        assert torch.allclose(model(ids), before[:, -1], atol=1e-6)
    assert torch.allclose(before[:, :6], after[:, :6], atol=1e-6)
    assert not torch.allclose(before[:, 6:], after[:, 6:], atol=1e-3)


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    saved = build("digits-cnn", seed=3)
    torch.save({"state_dict": saved.state_dict(), "epoch": 4}, tmp_path / "weights.pt")
    loaded = build("digits-cnn", checkpoint=tmp_path / "weights.pt")
    assert torch.equal(saved.get_parameter("fc.weight"), loaded.get_parameter("fc.weight"))


def test_a_checkpoint_of_another_model_says_what_differs(tmp_path: Path) -> None:
    torch.save({"fc.weight": torch.zeros(3, 3), "head": torch.zeros(1)}, tmp_path / "other.pt")
    with pytest.raises(
        InputError, match=r"other\.pt does not fit digits-cnn: 19 missing \(bn1.*14 more\); 1 unknown \(head\)"
    ):
        build("digits-cnn", checkpoint=tmp_path / "other.pt")
    wrong = build("digits-cnn").state_dict() | {"fc.weight": torch.zeros(3, 3)}
    torch.save(wrong, tmp_path / "shape.pt")
    with pytest.raises(InputError, match=r"fc.weight is \[3, 3\], not \[10, 256\]"):
        build("digits-cnn", checkpoint=tmp_path / "shape.pt")


@pytest.mark.parametrize("content", [b"", b"nothing of the kind", b"PK\x03\x04 cut"])
def test_a_file_that_is_no_checkpoint_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "weights.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"weights\.pt is not a readable torch checkpoint") as raised:
        build("digits-cnn", checkpoint=tmp_path / "weights.pt")
    assert "weights_only" not in str(raised.value), "torch's advice to run what the file holds is not ours"


def test_a_truncated_checkpoint_is_named(tmp_path: Path) -> None:
    torch.save(build("digits-cnn").state_dict(), tmp_path / "weights.pt")
    content = (tmp_path / "weights.pt").read_bytes()
    (tmp_path / "weights.pt").write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"weights\.pt is not a readable torch checkpoint"):
        build("digits-cnn", checkpoint=tmp_path / "weights.pt")


def test_an_unknown_model_names_the_known_ones() -> None:
    with pytest.raises(UsageError, match="resnet50, vgg16"):
        build("resnet51")
