# SPDX-License-Identifier: Apache-2.0
"""Training to an accuracy: epochs, seconds and joules until held-out images are classified as well as the case asks.

Each repetition has initial weights and an order of images of its own, from its seed. After each epoch the held-out
images are judged, in the precision that trains; as in MLPerf, judging is part of the time and the energy. Training ends
with the epoch that reaches the target, after `epochs_max`, or when the held-out loss is NaN or infinite. In the last
two cases the costs are not known and larger than what was spent (`not_reached`), and the run is `ok`.

A step is that of `train`. The rate rises evenly through the first epoch and stays. Reading and drawing of stored
images, and compiling, come before the time; schedules and augmentation are left out.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
import torch.nn.functional as functional

from pybench.case import Case
from pybench.case.data import preprocessing_of
from pybench.case.yields import metrics_of
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import allowed_threads
from pybench.measurement.recorder import TIMING, Amounts, Recorder
from pybench.measurement.result import Result, RunRequest, Validity
from pybench.measurement.supply import image_source
from pybench.models.training.epochs import Epochs, HeldOut, check_classes, open_epochs, open_held_out
from pybench.workloads.train import Trainer, open_device, optimiser_of

_ENERGIES = {"gpu_energy_to_target_j": "gpu_energy_j", "cpu_energy_to_target_j": "cpu_energy_j"}
_OF_ITERATIONS = ("steady", "latency", "arrivals")  # labels that say nothing of one training


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """What was known at the end of an epoch, the first is 1.

    `images`: seen so far; `elapsed_s`: since the first step, judging included. Losses are the mean cross-entropy of the
    epoch's steps, and of the held-out images."""

    epoch: int
    images: int
    elapsed_s: float
    training_loss_nats: float
    held_out_loss_nats: float
    top1_percent: float


def run(request: RunRequest) -> Result:
    case, row = request.case, request.case.model_row
    kind = open_device(request)
    if row is None:
        raise ValueError("a training to an accuracy is one of a built-in model")
    source, shape = image_source(request), (row.shape[0], row.shape[1], row.shape[2])
    held_out = open_held_out(source, shape, case.image_limit, kind, preprocessing_of(case))
    epochs = open_epochs(source, shape, request.seed, case.batch, kind, preprocessing_of(case))
    check_classes(source, epochs, held_out)
    trainer = Trainer(request, kind, len(epochs.classes))
    trainer.check_classes(len(epochs.classes))
    trainer.make_ready()
    fit = Fit(trainer, epochs, held_out)
    once = case.with_factors(iterations=1, warmup_iterations=0, energy_window_s=0.0)
    with Recorder(once, trainer.device_uuid, sensors=request.sensors) as recorder:
        recorder.warm_up(fit.train)  # no iteration: rest alone
        recorder.time(fit.train)
    result = _of_one_training(recorder.result(Amounts()), case)
    trainer.describe_model(result)
    fit.describe(result)
    result.labels |= {
        "device": trainer.device_uuid or "cpu",
        "threads": allowed_threads(case),
        "images": str(case.images or source),
        "inputs": f"{epochs.images} images an epoch, {len(held_out.labels)} held out, seed {request.seed}",
    }
    return result


