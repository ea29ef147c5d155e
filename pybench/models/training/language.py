# SPDX-License-Identifier: Apache-2.0
"""Training of a language model on `stdlib-text`, and the perplexity of counting tokens.

AdamW with one cycle of the learning rate; each window is seen once in an epoch. The loss is computed at every eighth
position, which takes an eighth of the time: most of a small model's work is in its head of 32,000 ids. What is judged
is one token a window, as in the workload.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as functional

from pybench.catalogue.models import TOKENIZER_IDS, Model
from pybench.errors import InputError
from pybench.models.building import build
from pybench.models.samples import Samples
from pybench.models.text.packages import open_text
from pybench.models.tinylm import TinyLm
from pybench.models.training.mixed import MixedPrecision
from pybench.models.training.trained import Trained, device_name, training_device

WEIGHT_DECAY = 0.01
STRIDE = 8  # positions for one that has a loss
JUDGED_TOGETHER = 64

Ids = npt.NDArray[np.int64]


def train_on_text(row: Model, parameters: Mapping[str, Any]) -> Trained:
    """A language model trained on the windows that do not judge. Raises InputError for another kind of model."""
    device, seed = training_device(row, parameters["trained_on"]), parameters["seed"]
    torch.set_num_threads(1)  # the order of sums must not depend on the machine's number of CPUs
    windows, judges = open_text("train", row), open_text("validation", row)
    model = build(row, seed=seed)
    if not isinstance(model, TinyLm):
        raise InputError(f"{row.name} has no scores of every position", hint="train a tinylm model")
    train_language(model, windows, row, seed, device, parameters.get("trained_in"))
    ids = np.concatenate([windows.load(np.arange(len(windows))).ravel(), windows.all_truth()])
    labels = {
        "device": device_name(device),
        "windows": len(windows),
        "epochs": row.training_epochs,
        "perplexity_of_counts": counted_perplexity(ids, judges.all_truth()),
    }
    return Trained(model, {"perplexity": perplexity(model, judges, device)}, len(judges), labels)


def train_language(
    model: TinyLm, windows: Samples, row: Model, seed: int, device: torch.device, precision: str | None = None
) -> None:
    """Trains in place and leaves the model on `device` in evaluation mode. The last, incomplete batch is left out.

    `precision`: of the steps; None: the usual one of the device.
    """
    mixed = MixedPrecision(precision, device)
    model.to(device).train()
    ids = torch.from_numpy(windows.load(np.arange(len(windows)))).to(device)
    following = torch.cat([ids[:, 1:], torch.from_numpy(windows.all_truth()).to(device)[:, None]], dim=1)
    order = np.random.default_rng(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=row.training_rate, weight_decay=WEIGHT_DECAY)
    batches = len(windows) // row.training_batch
    steps = row.training_epochs * batches
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=row.training_rate, total_steps=steps)
    for _ in range(row.training_epochs):
        shuffled = torch.from_numpy(order.permutation(len(windows))).to(device)
        for chosen in torch.split(shuffled, row.training_batch)[:batches]:
            first = int(order.integers(STRIDE))
            with mixed.casts():
                scores = model.head(model.hidden(ids[chosen])[:, first::STRIDE])  # [N, T / STRIDE, V]
                loss = functional.cross_entropy(scores.flatten(0, 1), following[chosen, first::STRIDE].flatten())
            optimiser.zero_grad(set_to_none=True)
            mixed.backward(loss)
            mixed.step(optimiser)
            schedule.step()
    model.eval()


def perplexity(model: TinyLm, judges: Samples, device: torch.device) -> float:
    """Of the token that follows each window, in FP32."""
    nats = 0.0
    for first in range(0, len(judges), JUDGED_TOGETHER):
        indices = np.arange(first, min(first + JUDGED_TOGETHER, len(judges)))
        truth = torch.from_numpy(judges.truth(indices)).to(device)
        with torch.inference_mode():
            scores = model(torch.from_numpy(judges.load(indices)).to(device))
        nats += float(functional.cross_entropy(scores.double(), truth, reduction="sum"))
    return math.exp(nats / len(judges))


def counted_perplexity(ids: Ids, judged: Ids, vocabulary: int = TOKENIZER_IDS) -> float:
    """Perplexity of `judged` when each id is as likely as it is frequent in `ids`, with one added to each count."""
    counts = 1.0 + np.bincount(ids, minlength=vocabulary)
    return math.exp(-float(np.log(counts / counts.sum())[judged].mean()))
