# SPDX-License-Identifier: Apache-2.0
"""Models of libraries in plans: named without the library, told from files, and identified by their config.json."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pybench.campaign.recipe import packages_of, recipes_of
from pybench.plan import Plan, resolve
from tests.support.making import write_classifier

Load = Callable[..., Plan]
Problems = Callable[..., list[str]]

ENTRY = "  - {workload: infer, model: MODEL, runtime: onnxruntime}\n"


def config(folder: Path, content: object = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content or {"model_type": "bert"})
    (folder / "config.json").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("model", ["timm/resnet50", "torchvision/r3d_18", "hf/bert", "timm/no-such-model"])
def test_a_name_is_taken_as_it_is(model: str, load: Load) -> None:
    case = load(ENTRY.replace("MODEL", model)).cases[0]
    assert (case.model, case.sources, case.model_row) == (model, (), None)
    assert case.library is not None
    assert not case.names_onnx


def test_a_plan_is_read_without_any_library(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(f"schema_version: 1\nname: test\nmatrix:\n{ENTRY.replace('MODEL', 'timm/resnet50')}")
    code = (
        "import sys; from pybench.plan import load_plan; "
        f"assert len(load_plan({str(path)!r}).cases) == 1; "
        "print({'timm', 'torch', 'torchvision', 'transformers'} & set(sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "set()"


def test_a_file_in_a_folder_that_is_called_like_a_library_is_written_with_a_dot(load: Load, tmp_path: Path) -> None:
    (tmp_path / "timm").mkdir()
    write_classifier(tmp_path / "timm" / "own.onnx")
    own = load(ENTRY.replace("MODEL", "./timm/own.onnx")).cases[0]
    assert own.names_onnx
    assert own.model == "./timm/own.onnx"
    assert load(ENTRY.replace("MODEL", "timm/own.onnx")).cases[0].library is not None


def test_a_folder_with_a_config_is_identified_by_it(load: Load, tmp_path: Path) -> None:
    config(tmp_path / "mine")
    by_folder = load(ENTRY.replace("MODEL", "./mine")).cases[0]
    assert by_folder.model == "mine/config.json"
    assert by_folder == load(ENTRY.replace("MODEL", "./mine/config.json")).cases[0]
    (tmp_path / "mine" / "model.safetensors").write_bytes(b"weights that are not asked for")
    assert load(ENTRY.replace("MODEL", "./mine")).cases[0] == by_folder
    config(tmp_path / "mine", {"model_type": "bert", "hidden_size": 64})
    assert load(ENTRY.replace("MODEL", "./mine")).cases[0].id != by_folder.id


def test_weights_are_a_file_or_a_folder_of_the_case(load: Load, tmp_path: Path) -> None:
    (config(tmp_path / "mine") / "model.safetensors").write_bytes(b"some weights")
    entry = ENTRY.replace("MODEL", "hf/bert, checkpoint: CHECKPOINT")
    for value in ("./mine", "mine/model.safetensors"):
        plan = load(entry.replace("CHECKPOINT", value))
        (case,) = plan.cases
        assert [factor for factor, _ in case.sources] == ["checkpoint"]
        assert resolve(plan, [case])["files"][case.checkpoint]["path"].startswith(str(tmp_path))
        assert dict(recipes_of(case)["model"].files) == {"checkpoint": case.checkpoint}


@pytest.mark.parametrize(
    ("runtime", "role", "kind"),
    [("torch", "program", "program"), ("torch-compile", "program", "program"), ("onnxruntime", "model", "onnx")],
)
def test_only_the_making_of_an_artefact_needs_the_library(runtime: str, role: str, kind: str, load: Load) -> None:
    case = load(ENTRY.replace("MODEL", "hf/bert").replace("onnxruntime", runtime)).cases[0]
    recipe = recipes_of(case)[role]
    assert recipe.kind == kind
    assert "transformers" in recipe.packages()
    assert "transformers" in packages_of(case)


def test_int8_is_made_of_the_exported_file(load: Load) -> None:
    case = load(ENTRY.replace("MODEL", "timm/resnet50, precision: int8")).cases[0]
    quantised = recipes_of(case)["model"]
    assert [recipe.kind for _, recipe in quantised.needs] == ["onnx"]
    assert list(quantised.packages()).count("timm") == 1  # of the export, and not of what builds on it


@pytest.mark.parametrize(
    ("model", "what"),
    [
        ("./empty", "4:30: `model`: empty is a folder without config.json"),
        ("./broken", "4:30: `model`: broken/config.json is no JSON"),
        ("./typeless", "4:30: `model`: typeless/config.json has no `model_type`"),
        ("./of_timm", "has no `model_type` (write `model: timm/resnet18`, and give the weights as `checkpoint`)"),
        ("timm/resnet50, image_size: 64", "`image_size` has no meaning for timm/resnet50: timm says what it takes"),
        ("hf/bert, path: rust", "`path` has no meaning for hf/bert: hf says what it takes"),
        ("hf/bert, shapes: x.y=3", "`shapes` has no meaning for hf/bert"),
        ("hf/bert, checkpoint: synthetic-100", "hf/bert is not trained on synthetic-100"),
        ("hf/bert, checkpoint: ./none.safetensors", "`checkpoint`: no such file: none.safetensors"),
        ("resnet50, checkpoint: ./typeless", "`checkpoint`: typeless is a folder (give the file in it)"),
        (
            "timm",
            "4:30: `model`: timm is a library, and names none of its models (a library's model is timm/NAME,",
        ),
        ("hf/", "4:30: `model`: hf is a library, and names none of its models (a library's model is timm/NAME,"),
        ("timmm/resnet50", "a library's model is timm/NAME, torchvision/NAME, hf/TYPE"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(model: str, what: str, problems: Problems, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    config(tmp_path / "broken", "{")
    config(tmp_path / "typeless", {"hidden_size": 64})
    config(tmp_path / "of_timm", {"architecture": "resnet18", "num_classes": 10})
    told = problems(ENTRY.replace("MODEL", model))
    assert len(told) == 1
    assert what in told[0]


def test_training_does_not_take_them(problems: Problems) -> None:
    told = problems("  - {workload: train, model: hf/bert, batch: 2}\n")
    assert "workload train takes a language model or an image model, not hf/bert" in told[0]


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        ("hf/bert", "give `checkpoint` weights of this model"),
        ("./mine", "give `checkpoint` weights of this model"),
        ("resnet50", "use `checkpoint: synthetic-100`, which trains it, or a file of weights"),
    ],
)
def test_random_weights_get_no_score(model: str, hint: str, problems: Problems, load: Load, tmp_path: Path) -> None:
    """Neither of a library's model nor of a built-in one; their speed and the error of their outputs do not need it."""
    (config(tmp_path / "mine") / "weights.safetensors").write_bytes(b"some weights")
    entry = (
        f"  - {{workload: WORKLOAD, model: {model}, runtime: onnxruntime, precision: int8, images: synthetic-100}}\n"
    )
    (told,) = problems(entry.replace("WORKLOAD", "accuracy"))
    named = "mine/config.json" if model == "./mine" else model
    assert f"4:33: workload accuracy needs trained weights, and those of {named} are random ({hint})" in told
    assert len(load(entry.replace("WORKLOAD", "infer")).cases) == 1
    weights = f"model: {model}, checkpoint: mine/weights.safetensors"
    assert len(load(entry.replace("WORKLOAD", "accuracy").replace(f"model: {model}", weights)).cases) == 1


