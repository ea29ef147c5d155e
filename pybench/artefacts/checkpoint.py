# SPDX-License-Identifier: Apache-2.0
"""Making of a checkpoint: a built-in model trained on built-in images, judged on those held out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybench.artefacts.request import MakeRequest
from pybench.case.factors import SYNTHETIC
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Result

if TYPE_CHECKING:
    from torch import nn


def make(request: MakeRequest, path: Path) -> Result:
    return _on_synthetic(request, path) if request.parameters["trained_on"] == SYNTHETIC else _on_digits(request, path)


def _on_digits(request: MakeRequest, path: Path) -> Result:
    import torch

    from pybench.models.building import build
    from pybench.models.images.digits import read_digits
    from pybench.models.training.digits import train_digits

    parameters = request.parameters
    torch.set_num_threads(1)  # the order of sums must not depend on the machine's number of CPUs
    model = train_digits(build(request.model, seed=parameters["seed"]), read_digits("train"), parameters["seed"])
    judges = read_digits("validation")
    with torch.inference_mode():
        hits = model(torch.from_numpy(judges.load_all())).argmax(1).numpy() == judges.labels
    _save(model, path)
    return _result(request, 100 * float(hits.mean()), len(hits))


def _on_synthetic(request: MakeRequest, path: Path) -> Result:
    """On the first GPU; what a GPU trains is not bit-reproducible, so its file is what a campaign keeps."""
    import torch

    from pybench.models.building import build
    from pybench.models.images.synthetic import CLASSES, VALIDATION_IMAGES, ceiling
    from pybench.models.training.synthetic import course_of, judge, train, training_device
    from pybench.runtimes.torch import allow_tf32

    parameters = request.parameters
    row, seed = request.model, parameters["seed"]
    device = training_device(row)
    channels, height, width = row.shape
    allow_tf32(False)  # training multiplies in bfloat16; the verdict says FP32
    model = build(row, seed=seed, outputs=CLASSES)
    seen = train(model, (channels, height, width), course_of(row, parameters["images"]), seed, device)
    top1_percent = judge(model, (channels, height, width), device)
    _save(model, path)
    result = _result(request, top1_percent, VALIDATION_IMAGES)
    on = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    result.labels |= {"device": on, "images": seen, "ceiling_percent": round(100 * ceiling(), 2)}
    return result


def _save(model: nn.Module, path: Path) -> None:
    import torch

    state: dict[str, Any] = model.state_dict()
    torch.save({name: value.detach().cpu().contiguous() for name, value in state.items()}, path)


def _result(request: MakeRequest, top1_percent: float, judged: int) -> Result:
    result = Result(labels={"trained_on": f"{request.parameters['trained_on']}, the images that do not judge"})
    result.metrics["top1_percent"] = Quantity(value=top1_percent, samples=judged, method="FP32, held-out images")
    return result
