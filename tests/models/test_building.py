# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pybench.case import Case
from pybench.catalogue.models import MODELS, Model
from pybench.errors import InputError, UsageError
from pybench.models.building import build, check_weights
from pybench.models.distilbert import DistilBert
from pybench.models.tinylm import Size, TinyLm
from pybench.models.unet3d import Unet3d
from tests.models.parameters import parameter_count


def test_the_sizes_in_the_headers_hold() -> None:
    assert parameter_count(build("digits-cnn")) == 25_978
    assert parameter_count(build("tinylm-tiny")) == 4_276_608
    assert parameter_count(build("tinylm-small")) == 20_058_624
    assert parameter_count(build("tinylm-large")) == 58_999_808
    in_head = 64 * (32_000 - 10)  # ten classes in place of tokens
    assert parameter_count(build("tinylm-classifier")) == 4_276_608 - in_head


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


@pytest.mark.parametrize(
    ("name", "parameters", "tensors", "shapes"),
    [
        # torchvision documents 138,357,544 and 3,504,872 parameters, timm 4.23 million (mobilenetv1_100); DistilBERT's
        # 66,362,880 and the head's 592,130 are what transformers counts for DistilBertForSequenceClassification.
        ("vgg16", 138_357_544, 32, {"features.28.bias": (512,), "classifier.0.weight": (4096, 25088)}),
        ("vgg16-cifar10", 14_728_266, 93, {"features.41.running_mean": (512,), "classifier.weight": (10, 512)}),
        ("mobilenet-v1", 4_231_976, 164,
         {"blocks.3.5.conv_pw.weight": (512, 512, 1, 1), "conv_stem.weight": (32, 3, 3, 3)}),
        ("mobilenet-v2", 3_504_872, 314,
         {"features.1.conv.0.0.weight": (32, 1, 3, 3), "features.17.conv.3.bias": (320,)}),
        ("distilbert", 66_362_880 + 592_130, 104,
         {"distilbert.transformer.layer.5.attention.out_lin.weight": (768, 768),
          "distilbert.embeddings.LayerNorm.bias": (768,)}),
        ("mlp", 85_002, 6, {"fc3.weight": (10, 256)}),
        ("unet3d", 19_072_899, 103, {"head.weight": (3, 64, 1, 1, 1)}),
    ],
)  # fmt: skip
def test_a_model_has_the_names_and_number_of_parameters_published(
    name: str, parameters: int, tensors: int, shapes: dict[str, tuple[int, ...]]
) -> None:
    model = build(name)
    state = model.state_dict()
    assert parameter_count(model) == parameters
    assert len(state) == tensors
    assert {key: tuple(state[key].shape) for key in shapes} == shapes
    assert MODELS[name].head in state
    assert len(state[MODELS[name].head]) == MODELS[name].outputs


def test_the_convolutions_of_the_3d_u_net_are_those_of_its_paper() -> None:
    """Cicek et al. count 19,069,955 parameters with three channels in; batch norm's are not among them."""
    model = Unet3d(classes=3, channels=3)
    norms = sum(p.numel() for m in model.modules() if isinstance(m, torch.nn.BatchNorm3d) for p in m.parameters())
    assert parameter_count(model) - norms == 19_069_955


def test_a_checkpoint_decides_how_many_ids_a_classifier_of_text_embeds(tmp_path: Path) -> None:
    torch.save(build("text-encoder", outputs=3, vocabulary=70).state_dict(), tmp_path / "few.pt")
    loaded = build("text-encoder", checkpoint=tmp_path / "few.pt")
    assert (loaded.embed.weight.shape[0], loaded.head.weight.shape[0]) == (70, 3)  # type: ignore[union-attr]


def test_a_checkpoint_decides_how_many_classes_there_are(tmp_path: Path) -> None:
    saved = build("digits-cnn", outputs=100)
    torch.save(saved.state_dict(), tmp_path / "hundred.pt")
    loaded = build("digits-cnn", checkpoint=tmp_path / "hundred.pt")
    assert torch.equal(loaded.get_parameter("fc.weight"), saved.get_parameter("fc.weight"))
    assert loaded(torch.zeros(1, 1, 8, 8)).shape == (1, 100)


def test_an_encoder_sees_every_token_and_adds_positions() -> None:
    model = DistilBert(layers=1).eval()
    ids = torch.arange(12).reshape(1, 12)
    changed, turned = ids.clone(), ids.flip(1)
    changed[0, 11] = 500
    turned[0, 0], turned[0, 11] = ids[0, 0], ids[0, 11]
    with torch.inference_mode():
        before = model(ids)
        assert before.shape == (1, 2)
        assert not torch.allclose(before, model(changed), atol=1e-5)
        assert not torch.allclose(before, model(turned), atol=1e-6)


def test_attention_written_out_is_torchs_own() -> None:
    attention = DistilBert(layers=1).distilbert.transformer.layer[0].attention
    x = torch.randn(2, 5, 768, generator=torch.Generator().manual_seed(0))
    heads = [
        linear(x).view(2, 5, 12, 64).transpose(1, 2) for linear in (attention.q_lin, attention.k_lin, attention.v_lin)
    ]
    fused = torch.nn.functional.scaled_dot_product_attention(*heads).transpose(1, 2).reshape(2, 5, 768)
    assert torch.allclose(attention(x), attention.out_lin(fused), atol=1e-6)


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
    wrong = build("digits-cnn").state_dict() | {"conv2.weight": torch.zeros(3, 3)}
    torch.save(wrong, tmp_path / "shape.pt")
    with pytest.raises(InputError, match=r"conv2\.weight is \[3, 3\], not \[32, 16, 3, 3\]"):
        build("digits-cnn", checkpoint=tmp_path / "shape.pt")


@pytest.mark.parametrize("suffix", ["pt", "safetensors"])
def test_weights_are_checked_by_their_shapes_as_when_they_are_loaded(tmp_path: Path, suffix: str) -> None:
    def saved(name: str, state: dict[str, torch.Tensor]) -> Path:
        path = tmp_path / f"{name}.{suffix}"
        torch.save(state, path) if suffix == "pt" else pytest.importorskip("safetensors.torch").save_file(state, path)
        return path

    own = build("digits-cnn", outputs=7).state_dict()
    check_weights(MODELS["digits-cnn"], saved("right", own))
    for name, state in {
        "missing": {name: value for name, value in own.items() if name != "fc.bias"},
        "shape": own | {"conv2.weight": torch.zeros(3, 3)},
    }.items():
        path, messages = saved(name, state), []
        for check in (check_weights, lambda row, path: build(row, checkpoint=path)):
            with pytest.raises(InputError, match=f"{name}.{suffix} does not fit digits-cnn") as raised:
                check(MODELS["digits-cnn"], path)
            messages.append(str(raised.value))
        assert messages[0] == messages[1]


@pytest.mark.parametrize("row", MODELS.values(), ids=lambda row: row.name)
def test_every_model_is_built_without_values_for_that(row: Model) -> None:
    shaped = Case(workload="infer", model=row.name, runtime="torch").model_row
    assert shaped is not None
    with torch.device("meta"):
        assert {parameter.device.type for parameter in build(shaped).parameters()} == {"meta"}


def test_ids_of_a_language_model_are_its_tokenizers_choice(tmp_path: Path) -> None:
    torch.save(build("tinylm-tiny", outputs=40_000).state_dict(), tmp_path / "more.pt")
    check_weights(MODELS["tinylm-tiny"], tmp_path / "more.pt")


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
