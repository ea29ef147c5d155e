# SPDX-License-Identifier: Apache-2.0
"""Libraries whose models a plan can name: a row for each, which is read without importing the library.

`timm/NAME`, `torchvision/NAME` and `hf/TYPE` name a model; a folder with a `config.json` is one of transformers. What
such a model takes and gives is known only when its library builds it, so it has no row in `pybench.catalogue.models`.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from pybench.catalogue.rows import Rows

CONFIG = "config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One library of models.

    name: what plans write before the slash
    package: in `pybench.catalogue.packages`; it is imported only to make artefacts
    module: where its `names()`, `inputs(wanted)` and `build(wanted)` are
    form: how plans name a model
    kind: what stands behind the slash, in words
    decoders: ends of the names of its classes that continue text; empty: none of its models does
    """

    name: str
    package: str
    module: str
    form: str
    kind: str
    decoders: tuple[str, ...] = ()

    @property
    def generates(self) -> bool:
        """Whether some of its models continue text."""
        return bool(self.decoders)


_ROWS = (
    Library(
        name="timm",
        package="timm",
        module="pybench.models.zoo.timm",
        form="timm/NAME",
        kind="model",
    ),
    Library(
        name="torchvision",
        package="torchvision",
        module="pybench.models.zoo.torchvision",
        form="torchvision/NAME",
        kind="model",
    ),
    Library(
        name="hf",
        package="transformers",
        module="pybench.models.zoo.transformers",
        form="hf/TYPE",
        kind="type of model",
        decoders=("ForCausalLM", "LMHeadModel"),
    ),
)

LIBRARIES = Rows("library of models", _ROWS)
OF_CONFIG = LIBRARIES["hf"]  # whose folders have a `config.json`
FORMS = tuple(row.form for row in _ROWS)


def library_of(model: str | None) -> Library | None:
    """The library that builds a model; None: another thing builds it, or nothing."""
    if model is None:
        return None
    if posixpath.basename(model) == CONFIG:
        return OF_CONFIG
    return LIBRARIES.get(model.partition("/")[0]) if is_named(model) else None


def is_named(model: str) -> bool:
    """Whether a value names a model of a library: a file of that path is written with `./`."""
    prefix, _, name = model.partition("/")
    return bool(name) and prefix in LIBRARIES


def as_file(path: str) -> str:
    """A path as plans write it: one that begins like a name of a library begins with `./`."""
    return f"./{path}" if is_named(path) else path


def name_in(model: str) -> str:
    """What the library calls a model that is named."""
    return model.partition("/")[2]
