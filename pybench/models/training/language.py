# SPDX-License-Identifier: Apache-2.0
"""Training of a language model on `stdlib-text`, and the perplexity of counting tokens.

The loss is computed at every eighth position, which takes an eighth of the time: most of a small model's work is in its
head of 32,000 ids. What is judged is one token a window, as in the workload.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as functional
from torch import Tensor

from pybench.catalogue.models import TOKENIZER_IDS, Model
from pybench.errors import InputError
from pybench.models.building import build
from pybench.models.samples import Samples
from pybench.models.text.packages import open_text
from pybench.models.tinylm import TinyLm
from pybench.models.training.cycle import train_in_cycle
from pybench.models.training.trained import Trained, device_name, training_device

STRIDE = 8  # positions for one that has a loss
JUDGED_TOGETHER = 64

Ids = npt.NDArray[np.int64]


def train_on_text(row: Model, parameters: Mapping[str, Any]) -> Trained:
    """A language model trained on the windows that do not judge. Raises InputError for another kind of model."""
    device, seed = training_device(row, parameters["trained_on"]), parameters["seed"]
    torch.set_num_threads(1)  # the order of sums must not depend on the machine's number of CPUs
    windows, judges = open_text("train", row), open_text("validation", row)
    model = build(row, seed=seed)
    if not isinstance(model, TinyLm) or not row.takes_text:
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
    """Trains in place and leaves the model on `device` in evaluation mode.

    `precision`: of the steps; None: the usual one of the device.
    """
    model.to(device)
    ids = torch.from_numpy(windows.load(np.arange(len(windows)))).to(device)
    following = torch.cat([ids[:, 1:], torch.from_numpy(windows.all_truth()).to(device)[:, None]], dim=1)

    def loss_of(chosen: Tensor, order: np.random.Generator) -> Tensor:
        first = int(order.integers(STRIDE))
        scores = model.head(model.hidden(ids[chosen])[:, first::STRIDE])  # [N, T / STRIDE, V]
        return functional.cross_entropy(scores.flatten(0, 1), following[chosen, first::STRIDE].flatten())

    train_in_cycle(model, len(windows), row, seed, device, precision, loss_of)


def perplexity(model: TinyLm, judges: Samples, device: torch.device) -> float:
    """Of the token that follows each window, in FP32; infinite where it is larger than any float."""
    nats = 0.0
    for first in range(0, len(judges), JUDGED_TOGETHER):
        indices = np.arange(first, min(first + JUDGED_TOGETHER, len(judges)))
        truth = torch.from_numpy(judges.truth(indices)).to(device)
        with torch.inference_mode():
            scores = model(torch.from_numpy(judges.load(indices)).to(device))
        nats += float(functional.cross_entropy(scores.double(), truth, reduction="sum"))
    try:
        return math.exp(nats / len(judges))
    except OverflowError:
        return math.inf


def counted_perplexity(ids: Ids, judged: Ids, vocabulary: int = TOKENIZER_IDS) -> float:
    """Perplexity of `judged` when each id is as likely as it is frequent in `ids`, with one added to each count."""
    counts = 1.0 + np.bincount(ids, minlength=vocabulary)
    return math.exp(-float(np.log(counts / counts.sum())[judged].mean()))
