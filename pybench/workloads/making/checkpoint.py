# SPDX-License-Identifier: Apache-2.0
"""Making of a checkpoint: a built-in model trained on built-in images, judged on those held out."""

from __future__ import annotations

from pathlib import Path

from pybench.workloads.making.order import Order
from pybench.workloads.result import Measured, Result


def make(order: Order, path: Path) -> Result:
    parameters = order.parameters
    import torch

    from pybench.models.building import build
    from pybench.models.images.digits import read_digits
    from pybench.models.training.digits import train_digits

    torch.set_num_threads(1)  # the order of sums must not depend on the machine's number of CPUs
    model = train_digits(build(parameters["model"], seed=parameters["seed"]), read_digits("train"), parameters["seed"])
    judges = read_digits("validation")
    with torch.inference_mode():
        hits = model(torch.from_numpy(judges.load_all())).argmax(1).numpy() == judges.labels
    torch.save(model.state_dict(), path)
    result = Result(labels={"trained_on": f"{parameters['trained_on']}, the images that do not judge"})
    result.metrics["top1_percent"] = Measured(
        value=100 * float(hits.mean()), samples=len(hits), method="FP32, held-out images"
    )
    return result
