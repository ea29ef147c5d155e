# SPDX-License-Identifier: Apache-2.0
"""Which device a case asks for: `auto`, `cpu`, `cuda` or a GPU's UUID."""

from __future__ import annotations

import os

from pybench.catalogue.causes import Cause
from pybench.catalogue.runtimes import DEVICES
from pybench.errors import UnsupportedError

VISIBLE = "CUDA_VISIBLE_DEVICES"


def narrow(device: str) -> None:
    """Shows this process only the GPU whose UUID is asked for, before any framework has initialised CUDA.

    Frameworks number devices in an order of their own; after this the one GPU is number 0 for each of them.
    """
    if device not in DEVICES:
        os.environ[VISIBLE] = device


def chosen(device: str, gpu_present: bool, runtime: str) -> str:
    """`cpu` or `cuda`. Raises UnsupportedError (`no_gpu`) when a GPU is asked for and the runtime sees none."""
    if device == "cpu" or (device == "auto" and not gpu_present):
        return "cpu"
    if not gpu_present:
        raise UnsupportedError(
            f"{runtime} sees no GPU, the case asks for {device}",
            code=Cause.NO_GPU,
            hint="use device: auto, or install a build of the runtime with CUDA and the driver",
        )
    return "cuda"
