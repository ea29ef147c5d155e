# SPDX-License-Identifier: Apache-2.0
"""The environment.json of runs on one board with one software, but for what a test changes."""

from __future__ import annotations

from typing import Any

PACKAGES = {"numpy": "2.4.6", "onnxruntime": "1.31.1"}


def environment(**changes: Any) -> dict[str, Any]:
    """As a run on a GPU in an image stores it."""
    gpu = {"uuid": "GPU-1", "name": "NVIDIA H200", "driver_version": "580.1", **changes.pop("gpu", {})}
    stored = {
        "schema_version": 1,
        "cpu": "AMD EPYC",
        "python": "3.11.2",
        "pybench": "0.1.0",
        "native_build_id": "b1",
        "packages": PACKAGES,
        "image_digest": "sha256:aa",
        "measuring": {"gpu": gpu},
    }
    return {name: value for name, value in {**stored, **changes}.items() if value is not ...}
