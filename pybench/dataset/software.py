# SPDX-License-Identifier: Apache-2.0
"""What a run ran with, from its environment.json: board, CPU, driver, image, pybench, Python and its packages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

BOARD = "board"
PROCESSOR = "cpu"
NO_IMAGE = "no image"
PYTHON = "python"
IMAGE = "image"
_OF_ENVIRONMENT = (IMAGE, PYTHON)


@dataclass(frozen=True, slots=True)
class Software:
    """The software and the board of one run."""

    facts: Mapping[str, str]
    """Name of a fact -> its value. A fact that the run does not state is not here: an older pybench did not record it,
    or the run used no GPU."""
    packages: Mapping[str, str]
    """Python distribution -> version, of every one that the run loaded."""
    board_model: str | None
    """The GPU's name, None without one."""

    @property
    def of_environment(self) -> Mapping[str, str]:
        """What its environment brought: the image, the version of Python, and of each package that it loaded."""
        return {**{name: self.facts[name] for name in _OF_ENVIRONMENT if name in self.facts}, **self.packages}

    @property
    def of_machine(self) -> Mapping[str, str]:
        """All other facts."""
        return {name: value for name, value in self.facts.items() if name not in _OF_ENVIRONMENT}


SOFTWARE_PARTS = ("cpu", "image_digest", "pybench", "native_build_id", "python", "packages", "measuring.gpu")
"""Where environment.json has what `read_software` reads."""


def read_software_parts(parts: Mapping[str, Any]) -> Software:
    """`read_software` of an environment of which only `SOFTWARE_PARTS` are known, by their names."""
    return read_software({**parts, "measuring": {"gpu": parts.get("measuring.gpu")}})


def read_software(environment: Mapping[str, Any]) -> Software:
    """The facts of an environment.json of any age."""
    gpu = _object(_object(environment.get("measuring")).get("gpu"))
    facts = {
        BOARD: gpu.get("uuid") or gpu.get("name"),
        PROCESSOR: environment.get("cpu"),
        "driver": gpu.get("driver_version"),
        IMAGE: environment.get("image_digest", "") or (NO_IMAGE if "image_digest" in environment else None),
        "pybench": environment.get("pybench"),
        "native build": environment.get("native_build_id"),
        PYTHON: environment.get("python"),
    }
    packages = _object(environment.get("packages"))
    return Software(
        facts={name: str(value) for name, value in facts.items() if value},
        packages={str(name): str(version) for name, version in packages.items()},
        board_model=str(gpu["name"]) if gpu.get("name") else None,
    )


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
