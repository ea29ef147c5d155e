# SPDX-License-Identifier: Apache-2.0
"""Training of TinyLM: one optimiser step an iteration: forward, next-token cross-entropy, backward, AdamW.

FP32 (TF32 off), TF32, or FP32 weights under autocast (`amp-bf16`, `amp-fp16` with loss scaling). Data: a fixed set of
seeded random batches, taken in turn; or tokenized text where a path is given; or with `fed: false` one batch that stays
on the device, which leaves nothing but the computation. Leaves out what does not change the cost of a step: schedules,
clipping, evaluation. The loss shows that learning happens, not that the model is good.

Factors that change which kernels run: `gradient_checkpointing` (a second forward pass of each block), `accumulation`
(the batch in parts, of which only the last one is followed by AdamW), `fused_optimiser` and `runtime: torch-compile`
(forward pass and loss, with their backward pass, as Inductor compiles them; AdamW stays as it is).
"""

from __future__ import annotations

import importlib
import math
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor

from pybench.catalogue.precisions import PRECISIONS
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.refusals import refuse_training
from pybench.catalogue.runtimes import RUNTIMES
from pybench.errors import UnsupportedError
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import allowed_threads
from pybench.measurement.feed import PERIOD, TokenFeed, ahead, record_fed
from pybench.measurement.model import check_sequence
from pybench.measurement.recorder import TIMING, Amounts, record
from pybench.measurement.result import Result, RunRequest, Validity
from pybench.models.building import build
from pybench.models.tinylm import TinyLm
from pybench.precision.audit import audit_parameters
from pybench.runtimes import torch as runtime
from pybench.runtimes.session import Wait

LEARNING_RATE = 3e-4
BETAS = (0.9, 0.95)  # as GPT-3 and nanoGPT
WEIGHT_DECAY = 0.1


def run(request: RunRequest) -> Result:
    case = request.case
    executor = case.runtime_row or RUNTIMES[runtime.NAME]
    refuse_training(executor)
    row = case.model_row
    if row is None or not row.takes_text:
        known = " or ".join(case.catalogue.models_of(case.workload_row))
        raise UnsupportedError(f"{case.model} is not trained", code="no_training", hint=f"train {known}")
    check_sequence(case)
    kind = runtime.set_up(case.precision, allowed_threads(case), case.device, runtime=executor, training=True)
    with TokenFeed(request) as feed:
        trainer = Trainer(request, kind, max(feed.vocabulary, row.outputs))
        trainer.make_ready()
        feed.bring_to(kind)
        result = _record(request, feed, trainer)
    trainer.describe(result)
    result.labels |= {"device": trainer.device_uuid or "cpu", "threads": allowed_threads(case)}
    return result


def _record(request: RunRequest, feed: TokenFeed, trainer: Trainer) -> Result:
    """Steps on batches that come one by one, or on one that stays where it is."""
    case = request.case
    amounts = Amounts(samples=case.batch, tokens=case.batch * case.seq_len)
    if case.path == "none" and not case.fed:
        resident = feed.next()

        def iterate() -> None:
            trainer.launch(resident)()

        result = record(case, iterate, amounts, trainer.device_uuid, sensors=request.sensors)
        result.labels["iteration"] = "one optimiser step on a batch that stays on the device, until the device is idle"
        return result
    result = record_fed(request, feed, ahead(feed, trainer.launch), amounts, trainer.device_uuid).result
    result.labels["iteration"] = f"one optimiser step, {PERIOD}"
    if case.path != "none":
        result.labels |= feed.labels(case)
    return result


