# SPDX-License-Identifier: Apache-2.0
"""Training: one optimiser step an iteration: forward, cross-entropy, backward, AdamW or SGD with momentum.

FP32 (TF32 off), TF32, BF16 everywhere, or FP32 weights under autocast (`amp-bf16`, `amp-fp16` with loss scaling).
A language model predicts the next token of a fixed set of seeded random batches, taken in turn, or of tokenized text
where a path is given. With `fed: false` it has one batch that stays on the device, which leaves nothing but the
computation. An image model predicts the labels of one seeded random batch, which stays on the device; or with `workers`
of images that are read and decoded while it trains. Leaves out what does not change the cost of a step: schedules,
clipping, evaluation. The loss shows that learning happens, not that the model is good.

Factors that change which kernels run:

- `gradient_checkpointing`: a second forward pass of each block
- `accumulation`: the batch in parts, of which only the last one is followed by the optimiser
- `fused_optimiser`, `memory_format`
- `runtime: torch-compile`: forward pass and loss, with their backward pass, as Inductor compiles them; the optimiser
  stays as it is
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, cast

import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from pybench.case import Case
from pybench.case.data import data_of
from pybench.case.factors import CHANNELS_LAST, CONTIGUOUS
from pybench.case.yields import is_scaled
from pybench.catalogue.causes import Cause
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.models import ModelKind
from pybench.catalogue.paths import PATHS
from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.refusals import refuse_training
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import InputError, UnsupportedError
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import allowed_threads
from pybench.measurement.feed import PERIOD, TokenFeed, ahead, record_fed
from pybench.measurement.image_feed import ImageFeed
from pybench.measurement.model import check_sequence
from pybench.measurement.recorder import TIMING, Amounts, record
from pybench.measurement.result import Result, RunRequest, Validity
from pybench.models.building import build
from pybench.models.tinylm import TinyLm
from pybench.precision.audit import audit_parameters
from pybench.runtimes import torch as runtime
from pybench.runtimes.memory import memory_evidence
from pybench.runtimes.session import Wait
from pybench.runtimes.training_memory import no_memory_told, step_memory

Batch = tuple[Tensor, ...]  # int64 [N, T]; or images, floats [N, C, H, W], and labels, int64 [N]

OPTIMISERS: Mapping[str, tuple[Any, Mapping[str, Any]]] = {
    "adamw": (torch.optim.AdamW, {"lr": 3e-4, "betas": (0.9, 0.95), "weight_decay": 0.1}),  # as GPT-3 and nanoGPT
    "sgd": (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),  # as VGG's authors
}
_LAYOUTS = {CONTIGUOUS: torch.contiguous_format, CHANNELS_LAST: torch.channels_last}


def run(request: RunRequest) -> Result:
    case = request.case
    kind = open_device(request)
    check_sequence(case)
    is_text = case.model_row is not None and case.model_row.takes_text
    trainer, result = (_train_on_tokens if is_text else _train_on_images)(request, kind)
    trainer.describe(result)
    result.metrics |= trainer.memory(request.seed)
    result.labels |= {"device": trainer.device_uuid or "cpu", "threads": allowed_threads(case)}
    return result


def open_device(request: RunRequest) -> str:
    """Sets up the process for the case: `cpu` or `cuda`. Raises UnsupportedError for what is not trained here."""
    case = request.case
    executor = case.runtime_row or RUNTIMES[runtime.NAME]
    refuse_training(executor)
    row = case.model_row
    if row is None or not case.workload_row.accepts(row):
        known = " or ".join(case.catalogue.models_of(case.workload_row))
        raise UnsupportedError(f"{case.model} is not trained", code=Cause.NO_TRAINING, hint=f"train {known}")
    kind = runtime.set_up(case.precision, allowed_threads(case), case.device, runtime=executor, training=True)
    torch.backends.cudnn.benchmark = kind == "cuda" and row.takes_images
    return kind


def _train_on_images(request: RunRequest, kind: str) -> tuple[Trainer, Result]:
    return (_train_on_one_batch if request.case.workers is None else _train_on_loaded)(request, kind)


def _train_on_loaded(request: RunRequest, kind: str) -> tuple[Trainer, Result]:
    """Steps on images that processes read, decode and resize meanwhile."""
    case, row = request.case, request.case.model_row
    channels, height, width = () if row is None else row.shape
    with ImageFeed(request, (channels, height, width), kind) as feed:
        classes = len(feed.images.classes)
        trainer = Trainer(request, kind, max(classes, 0 if row is None else row.outputs))
        trainer.check_classes(classes)
        trainer.make_ready()
        feed.bring_to(lambda images, labels: (trainer.placed(images), labels.to(kind, non_blocking=True)))
        steps = ahead(feed, lambda batch: trainer.launch(*batch))
        result = record_fed(request, feed, steps, Amounts(samples=case.batch), trainer.device_uuid).result
    result.labels |= {
        "iteration": f"one optimiser step, {PERIOD}",
        "inputs": f"{len(feed.images)} images of {case.images}, shuffled with seed {request.seed}",
        "classes": classes,
    }
    return trainer, result


def _train_on_one_batch(request: RunRequest, kind: str) -> tuple[Trainer, Result]:
    case, row = request.case, request.case.model_row
    trainer = Trainer(request, kind, None if row is None else row.outputs)
    trainer.make_ready()
    result = _record_resident(request, trainer, trainer.drawn(case.batch, request.seed), Amounts(samples=case.batch))
    result.labels["inputs"] = f"random images and labels, drawn with seed {request.seed}"
    return trainer, result


def _train_on_tokens(request: RunRequest, kind: str) -> tuple[Trainer, Result]:
    """Steps on batches that come one by one, or on one that stays where it is."""
    case, row = request.case, request.case.model_row
    amounts = Amounts(samples=case.batch, tokens=case.batch * case.seq_len)
    with TokenFeed(request) as feed:
        trainer = Trainer(request, kind, max(feed.vocabulary, 0 if row is None else row.outputs))
        trainer.make_ready()
        feed.bring_to(kind)
        if not PATHS[case.path].reads_text and not case.fed:
            return trainer, _record_resident(request, trainer, (feed.next(),), amounts)
        result = record_fed(request, feed, ahead(feed, trainer.launch), amounts, trainer.device_uuid).result
        result.labels["iteration"] = f"one optimiser step, {PERIOD}"
        if PATHS[case.path].reads_text:
            result.labels |= feed.labels(case)
        return trainer, result


def _record_resident(request: RunRequest, trainer: Trainer, batch: Batch, amounts: Amounts) -> Result:
    def iterate() -> None:
        trainer.launch(*batch)()

    result = record(request.case, iterate, amounts, trainer.device_uuid, sensors=request.sensors)
    result.labels["iteration"] = "one optimiser step on a batch that stays on the device, until the device is idle"
    return result


def _next_token_loss(model: nn.Module, tokens: Tensor) -> Tensor:
    """int64 [N, T] -> the mean cross-entropy of the last T - 1 tokens."""
    logits = cast(TinyLm, model).every_position(tokens[:, :-1])  # [N, T-1, V]
    return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())


def _label_loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Images [N, C, H, W] and their labels, int64 [N] -> the mean cross-entropy."""
    return functional.cross_entropy(model(images).float(), labels)