class Fit:
    """One training. `curve`: the epochs that have ended."""

    def __init__(self, trainer: Trainer, epochs: Epochs, held_out: HeldOut) -> None:
        self.case: Case = trainer.case
        self.curve: list[EpochEnd] = []
        self._trainer, self._epochs, self._held_out = trainer, epochs, held_out
        self._rate = optimiser_of(self.case)[1]["lr"]
        self._begin_s = 0.0

    @property
    def reached(self) -> bool:
        """Weights without a finite loss give one class to every image, which reaches a low target, too."""
        target = self.case.target_top1_percent
        if target is None or not self.curve or self.has_diverged:
            return False
        return self.curve[-1].top1_percent >= target

    @property
    def has_diverged(self) -> bool:
        """Whether the weights are lost. A training loss says less: with a scaled loss, its step is skipped."""
        return bool(self.curve) and not math.isfinite(self.curve[-1].held_out_loss_nats)

    def train(self) -> None:
        """Epochs until the target, `epochs_max`, or a held-out loss that is NaN or infinite."""
        self._begin_s = time.monotonic()
        for epoch in range(1, self.case.epochs_max + 1):
            seen, loss = self._one_epoch(epoch)
            held_out_loss, top1_percent = self._judge()
            elapsed_s = time.monotonic() - self._begin_s
            seen += self.curve[-1].images if self.curve else 0
            self.curve.append(EpochEnd(epoch, seen, elapsed_s, loss, held_out_loss, top1_percent))
            if self.reached or self.has_diverged:
                return

    def _one_epoch(self, epoch: int) -> tuple[int, float]:
        """How many images it saw, and the mean loss."""
        begin, batch = len(self._trainer.losses), self.case.batch
        steps = self._epochs.images // batch
        for step, (images, labels) in enumerate(self._epochs.batches(batch), start=1):
            for group in self._trainer.optimiser.param_groups:
                group["lr"] = self._rate * (step / steps if epoch == 1 else 1.0)
            self._trainer.launch(self._trainer.placed(images), labels)
        return steps * batch, float(torch.stack(self._trainer.losses[begin:]).mean())

    def _judge(self) -> tuple[float, float]:
        """Mean cross-entropy and Top-1 in percent, of the held-out images."""
        model, count = self._trainer.model.eval(), len(self._held_out.labels)
        loss, hits = 0.0, 0
        with torch.inference_mode():
            for images, labels in self._held_out.batches():
                with self._trainer.lowered():
                    scores = model(self._trainer.placed(images)).float()
                loss += float(functional.cross_entropy(scores, labels, reduction="sum"))
                hits += int((scores.argmax(1) == labels).sum())
        model.train()
        return loss / count, 100 * hits / count

    def describe(self, result: Result) -> None:
        """Adds the costs until the target, the last accuracy, and the curve."""
        last = self.curve[-1]
        costs = {
            "epochs_to_target_count": Quantity(value=float(last.epoch), window=TIMING),
            "time_to_target_s": Quantity(value=last.elapsed_s, window=TIMING, method="judging included, as in MLPerf"),
            **{name: result.metrics[of] for name, of in _ENERGIES.items() if of in result.metrics},
        }
        result.metrics |= costs if self.reached else {name: self._unknown(cost) for name, cost in costs.items()}
        share, count = last.top1_percent / 100, len(self._held_out.labels)
        deviation = 100 * (share * (1 - share) / count) ** 0.5
        result.metrics["final_top1_percent"] = Quantity(
            value=last.top1_percent, u_standard=deviation, samples=count, method="share of held-out images"
        )
        if self._trainer.scaler.is_enabled():
            result.metrics["skipped_steps_count"] = self._trainer.skipped(0, len(self._trainer.losses))
        if self.has_diverged:
            result.cautions.append(Caution(CautionCode.TRAINING_DIVERGED, self._loss_text()))
        result.valid["accuracy"] = Validity(True)
        result.labels["fit"] = {"reached": self.reached, "epochs": last.epoch, "elapsed_s": last.elapsed_s}
        result.tables["learning_curve"] = {
            field.name: np.array([getattr(end, field.name) for end in self.curve]) for field in fields(EpochEnd)
        }

    def _unknown(self, cost: Quantity) -> Quantity:
        """A cost of a training that did not reach the target."""
        if cost.value is None:  # a sensor is missing, and that is the first reason
            return cost
        best = max(end.top1_percent for end in self.curve)
        why = f"at most {best:.4g} % in {len(self.curve)} epochs, the target is {self.case.target_top1_percent:g} %"
        why = self._loss_text() if self.has_diverged else why
        return Quantity(window=cost.window, reasons=(Reason(ReasonCode.NOT_REACHED, why),))

    def _loss_text(self) -> str:
        return f"the held-out loss is {self.curve[-1].held_out_loss_nats} after epoch {self.curve[-1].epoch}"


def _of_one_training(result: Result, case: Case) -> Result:
    """The result of a window of one iteration, without what is said of many."""
    kept = metrics_of(case)
    return replace(
        result,
        metrics={name: value for name, value in result.metrics.items() if name in kept},
        labels={
            **{name: value for name, value in result.labels.items() if name not in _OF_ITERATIONS},
            "iteration": "one training, from its first step until the accuracy of its last epoch is known",
        },
        cautions=[one for one in result.cautions if one.metric is None or one.metric in kept],
    )
