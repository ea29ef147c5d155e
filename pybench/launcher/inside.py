# SPDX-License-Identifier: Apache-2.0
"""The Python of an image: its version and packages, and whether its pybench is this one.

Workers in an image are of the image's own pybench, since `pybench._native` is compiled for one version of Python and an
image may have another. Its Python files have to be the same as here, or differences of pybench would look like
differences of the stack. The sources of `pybench._native` are compared by whoever asks a worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pybench.errors import InputError
from pybench.launcher import interpreter_facts
from pybench.launcher.container import Container
from pybench.launcher.interpreter import ANSWER_S, WORKER_PACKAGES, packages_of, read_facts

_NEEDED = "an image needs tini and a Python with this pybench on its PATH: `make container` makes one"


@dataclass(frozen=True, slots=True)
class ImagePython:
    """The Python of an image. `packages`: distribution -> version, of all that it finds."""

    version: str
    packages: Mapping[str, str]


def look_inside(container: Container) -> ImagePython:
    """Asks the Python of an image what it is, in a container of its own.

    Raises InputError where workers cannot run in the image: it lacks Python, this pybench, or what every worker needs.
    """
    image = container.image.location
    done = container.run_script(Path(interpreter_facts.__file__), [*WORKER_PACKAGES], ANSWER_S)
    facts = read_facts(done, f"the Python in {image}", _NEEDED)
    if facts["code"] is None:
        raise InputError(f"{image} has no pybench", hint=_NEEDED)
    if facts["code"] != interpreter_facts.code_sha256():
        hint = "build the image from the same sources, or call the pybench that is in it"
        raise InputError(f"the pybench in {image} has other code than this one", hint=hint)
    if facts["missing"]:
        lacking = ", ".join(WORKER_PACKAGES[module] for module in facts["missing"])
        raise InputError(f"{image} lacks {lacking}, which every run needs", hint="install it into the image")
    return ImagePython(facts["version"], packages_of(facts))
