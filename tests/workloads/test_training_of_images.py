# SPDX-License-Identifier: Apache-2.0
"""Training of image models: any size and precision, one batch that stays, and the steps that a scaled loss skips."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from pybench.case import Case
from pybench.case.yields import metrics_of
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.models import MODELS
from pybench.errors import InputError
from pybench.measurement.result import RunRequest
from pybench.models.building import build
from pybench.workloads import train
from pybench.workloads.train import Trainer
from tests.support.making import run

DIGITS = Case(
    workload="train", model="digits-cnn", runtime="torch", device="cpu", batch=4, threads=1, iterations=4,
    warmup_iterations=1, idle_window_s=0.0,
)  # fmt: skip


def trainer_of(case: Case) -> Trainer:
    return Trainer(RunRequest(case=case, block=1, attempt=1, seed=3, artefacts={}, files={}), "cpu", None)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "amp-bf16"])
@pytest.mark.parametrize("image_size", [None, 12])
def test_an_image_model_learns_its_batch(precision: str, image_size: int | None) -> None:
    result = run(DIGITS.with_factors(precision=precision, image_size=image_size, iterations=12))
    first, last = (result.metrics[name].value for name in ("loss_first_nats", "loss_last_nats"))
    assert first is not None
    assert last is not None
    assert last < first
    assert result.valid["precision"].value is True
    assert result.labels["inputs"] == "random images and labels, drawn with seed 1"
    assert result.metrics["throughput_samples_per_s"].value > 0
    assert "throughput_tokens_per_s" not in result.metrics


@pytest.mark.process
@pytest.mark.parametrize("workers", [0, 2])
def test_an_image_model_learns_images_that_are_read_meanwhile(workers: int) -> None:
    case = DIGITS.with_factors(images="digits", workers=workers, batch=64, iterations=40)
    result = run(case)
    assert result.metrics["loss_last_nats"].value < result.metrics["loss_first_nats"].value / 2
    assert 0 < result.metrics["wait_share_ratio"].value <= 1
    assert result.labels["inputs"] == "1347 images of digits, shuffled with seed 1"
    assert "wait_share_ratio" in metrics_of(case)
    assert "wait_share_ratio" not in metrics_of(DIGITS)


def test_a_head_has_an_output_for_each_class_of_the_images() -> None:
    result = run(DIGITS.with_factors(images="synthetic-100", workers=0, iterations=1))
    assert result.labels["classes"] == 100


def test_a_checkpoint_with_fewer_outputs_than_the_images_have_classes_is_refused(tmp_path: Path) -> None:
    checkpoint = tmp_path / "digits.pt"
    torch.save(build("digits-cnn").state_dict(), checkpoint)
    case = DIGITS.with_factors(
        images="synthetic-100", workers=0, checkpoint="digits.pt", sources=(("checkpoint", "1" * 64),)
    )
    with pytest.raises(InputError, match="synthetic-100 has 100 classes, and the weights of digits-cnn tell 10 apart"):
        run(case, {"checkpoint": checkpoint})


def test_random_labels_are_classes_of_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = tmp_path / "three.pt"
    torch.save(build("digits-cnn", outputs=3).state_dict(), checkpoint)
    case = DIGITS.with_factors(checkpoint="three.pt", batch=64, sources=(("checkpoint", "2" * 64),))
    assert run(case, {"checkpoint": checkpoint}).metrics["loss_last_nats"].value is not None


def test_the_seed_decides_the_batch() -> None:
    trainer = trainer_of(DIGITS)
    images, labels = trainer.drawn(4, seed=5)
    assert images.shape == (4, 1, 8, 8)
    assert int(labels.max()) < 10
    again, other = trainer.drawn(4, seed=5), trainer.drawn(4, seed=6)
    assert torch.equal(images, again[0])
    assert not torch.equal(images, other[0])


def test_the_layout_is_that_of_the_case() -> None:
    case = DIGITS.with_factors(model="mobilenet-v1", image_size=32, batch=2)
    for memory_format, kind in (("channels-last", torch.channels_last), ("contiguous", torch.contiguous_format)):
        trainer = trainer_of(case.with_factors(memory_format=memory_format))
        images, _ = trainer.drawn(2, seed=0)
        assert images.is_contiguous(memory_format=kind)
        assert trainer.model.get_parameter("conv_stem.weight").is_contiguous(memory_format=kind)


@pytest.mark.parametrize(("optimiser", "states"), [("adamw", 2), ("sgd", 1)])
def test_an_optimiser_has_its_state_for_each_weight(optimiser: str, states: int) -> None:
    trainer = trainer_of(DIGITS.with_factors(optimiser=optimiser))
    trainer.launch(*trainer.drawn(4, seed=0))()
    first = next(iter(trainer.model.parameters()))
    held = [one for one in trainer.optimiser.state[first].values() if torch.is_tensor(one) and one.dim() > 0]
    assert len(held) == states


def test_steps_that_lower_the_scale_were_skipped() -> None:
    scales = [torch.tensor(value) for value in (8.0, 4.0, 4.0, 2.0, 4.0)]
    assert train._skipped(scales).value == 2
    assert train._skipped(scales[1:3]).value == 0


def test_only_a_scaled_loss_skips_steps() -> None:
    assert "skipped_steps_count" in metrics_of(DIGITS.with_factors(precision="amp-fp16"))
    assert "skipped_steps_count" not in metrics_of(DIGITS.with_factors(precision="amp-bf16"))


def test_a_step_that_overflows_is_counted_and_changes_no_weight() -> None:
    trainer = trainer_of(DIGITS)
    trainer.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8)
    images, labels = trainer.drawn(4, seed=0)
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    trainer.launch(images * float("inf"), labels)()
    assert all(torch.equal(one, other) for one, other in zip(before, trainer.model.parameters(), strict=True))
    trainer._keep_scale()
    assert train._skipped(trainer.scales).value == 1


def test_a_run_tells_what_the_memory_of_a_step_is_for() -> None:
    metrics = run(DIGITS.with_factors(precision="amp-bf16", optimiser="sgd")).metrics
    parameters = 25_978 * 4
    buffers = 2 * (16 + 32 + 64) * 4 + 3 * 8  # mean, variance and a counter of each of three norms
    assert metrics["step_weights_bytes"].value == parameters + buffers
    assert metrics["step_gradients_bytes"].value == metrics["step_optimiser_bytes"].value == parameters
    convolutions, linear = 9 * (16 + 16 * 32 + 32 * 64), 64 * 2 * 2 * 10
    assert metrics["step_weight_copies_bytes"].value == (convolutions + linear) * 2
    assert metrics["step_activations_bytes"].value > 4 * 16 * 64 * 2
    for name in ("step_peak_bytes", "step_workspace_bytes"):
        assert metrics[name].value is None
        assert str(metrics[name].reasons[0]).startswith("allocator_silent")


def test_parts_of_a_batch_save_their_part_of_the_activations() -> None:
    whole, halves = (trainer_of(DIGITS.with_factors(accumulation=parts)).memory(1) for parts in (1, 2))
    small, large = (one["step_activations_bytes"].value for one in (halves, whole))
    assert small is not None
    assert large is not None
    assert 0.4 < small / large < 0.6


def test_memory_that_ends_in_the_step_after_the_windows_loses_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr("pybench.workloads.train.step_memory", no_room)
    metrics = run(DIGITS).metrics
    assert metrics["latency_mean_ms"].value > 0
    assert metrics["step_peak_bytes"].value is None
    assert [reason.code.value for reason in metrics["step_weights_bytes"].reasons] == ["no_room_for_step"]


@pytest.mark.parametrize("name", [name for name, row in MODELS.items() if row.takes_images and not row.shaped_by])
def test_a_row_says_what_its_last_batch_norm_sees(name: str) -> None:
    row = MODELS[name].at_size(64 if MODELS[name].shape[-1] > 8 else None)
    seen: list[int] = []
    model = build(row, outputs=10)
    for norm in (module for module in model.modules() if isinstance(module, nn.BatchNorm2d)):
        norm.register_forward_hook(lambda _module, given, _out: seen.append(given[0].numel() // given[0].shape[1]))
    with torch.inference_mode():
        model(torch.zeros(2, *row.shape))
    assert row.normalised_values(2) == (seen[-1] if seen else None)


def test_a_first_step_that_is_skipped_leaves_no_momentum(monkeypatch: pytest.MonkeyPatch) -> None:
    def dirty(like: torch.Tensor) -> torch.Tensor:
        return torch.full_like(like, float("nan"))  # what memory may hold

    monkeypatch.setattr(torch, "empty_like", dirty)
    weights = torch.nn.Parameter(torch.ones(8))
    optimiser = torch.optim.SGD([weights], lr=0.1, momentum=0.9, fused=True)
    train.begin_momentum(optimiser)
    scaler = torch.amp.GradScaler("cpu")
    for factor in (float("inf"), 1.0):
        optimiser.zero_grad()
        scaler.scale((weights * factor).sum()).backward()
        scaler.step(optimiser)
        scaler.update()
    assert weights.detach().tolist() == pytest.approx([0.9] * 8)


@pytest.mark.parametrize("rate", [0.01, 1e30])
def test_a_loss_that_is_no_number_is_a_caution(rate: float) -> None:
    result = run(DIGITS.with_factors(optimiser="sgd", learning_rate=rate, iterations=4))
    said = [caution.code for caution in result.cautions]
    assert (CautionCode.TRAINING_DIVERGED in said) is (rate > 1)