_LOSSES: Mapping[ModelKind, Callable[..., Tensor]] = {"language": _next_token_loss, "image": _label_loss}


def optimiser_of(case: Case) -> tuple[Any, Mapping[str, Any]]:
    """The class of a case's optimiser, and what it is made with."""
    named, settings = OPTIMISERS[case.optimiser]
    return named, settings if case.learning_rate is None else {**settings, "lr": case.learning_rate}


def begin_momentum(optimiser: torch.optim.Optimizer) -> None:
    """Momentum of zero before the first step, from which SGD's first step is what it is without.

    In the first step the fused SGD (torch 2.11 and 2.15, `_fused_sgd`) takes its buffers from `empty_like`.
    A scaled loss often skips that step, which writes no buffer: the next one adds to the weights what lay in memory.
    """
    for group in optimiser.param_groups:
        if group.get("momentum"):
            for parameter in group["params"]:
                optimiser.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)


class Trainer:
    """The model, its optimiser and one step. `losses`: of every step so far, on the device; `scales`: of a loss that is
    scaled, before each step."""

    def __init__(self, request: RunRequest, kind: str, outputs: int | None) -> None:
        case, row = request.case, request.case.model_row
        self.case, self.kind = case, kind
        self.device_uuid = runtime.gpu_uuid() if kind == "cuda" else None
        checkpoint = request.artefacts.get("checkpoint") or request.files.get("checkpoint")
        model = build(row or case.model or "", seed=request.seed, checkpoint=checkpoint, outputs=outputs)
        # A checkpoint may tell other classes apart than its row.
        self.outputs = 0 if row is None else int(model.get_parameter(row.head).shape[0])
        contract = PRECISIONS[case.precision]
        self.dtype = torch.float32 if contract.autocast else runtime.DTYPES[contract.floating]
        self.memory_format = case.memory_format or (CHANNELS_LAST if kind == "cuda" else CONTIGUOUS)
        self.model = model.train().to(device=kind, dtype=self.dtype)
        if row is not None and row.takes_images:
            self.model.to(memory_format=_LAYOUTS[self.memory_format])
        if isinstance(model, TinyLm):
            model.checkpoints = case.gradient_checkpointing
        fused = kind == "cuda" if case.fused_optimiser is None else case.fused_optimiser
        optimiser, settings = optimiser_of(case)
        self.optimiser: torch.optim.Optimizer = optimiser(self.model.parameters(), fused=fused, **settings)
        self.autocast = runtime.DTYPES[contract.floating] if contract.autocast else None
        self.scaler = torch.amp.GradScaler(kind, enabled=is_scaled(case))
        if fused and self.scaler.is_enabled():
            begin_momentum(self.optimiser)
        self.losses: list[Tensor] = []
        self.scales: list[Tensor] = []
        self._mark = runtime.end_marker(kind)
        self._loss_of = _LOSSES["language" if row is None else row.kind]
        opened: Any = importlib.import_module((case.runtime_row or RUNTIMES[runtime.NAME]).module)
        self._pass: runtime.TrainingPass = opened.open_training(self._loss, case, kind, allowed_threads(case))

    def drawn(self, samples: int, seed: int) -> Batch:
        """A batch on the device: standard normal images in the layout of the case, with labels of any class; or ids."""
        row = self.case.model_row
        generator = torch.Generator().manual_seed(seed)
        if row is None or not row.takes_images:
            return (torch.randint(2, (samples, self.case.seq_len), generator=generator).to(self.kind),)
        images = torch.randn((samples, *row.shape), generator=generator)
        labels = torch.randint(self.outputs, (samples,), generator=generator).to(self.kind)
        return self.placed(images), labels

    def check_classes(self, classes: int) -> None:
        """Raises InputError for images with labels that the weights have no output for."""
        case = self.case
        if classes > self.outputs:
            raise InputError(
                f"{data_of(case)} has {classes} classes, and the weights of {case.model} tell {self.outputs} apart",
                hint="leave `checkpoint` out, or give images of the classes that it was trained on",
            )

    def make_ready(self) -> None:
        """What a runtime does before the first step: compiling for the shape of a part of the batch."""
        part = self.drawn(self.case.batch // self.case.accumulation, seed=0)

        def gradients() -> None:
            self.scaler.scale(self._pass.loss(*part)).backward()  # type: ignore[no-untyped-call]
            self._mark()()
            self.optimiser.zero_grad(set_to_none=True)

        self._pass.make_ready(gradients)

    def launch(self, *batch: Tensor) -> Wait:
        """One optimiser step on a batch on the device; of tokens the first T - 1 predict the last T - 1."""
        parts = list(zip(*(tensor.chunk(self.case.accumulation) for tensor in batch), strict=True))
        losses: list[Tensor] = []
        self._pass.begin()
        for part in parts:
            loss = self._pass.loss(*part)
            if not losses:  # after the first forward pass: until then the memory of the last gradients is of use
                self.optimiser.zero_grad(set_to_none=True)
            self.scaler.scale(loss if len(parts) == 1 else loss / len(parts)).backward()  # type: ignore[no-untyped-call]
            losses.append(self._pass.kept(loss))
        self._keep_scale()
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.losses.append(losses[0] if len(parts) == 1 else torch.stack(losses).mean())
        return self._mark()

    def _keep_scale(self) -> None:
        """Notes the loss's scale without waiting for the device, which `get_scale` would."""
        if self.scaler.is_enabled() and self.scaler._scale is not None:
            self.scales.append(self.scaler._scale.clone())

    def lowered(self) -> torch.autocast:
        """The autocast of the case's precision; without effect in a precision that has none."""
        return torch.autocast(self.kind, self.autocast, enabled=self.autocast is not None)

    def placed(self, images: Tensor) -> Tensor:
        """Images [N, C, H, W] in the type, place and layout that the model takes them in."""
        moved = images.to(self.kind, non_blocking=True).to(self.dtype)  # together, a CPU would convert and then copy
        return moved.contiguous(memory_format=_LAYOUTS[self.memory_format])

    def _loss(self, *part: Tensor) -> Tensor:
        with self.lowered():
            return self._loss_of(self.model, *part)

    def memory(self, seed: int) -> dict[str, Quantity]:
        """What one more step keeps in memory, part by part."""
        batch = self.drawn(self.case.batch, seed)
        first = [tensor.chunk(self.case.accumulation)[0] for tensor in batch]
        is_seen = self._pass.is_eager and not self.case.gradient_checkpointing

        def step() -> None:
            self.launch(*batch)()

        def forward() -> Tensor:
            return self._loss(*first)

        try:
            return step_memory(self.model, self.optimiser, step, forward if is_seen else None, self._why_no_peak)
        except (RuntimeError, MemoryError) as error:  # the windows are measured: they are not lost with this step
            evidence = memory_evidence(error)
            if evidence is None:
                raise
            return no_memory_told(evidence)

    @property
    def _why_no_peak(self) -> str | None:
        if self.kind != "cuda":
            return "torch has no peak of a CPU's memory"
        return "a replayed CUDA graph asks the allocator for nothing" if self._pass.replays else None

    def describe(self, result: Result) -> None:
        """Adds losses and skipped steps of the timing window, then what the model and its optimiser are."""
        begin, count = self.case.warmup_iterations, self.case.iterations
        result.metrics["loss_first_nats"] = _loss(self.losses[begin])
        result.metrics["loss_last_nats"] = last = _loss(self.losses[begin + count - 1])
        result.cautions += [Caution(CautionCode.TRAINING_DIVERGED, reason.detail) for reason in last.reasons]
        if self.scaler.is_enabled():
            result.metrics["skipped_steps_count"] = self.skipped(begin, count)
        self.describe_model(result)

    def skipped(self, begin: int, count: int) -> Quantity:
        """How many of `count` steps, after `begin` others, changed no weight: each of them lowered the loss's scale."""
        self._keep_scale()
        return _skipped(self.scales[begin : begin + count + 1])

    def describe_model(self, result: Result) -> None:
        """Adds size, precision, and what a runtime did before the first step."""
        parameters = list(self.model.parameters())
        size = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
        result.metrics["model_bytes"] = Quantity(
            value=float(size), method="parameters in memory, without gradients and the optimiser's state"
        )
        dtypes = (str(parameter.dtype).removeprefix("torch.") for parameter in parameters)
        found = audit_parameters(dtypes, self.case.precision, runtime.flags())
        result.valid["precision"] = Validity(found.valid, found.reasons)
        result.labels |= {
            "runtime_version": torch.__version__,
            "precision_realised": found.realised,
            "precision_facts": found.facts,
            "optimiser": self._optimiser_text(),
            "optimiser_kernels": "fused" if self.optimiser.defaults["fused"] else "not fused",
            **({"layout": self.memory_format} if self.case.model_row and self.case.model_row.takes_images else {}),
            **self._pass.labels,
        }
        if self._pass.compile_s is not None:
            how = None if self.case.runtime_row is None else self.case.runtime_row.compile_is
            result.metrics["compile_s"] = Quantity(value=self._pass.compile_s, method=how)

    def _optimiser_text(self) -> str:
        """`AdamW, lr 0.0003, betas (0.9, 0.95), weight decay 0.1`."""
        named, settings = optimiser_of(self.case)
        return ", ".join([named.__name__, *(f"{name.replace('_', ' ')} {value}" for name, value in settings.items())])


def _skipped(scales: list[Tensor]) -> Quantity:
    """How many of the steps between these scales of the loss were skipped: each of them lowered the scale."""
    values = torch.stack(scales).tolist()
    skipped = sum(after < before for before, after in pairwise(values))
    return Quantity(value=float(skipped), window=TIMING, samples=len(values) - 1, method="steps that lowered the scale")


def _loss(loss: Tensor) -> Quantity:
    value = float(loss)
    if math.isfinite(value):
        return Quantity(value=value, window=TIMING)
    return Quantity(window=TIMING, reasons=(Reason(ReasonCode.NOT_FINITE, f"the loss is {value}"),))