GENERATED = "  - {workload: generate, model: MODEL, runtime: torch, seq_len: 16, new_tokens: 8}\n"


@pytest.mark.parametrize(
    "content",
    [
        {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 24},
        {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_positions": 24},
        {"model_type": "qwen2"},  # its library says the rest
    ],
)
def test_a_config_of_a_decoder_is_generated_with(content: dict[str, object], load: Load, tmp_path: Path) -> None:
    config(tmp_path / "mine", content)
    (case,) = load(GENERATED.replace("MODEL", "./mine")).cases
    assert case.library is not None
    assert "transformers" in packages_of(case)


@pytest.mark.parametrize(
    ("content", "model", "what"),
    [
        (
            {"model_type": "bert", "architectures": ["BertForSequenceClassification"]},
            "./mine",
            "(take a model whose class ends with ForCausalLM or LMHeadModel)",
        ),
        ({"model_type": "t5", "is_encoder_decoder": True}, "./mine", "4:33: mine/config.json has an encoder and a"),
        (
            {"model_type": "gpt2", "n_positions": 23},
            "./mine",
            "4:66: mine/config.json takes sequences of up to 23 tokens, and seq_len 16 with new_tokens 8 is 24",
        ),
        (
            {},
            "timm/resnet50",
            "takes a language model, not timm/resnet50 (one of tinylm-tiny, tinylm-small, tinylm-large, hf/TYPE)",
        ),
    ],
)
def test_what_continues_no_text_is_told_with_its_place(
    content: dict[str, object], model: str, what: str, problems: Problems, tmp_path: Path
) -> None:
    config(tmp_path / "mine", content)
    (told,) = problems(GENERATED.replace("MODEL", model))
    assert what in told


def test_lengths_by_default_are_judged_at_the_model(problems: Problems, tmp_path: Path) -> None:
    config(tmp_path / "mine", {"model_type": "gpt2", "n_positions": 128})
    (told,) = problems("  - {workload: generate, model: ./mine, runtime: torch}\n")
    assert "4:33: mine/config.json takes sequences of up to 128 tokens, and seq_len 128 with new_tokens" in told
