# SPDX-License-Identifier: Apache-2.0
"""Weights of a user in models of timm, torchvision and transformers. Without the extra `zoo` they are skipped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

pytest.importorskip("timm", reason="the extra `zoo` is not installed")
pytest.importorskip("transformers", reason="the extra `zoo` is not installed")

from pybench.errors import InputError
from pybench.models.zoo.build import build
from tests.models.zoo.small import TINY, built, config, fed

State = dict[str, Tensor]


def state_of(model: str, folder: Path, **given: int) -> State:
    """Tensors of a model, each with memory of its own."""
    return {name: tensor.clone() for name, tensor in built(model, folder, **given).module.state_dict().items()}


@pytest.mark.slow
def test_weights_of_a_file_and_of_a_folder_are_those_of_the_model(tmp_path: Path) -> None:
    for model, folder in (("bert", tmp_path / "encoder"), ("gpt2", tmp_path / "decoder")):
        folder.mkdir()
        given = built(model, folder, seed=5).module
        state = {name: tensor.clone() for name, tensor in given.state_dict().items() if name != "lm_head.weight"}
        save_file(state, folder / "model.safetensors")  # tied weights once, as save_pretrained writes them
        for weights in (folder, folder / "model.safetensors"):
            loaded = built(model, folder, weights=weights).module
            for name, tensor in given.state_dict().items():
                assert torch.equal(loaded.state_dict()[name], tensor), name


def test_weights_of_a_model_with_a_head_fit_the_one_without(tmp_path: Path) -> None:
    given = built("bert", tmp_path, seed=5).module.state_dict()
    state = {f"bert.{name}": tensor.clone() for name, tensor in given.items()}
    save_file({**state, "classifier.weight": torch.zeros(2, 16)}, tmp_path / "model.safetensors")
    loaded = built("bert", tmp_path, weights=tmp_path / "model.safetensors").module.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in given.items())


def test_timm_has_as_many_classes_as_the_weights(tmp_path: Path) -> None:
    import timm

    save_file(timm.create_model("test_resnet", num_classes=7).state_dict(), tmp_path / "seven.safetensors")
    one = build("timm/test_resnet", weights=tmp_path / "seven.safetensors")
    with torch.inference_mode():
        assert one.module(*fed(one)).shape == (3, 7)


def test_weights_that_do_not_fit_name_the_first_tensor(tmp_path: Path) -> None:
    state = {name: tensor.clone() for name, tensor in built("bert", tmp_path).module.state_dict().items()}
    name = "encoder.layer.0.attention.self.query.weight"
    path = tmp_path / "model.safetensors"
    save_file({**state, name: torch.zeros(3, 16)}, path)
    with pytest.raises(InputError, match=rf"{name} is \[3, 16\] in the file, and \[16, 16\] in the model"):
        built("bert", tmp_path, weights=path)
    del state[name]
    save_file(state, path)
    with pytest.raises(InputError, match=rf"does not fit ./config.json: {name} is missing"):
        built("bert", tmp_path, weights=path)
    with pytest.raises(InputError, match=r"model.safetensors does not fit timm/test_vit: cls_token is missing"):
        build("timm/test_vit", weights=path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"contains no \.safetensors"):
        build("timm/test_vit", weights=tmp_path / "empty")


def test_a_deeper_network_is_refused(tmp_path: Path) -> None:
    """It has all tensors of the shallower one."""
    deeper = tmp_path / "deeper"
    deeper.mkdir()
    content = {**TINY, "model_type": "bert", "num_hidden_layers": 3}
    state = build("./config.json", config=config(deeper, content)).module.state_dict()
    path = tmp_path / "model.safetensors"
    for start in ("", "bert."):
        save_file({f"{start}{name}": tensor.clone() for name, tensor in state.items()}, path)
        what = r"model\.safetensors does not fit ./config.json: the model has no .*encoder.layer.2.*"
        with pytest.raises(InputError, match=what) as raised:
            built("bert", tmp_path, weights=path)
        assert raised.value.hint is not None
        assert "config.json" in raised.value.hint


def test_what_earlier_versions_stored_or_named_otherwise_fits(tmp_path: Path) -> None:
    given = state_of("bert", tmp_path, seed=5)
    old = {
        f"bert.{name}".replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor
        for name, tensor in given.items()
    }
    assert "bert.embeddings.LayerNorm.gamma" in old
    positions = {"bert.embeddings.position_ids": torch.arange(512)}
    save_file({**old, **positions, "cls.predictions.bias": torch.zeros(99)}, tmp_path / "model.safetensors")
    loaded = built("bert", tmp_path, weights=tmp_path / "model.safetensors").module.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in given.items())


def test_what_the_library_saved_under_other_names_fits(tmp_path: Path) -> None:
    """transformers saves some models, such as ViT, under names that its own modules no longer have."""
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {name: value for name, value in TINY.items() if name != "vocab_size"}
    given = ViTForImageClassification(ViTConfig(**sizes, image_size=16, patch_size=8, num_labels=7)).eval()
    given.save_pretrained(tmp_path)
    one = build("./config.json", config=tmp_path / "config.json", weights=tmp_path)
    images = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(one.module(images), given(images).logits)


def test_masks_that_earlier_versions_of_gpt2_stored_fit(tmp_path: Path) -> None:
    state = {name.removeprefix("transformer."): tensor for name, tensor in state_of("gpt2", tmp_path).items()}
    del state["lm_head.weight"]
    save_file({**state, "h.0.attn.bias": torch.ones(1, 1, 64, 64)}, tmp_path / "model.safetensors")
    built("gpt2", tmp_path, weights=tmp_path / "model.safetensors")


def test_a_model_without_a_head_has_no_use_for_a_pooler(tmp_path: Path) -> None:
    state = {f"bert.{name}": tensor for name, tensor in state_of("bert", tmp_path).items()}
    poolers = [name for name in state if ".pooler." in name]
    assert poolers
    for name in poolers:
        del state[name]
    save_file(state, tmp_path / "model.safetensors")
    built("bert", tmp_path, weights=tmp_path / "model.safetensors")


def test_the_pooler_of_another_task_is_left_out(tmp_path: Path) -> None:
    content = {**TINY, "model_type": "bert", "architectures": ["BertForMaskedLM"]}
    masked = build("./config.json", config=config(tmp_path, content)).module
    state = {name: tensor.clone() for name, tensor in masked.state_dict().items()}
    state["bert.pooler.dense.weight"] = torch.zeros(16, 16)
    state["cls.seq_relationship.weight"] = torch.zeros(2, 16)
    save_file(state, tmp_path / "model.safetensors")
    build("./config.json", config=tmp_path / "config.json", weights=tmp_path)


def test_a_folder_with_two_forms_of_the_weights_has_one_that_counts(tmp_path: Path) -> None:
    state = state_of("bert", tmp_path, seed=5)
    names = list(state)
    save_file({name: state[name] for name in names[:5]}, tmp_path / "model-00001-of-00002.safetensors")
    save_file({name: state[name] for name in names[5:]}, tmp_path / "model-00002-of-00002.safetensors")
    save_file({"layers.0.wq": torch.zeros(2)}, tmp_path / "consolidated.safetensors")
    index = {name: f"model-0000{1 + (number >= 5)}-of-00002.safetensors" for number, name in enumerate(names)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}), encoding="utf-8")
    loaded = built("bert", tmp_path, weights=tmp_path).module.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in state.items())

    for content in ({}, {"weight_map": []}, {"weight_map": {"pooler.dense.bias": "../model.safetensors"}}):
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(InputError, match=r"index\.json lists no files of weights in its folder"):
            built("bert", tmp_path, weights=tmp_path)
    (tmp_path / "model.safetensors.index.json").unlink()
    save_file(state, tmp_path / "whole.safetensors")
    with pytest.raises(InputError, match=r"contains .* in two files"):
        built("bert", tmp_path, weights=tmp_path)


def test_a_count_of_batches_may_be_missing(tmp_path: Path) -> None:
    state = state_of("timm/test_resnet", tmp_path, seed=5)
    fewer = {name: tensor for name, tensor in state.items() if not name.endswith("num_batches_tracked")}
    assert len(fewer) < len(state)
    save_file(fewer, tmp_path / "model.safetensors")
    loaded = build("timm/test_resnet", weights=tmp_path / "model.safetensors").module.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in fewer.items())


def test_a_distilled_model_of_timm_has_as_many_classes_as_the_weights(tmp_path: Path) -> None:
    import timm

    name = "deit_tiny_distilled_patch16_224"
    save_file(timm.create_model(name, num_classes=7).state_dict(), tmp_path / "seven.safetensors")
    one = build(f"timm/{name}", weights=tmp_path / "seven.safetensors")
    with torch.inference_mode():
        assert one.module(*fed(one)).shape == (3, 7)


def test_torchvision_has_as_many_classes_as_the_weights(tmp_path: Path) -> None:
    from torchvision import models

    torch.save(models.squeezenet1_1(num_classes=7).state_dict(), tmp_path / "seven.pth")
    one = build("torchvision/squeezenet1_1", weights=tmp_path / "seven.pth")
    with torch.inference_mode():
        assert one.module(*fed(one)).shape == (3, 7)


def test_a_segmenting_model_takes_its_librarys_checkpoint_without_the_second_head(tmp_path: Path) -> None:
    from torchvision import models

    module = models.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None).eval()
    state = {**module.state_dict(), "aux_classifier.0.weight": torch.zeros(4)}
    torch.save(state, tmp_path / "model.pth")
    one = build("torchvision/lraspp_mobilenet_v3_large", weights=tmp_path / "model.pth")
    images = torch.randn(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(one.module(images), module(images)["out"])


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (float("nan"), "has NaN or infinite values"),
        (float("inf"), "has NaN or infinite values"),
        (None, "has whole numbers in the file"),
    ],
)
def test_weights_that_are_no_real_numbers_are_refused_by_name(tmp_path: Path, value: float | None, told: str) -> None:
    import timm

    state = {name: tensor.clone() for name, tensor in timm.create_model("test_resnet").state_dict().items()}
    name = next(name for name in state if name.endswith("weight"))
    if value is None:
        state[name] = state[name].to(torch.int32)
    else:
        state[name].view(-1)[3] = value
    save_file(state, tmp_path / "odd.safetensors")
    with pytest.raises(InputError, match=rf"{name} {told}"):
        build("timm/test_resnet", weights=tmp_path / "odd.safetensors")