class Trainer:
    """The model, its optimiser and one step. `losses`: of every step so far, on the device."""

    def __init__(self, request: RunRequest, kind: str, vocabulary: int) -> None:
        case = request.case
        self.case, self.kind = case, kind
        self.device_uuid = runtime.gpu_uuid() if kind == "cuda" else None
        checkpoint = request.files.get("checkpoint")
        model = build(case.model_row or case.model or "", seed=request.seed, checkpoint=checkpoint, outputs=vocabulary)
        assert isinstance(model, TinyLm)  # for the type checker: `run` has refused all others
        self.model = model.train().to(kind)
        self.model.checkpoints = case.gradient_checkpointing
        self.optimiser = torch.optim.AdamW(
            self.model.parameters(), lr=LEARNING_RATE, betas=BETAS, weight_decay=WEIGHT_DECAY,
            fused=kind == "cuda" if case.fused_optimiser is None else case.fused_optimiser,
        )  # fmt: skip
        contract = PRECISIONS[case.precision]
        self.autocast = runtime.DTYPES[contract.floating] if contract.autocast else None
        # FP16 alone has too few exponents for gradients.
        self.scaler = torch.amp.GradScaler(kind, enabled=self.autocast is torch.float16)
        self.losses: list[Tensor] = []
        self._mark = runtime.end_marker(kind)
        opened: Any = importlib.import_module((case.runtime_row or RUNTIMES[runtime.NAME]).module)
        self._pass: runtime.TrainingPass = opened.open_training(self._loss, case, kind, allowed_threads(case))

    def make_ready(self) -> None:
        """What a runtime does before the first step: compiling for the shape of a part of the batch."""
        shape = (self.case.batch // self.case.accumulation, self.case.seq_len)
        tokens = torch.zeros(shape, dtype=torch.int64, device=self.kind)

        def gradients() -> None:
            self.scaler.scale(self._pass.loss(tokens)).backward()  # type: ignore[no-untyped-call]
            self._mark()()
            self.optimiser.zero_grad(set_to_none=True)

        self._pass.make_ready(gradients)

    def launch(self, tokens: Tensor) -> Wait:
        """One optimiser step on int64 [N, T] on the device; the first T - 1 tokens predict the last T - 1."""
        parts = tokens.chunk(self.case.accumulation)
        losses: list[Tensor] = []
        self._pass.begin()
        for part in parts:
            loss = self._pass.loss(part)
            if not losses:  # after the first forward pass: until then the memory of the last gradients is of use
                self.optimiser.zero_grad(set_to_none=True)
            self.scaler.scale(loss if len(parts) == 1 else loss / len(parts)).backward()  # type: ignore[no-untyped-call]
            losses.append(self._pass.kept(loss))
        self.scaler.step(self.optimiser)
        self.scaler.update()
        self.losses.append(losses[0] if len(parts) == 1 else torch.stack(losses).mean())
        return self._mark()

    def _loss(self, tokens: Tensor) -> Tensor:
        """int64 [N, T] -> the mean cross-entropy of the last T - 1 tokens."""
        with torch.autocast(self.kind, self.autocast, enabled=self.autocast is not None):
            logits = self.model.every_position(tokens[:, :-1])  # [N, T-1, V]
            return functional.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())

    def describe(self, result: Result) -> None:
        """Adds losses, size, precision, and what a runtime did before the first step."""
        begin, count = self.case.warmup_iterations, self.case.iterations
        result.metrics["loss_first_nats"] = _loss(self.losses[begin])
        result.metrics["loss_last_nats"] = _loss(self.losses[begin + count - 1])
        parameters = list(self.model.parameters())
        size = sum(parameter.numel() * parameter.element_size() for parameter in parameters)
        result.metrics["model_bytes"] = Quantity(
            value=float(size), method="parameters in memory, without gradients and AdamW's moments"
        )
        dtypes = (str(parameter.dtype).removeprefix("torch.") for parameter in parameters)
        found = audit_parameters(dtypes, self.case.precision, runtime.flags())
        result.valid["precision"] = Validity(found.valid, found.reasons)
        result.labels |= {
            "runtime_version": torch.__version__,
            "precision_realised": found.realised,
            "precision_facts": found.facts,
            "optimiser": f"AdamW, lr {LEARNING_RATE}, betas {BETAS}, weight decay {WEIGHT_DECAY}",
            "optimiser_kernels": "fused" if self.optimiser.defaults["fused"] else "not fused",
            **self._pass.labels,
        }
        if self._pass.compile_s is not None:
            how = None if self.case.runtime_row is None else self.case.runtime_row.compile_is
            result.metrics["compile_s"] = Quantity(value=self._pass.compile_s, method=how)


def _loss(loss: Tensor) -> Quantity:
    value = float(loss)
    if math.isfinite(value):
        return Quantity(value=value, window=TIMING)
    return Quantity(window=TIMING, reasons=(Reason(ReasonCode.NOT_FINITE, f"the loss is {value}"),))
