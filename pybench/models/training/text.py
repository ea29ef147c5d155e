# SPDX-License-Identifier: Apache-2.0
"""Training of encoders on `stdlib-packages`, and what is reached there without a network.

On a GPU under bfloat16 autocast, unless told otherwise, and then not bit-reproducible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as functional
from torch import Tensor, nn

from pybench.catalogue.models import TOKENIZER_IDS, Model
from pybench.models.building import build
from pybench.models.samples import Samples
from pybench.models.text.packages import open_packages
from pybench.models.training.cycle import train_in_cycle
from pybench.models.training.trained import Trained, device_name, training_device

JUDGED_TOGETHER = 128
SMOOTHINGS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)  # one for each count is far too much of 32,000 ids
FOLDS = 5

Ids = npt.NDArray[np.int64]


def train_on_packages(row: Model, parameters: Mapping[str, Any]) -> Trained:
    """An encoder with the ids of the shipped tokenizer and the classes of the data, trained on its windows."""
    device, seed = training_device(row, parameters["trained_on"]), parameters["seed"]
    torch.set_num_threads(1)  # the order of sums must not depend on the machine's number of CPUs
    windows, judges = open_packages("train", row), open_packages("validation", row)
    model = build(row, seed=seed, outputs=len(windows.classes), vocabulary=TOKENIZER_IDS)
    train_windows(model, windows, row, seed, device, parameters.get("trained_in"))
    hits = predicted(model, judges, device) == judges.all_truth()
    labels = {
        "device": device_name(device),
        "windows": len(windows),
        "epochs": row.training_epochs,
        "without_a_network_percent": baselines(windows, judges),
    }
    return Trained(model, {"top1_percent": 100 * float(hits.mean())}, len(judges), labels)


def train_windows(
    model: nn.Module, windows: Samples, row: Model, seed: int, device: torch.device, precision: str | None = None
) -> None:
    """Trains in place and leaves the model on `device` in evaluation mode.

    `precision`: of the steps; None: the usual one of the device.
    """
    model.to(device)
    ids = torch.from_numpy(windows.load(np.arange(len(windows)))).to(device)
    labels = torch.from_numpy(windows.all_truth()).to(device)

    def loss_of(chosen: Tensor, order: np.random.Generator) -> Tensor:
        return functional.cross_entropy(model(with_noise(ids[chosen], row, order)), labels[chosen])

    train_in_cycle(model, len(windows), row, seed, device, precision, loss_of)


def with_noise(ids: Tensor, row: Model, random: np.random.Generator) -> Tensor:
    """`ids`, int64 [N, T], with the row's share of them replaced by random ones (word dropout: Iyyer et al. 2015,
    ACL-IJCNLP, 1681). Without such a share nothing is drawn."""
    if row.training_noise_ratio == 0:
        return ids
    is_replaced = random.random(ids.shape) < row.training_noise_ratio
    drawn = random.integers(TOKENIZER_IDS, size=ids.shape)
    return torch.where(torch.from_numpy(is_replaced).to(ids.device), torch.from_numpy(drawn).to(ids.device), ids)


def predicted(model: nn.Module, samples: Samples, device: torch.device) -> Ids:
    """The most probable class of each sample, in FP32."""
    found = []
    for first in range(0, len(samples), JUDGED_TOGETHER):
        indices = np.arange(first, min(first + JUDGED_TOGETHER, len(samples)))
        with torch.inference_mode():
            found.append(model(torch.from_numpy(samples.load(indices)).to(device)).argmax(1).cpu().numpy())
    return np.concatenate(found)


def baselines(windows: Samples, judges: Samples) -> dict[str, float]:
    """Top-1 in percent of the commonest class in training, and of naive Bayes on counts of ids."""
    truth, classes = judges.all_truth(), len(windows.classes)
    ids, labels = windows.load(np.arange(len(windows))), windows.all_truth()
    commonest = int(np.bincount(labels, minlength=classes).argmax())
    added = chosen_smoothing(ids, labels, np.array(windows.groups), classes, TOKENIZER_IDS)
    guesses = naive_bayes(ids, labels, judges.load(np.arange(len(judges))), classes, TOKENIZER_IDS, added)
    return {
        "majority class": 100 * float((truth == commonest).mean()),
        "naive Bayes": 100 * float((truth == guesses).mean()),
    }


def chosen_smoothing(ids: Ids, labels: Ids, files: npt.NDArray[Any], classes: int, vocabulary: int) -> float:
    """What naive Bayes adds to each count: of `SMOOTHINGS` the one with the most hits in cross-validation. A fold
    leaves every fifth file out, so that no file trains and judges. `files`: of each row of `ids`."""
    folds = np.unique(files, return_inverse=True)[1] % FOLDS
    hits = dict.fromkeys(SMOOTHINGS, 0)
    for fold in range(FOLDS):
        is_out = folds == fold
        for added in SMOOTHINGS:
            guesses = naive_bayes(ids[~is_out], labels[~is_out], ids[is_out], classes, vocabulary, added)
            hits[added] += int((guesses == labels[is_out]).sum())
    return max(SMOOTHINGS, key=hits.__getitem__)


def naive_bayes(ids: Ids, labels: Ids, judged: Ids, classes: int, vocabulary: int, added: float = 1.0) -> Ids:
    """The most probable class of each row of `judged` (int64 [m, T]): multinomial naive Bayes with `added` to each
    count (Manning, Raghavan and Schuetze 2008, chapter 13.2)."""
    counts = np.full((classes, vocabulary), added)
    for label in range(classes):
        counts[label] += np.bincount(ids[labels == label].ravel(), minlength=vocabulary)
    log_likelihood = np.log(counts / counts.sum(axis=1, keepdims=True))  # [classes, vocabulary]
    log_prior = np.log(np.bincount(labels, minlength=classes) / len(labels))
    scores = np.stack([log_likelihood[label][judged].sum(axis=1) + log_prior[label] for label in range(classes)])
    best: Ids = scores.argmax(axis=0)
    return best
