# SPDX-License-Identifier: Apache-2.0
"""Quantisation-aware training as a quantiser: a trained built-in model, trained on with INT8 rounding and exported.

It goes on where its checkpoint ends. On synthetic-100 it takes a tenth as long, on images that did not train the
checkpoint. On digits it takes DIGITS_EPOCHS more, on the images that did, for there are no others. None of them judges.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.artefacts.request import MakeRequest
from pybench.catalogue.data_sets import SYNTHETIC
from pybench.catalogue.models import Model

if TYPE_CHECKING:
    from torch import nn

DIGITS_EPOCHS, DIGITS_RATE = 3, 1e-3


def train_with_rounding(request: MakeRequest, path: Path) -> dict[str, Any]:
    """Writes the Q/DQ file, in FP32 around; returns how its ranges were found, as files and labels carry it."""
    from pybench.models.building import build
    from pybench.models.export import export_onnx
    from pybench.precision.fake_quantisation import freeze, prepare

    parameters = request.parameters
    row = request.model
    model = prepare(build(row, checkpoint=request.needed("checkpoint")))
    train = _on_synthetic if parameters["images"] == SYNTHETIC else _on_digits
    images = train(model, row, parameters["seed"])
    export_onnx(freeze(model.cpu()), row, path, {"pybench.weights": "checkpoint, trained on with rounding"})
    return {
        "method": "moving average of largest magnitudes, while training with rounding",
        "samples": images,
        "source": parameters["images"],
        "identity": parameters["images"],
        "held_out": True,
        "sha256": None,
    }


def _on_digits(model: nn.Module, row: Model, seed: int) -> int:
    import torch

    from pybench.models.images.digits import read_digits
    from pybench.models.training.digits import train_digits

    torch.set_num_threads(1)  # as in `checkpoint`: the order of sums must not depend on the machine
    images = read_digits("train")
    train_digits(model, images, seed, epochs=DIGITS_EPOCHS, rate=DIGITS_RATE)
    return DIGITS_EPOCHS * len(images.labels)


def _on_synthetic(model: nn.Module, row: Model, seed: int) -> int:
    from pybench.models.training.synthetic import course_with_rounding, train
    from pybench.models.training.trained import training_device
    from pybench.runtimes.torch import allow_tf32

    device = training_device(row, SYNTHETIC)
    allow_tf32(True)  # codes of 7 bits lose nothing in it
    channels, height, width = row.shape
    course = course_with_rounding(row, row.images_to_train or 0)
    return train(model, (channels, height, width), course, seed, device)
