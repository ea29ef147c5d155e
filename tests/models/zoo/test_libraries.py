# SPDX-License-Identifier: Apache-2.0
"""Models of timm, torchvision and transformers: built, exported twice, and run without their library.

Their libraries are imported once for all of these tests. Without the extra `zoo` they are skipped.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("timm", reason="the extra `zoo` is not installed")
pytest.importorskip("transformers", reason="the extra `zoo` is not installed")

from pybench.errors import InputError
from pybench.models.export import OUTPUT_NAME, Example, export_module
from pybench.models.zoo.build import build, inputs_of
from pybench.models.zoo.feeds import KEY, feeds_from_text, feeds_to_text
from pybench.models.zoo.program import example, free_sizes, read_facts, read_program, refused_export, write_program
from pybench.runtimes import onnxruntime
from tests.models.zoo.small import TINY, built, config, fed

pytestmark = pytest.mark.slow  # libraries are imported, and models exported


@pytest.mark.parametrize(
    ("model", "inputs", "outputs"),
    [
        ("timm/test_resnet", ["images"], (3, 1000)),
        ("timm/test_vit", ["images"], (3, 1000)),
        ("torchvision/mc3_18", ["images"], (3, 400)),
        ("bert", ["input_ids", "attention_mask"], (3, 7, 16)),
        ("gpt2", ["input_ids", "attention_mask"], (3, 7, 99)),
    ],
)
def test_the_program_and_the_onnx_file_give_what_the_module_gives(
    model: str, inputs: list[str], outputs: tuple[int, ...], tmp_path: Path
) -> None:
    one = built(model, tmp_path, fused=True)
    assert [feed.name for feed in one.feeds.inputs] == inputs
    tensors = fed(one)
    with torch.inference_mode():
        expected = one.module(*tensors)
    assert expected.shape == outputs
    write_program(one, torch.float32, tmp_path / "model.pt2", model, {KEY: feeds_to_text(one.feeds)})
    assert feeds_from_text(read_facts(tmp_path / "model.pt2")[KEY]) == one.feeds
    with torch.inference_mode():
        torch.testing.assert_close(read_program(tmp_path / "model.pt2", "cpu").eval()(*tensors), expected)

    products = built(model, tmp_path)  # attention as products: another way to the same numbers
    given = Example(example(products.feeds), free_sizes(products.feeds), tuple(inputs), (OUTPUT_NAME,))
    export_module(products.module, given, tmp_path / "model.onnx", {})
    session = onnxruntime.open_session(tmp_path / "model.onnx", precision="fp32", threads=1, device="cpu")
    arrays = {name: tensor.numpy() for name, tensor in zip(inputs, tensors, strict=True)}
    np.testing.assert_allclose(session.run(arrays)[0], expected.numpy(), rtol=1e-3, atol=1e-4)


def test_seeds_decide_the_weights_and_nothing_else_changes(tmp_path: Path) -> None:
    before = torch.get_rng_state()
    first, again, other = (built("bert", tmp_path, seed=seed).module.state_dict() for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    name = "embeddings.word_embeddings.weight"
    assert torch.equal(first[name], again[name])
    assert not torch.equal(first[name], other[name])


def test_a_program_computes_in_the_type_that_it_was_exported_in(tmp_path: Path) -> None:
    one = built("bert", tmp_path, fused=True)
    write_program(one, torch.bfloat16, tmp_path / "model.pt2", "bert", {})
    module = read_program(tmp_path / "model.pt2", "cpu")
    assert {parameter.dtype for parameter in module.parameters()} == {torch.bfloat16}
    with torch.inference_mode():
        assert module(*fed(one)).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("timm/resnet5", "did you mean timm/resnet50"),
        ("torchvision/r3d_81", "did you mean torchvision/r3d_18"),
        ("hf/bret", "did you mean hf/bert"),
    ],
)
@pytest.mark.parametrize("asked", [inputs_of, build])
def test_an_unknown_name_has_the_nearest_ones_as_its_hint(
    asked: Callable[[str], object], model: str, hint: str
) -> None:
    with pytest.raises(InputError, match=f"{model}: .* has no .* '{model.split('/')[1]}'") as raised:
        asked(model)
    assert raised.value.hint is not None
    assert raised.value.hint.startswith(hint)


@pytest.mark.parametrize("asked", [inputs_of, build])
def test_what_cannot_be_fed_or_built_says_so(asked: Callable[..., object], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="hf/t5 has an encoder and a decoder"):
        asked("hf/t5")
    with pytest.raises(InputError, match="hf/whisper has an encoder and a decoder"):
        asked("hf/whisper")
    with pytest.raises(InputError, match="torchvision/fasterrcnn_resnet50_fpn returns as many boxes as an image"):
        asked("torchvision/fasterrcnn_resnet50_fpn")
    with pytest.raises(InputError, match="torchvision/raft_small takes two images at once"):
        asked("torchvision/raft_small")
    with pytest.raises(InputError, match="has no type no-such-type"):
        asked("./config.json", config=config(tmp_path, {"model_type": "no-such-type"}))
    with pytest.raises(InputError, match=r"\./config.json cannot be built: "):
        asked("./config.json", config=config(tmp_path, {"model_type": "bert", **TINY, "num_attention_heads": 3}))


@pytest.mark.parametrize(
    "model", ["timm/test_resnet", "timm/test_vit", "torchvision/mc3_18", "torchvision/fcn_resnet50"]
)
def test_what_a_model_is_fed_with_is_known_before_it_is_built(model: str) -> None:
    assert inputs_of(model) == build(model).feeds


def test_what_a_config_is_fed_with_is_known_before_it_is_built(tmp_path: Path) -> None:
    for content in ({"model_type": "bert", **TINY}, {"model_type": "roberta", **TINY, "max_position_embeddings": 34}):
        path = config(tmp_path, content)
        assert inputs_of("./config.json", config=path) == build("./config.json", config=path).feeds


def test_a_model_beyond_the_memory_still_says_what_it_is_fed_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybench.models.zoo.transformers.available_bytes", lambda: 1)
    assert [feed.name for feed in inputs_of("hf/bert").inputs] == ["input_ids", "attention_mask"]


def test_a_model_beyond_the_memory_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pybench.models.zoo.transformers.available_bytes", lambda: 200_000_000)
    what = r"hf/bert has 0\.1 billion parameters: its export needs 0\.9 GB of memory, and 0\.2 GB are available"
    with pytest.raises(InputError, match=what):
        build("hf/bert")


def test_roberta_has_no_place_for_as_many_tokens_as_its_table_has_rows(tmp_path: Path) -> None:
    content = {**TINY, "model_type": "roberta", "max_position_embeddings": 34}
    one = build("./config.json", config=config(tmp_path, content))
    assert one.feeds.longest == 32  # the rows of padding and before are not used
    ids, mask = torch.full((1, 32), 5), torch.ones(1, 32, dtype=torch.int64)
    with torch.inference_mode():
        assert one.module(ids, mask).shape == (1, 32, 16)
    assert built("bert", tmp_path).feeds.longest == 512


def test_a_model_is_in_fp32_whatever_its_config_says(tmp_path: Path) -> None:
    one = build("./config.json", config=config(tmp_path, {**TINY, "model_type": "bert", "torch_dtype": "float16"}))
    assert {parameter.dtype for parameter in one.module.parameters()} == {torch.float32}


def test_every_layer_of_random_weights_counts() -> None:
    """timm's ResNets begin training with residual branches that are multiplied by zero."""
    module = build("timm/test_resnet").module
    scales = {name: part.weight for name, part in module.named_modules() if isinstance(part, torch.nn.BatchNorm2d)}
    assert all(scale.any() for scale in scales.values())
    assert (scales["layer1.0.bn2"] == 1).all()


def test_what_torch_cannot_export_says_so() -> None:
    def unbounded() -> None:
        raise RuntimeError("\n\nCould not guard on data\nmore")

    what = r"cannot be exported by torch .*: RuntimeError: Could not guard on data"
    with pytest.raises(InputError, match=what), refused_export("a model"):
        unbounded()


@pytest.fixture
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_model_that_asks_for_the_network_is_refused(listening: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import timm

    def download(*_: Any, **__: Any) -> None:
        socket.create_connection(("127.0.0.1", listening))

    monkeypatch.setattr(timm, "create_model", download)
    with pytest.raises(InputError, match="timm/test_vit asks for the network"):
        build("timm/test_vit")
    socket.create_connection(("127.0.0.1", listening)).close()  # refused only while a model is built
