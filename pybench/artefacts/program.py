# SPDX-License-Identifier: Apache-2.0
"""Making of a torch program: a library's model, which runs then need no library for."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pybench.artefacts.request import MakeRequest
from pybench.catalogue.zoo import library_of
from pybench.measurement.result import Result
from pybench.models.zoo.feeds import KEY, feeds_to_text

if TYPE_CHECKING:
    from pybench.models.zoo.build import Built

WEIGHTS, LIBRARY = "pybench.weights", "pybench.library"  # keys of texts that the made files carry


def make(request: MakeRequest, path: Path) -> Result:
    from pybench.models.zoo.decoder_program import write_decoder
    from pybench.models.zoo.program import refused_export, write_program
    from pybench.runtimes.torch import DTYPES

    parameters = request.parameters
    model, dtype = parameters["model"], DTYPES[parameters["precision"]]
    built, facts = built_by_library(request, fused=True)
    if parameters.get("cached"):
        with refused_export(model):
            write_decoder(built, dtype, path, facts, one_step=bool(parameters.get("one_step")))
    else:
        write_program(built, dtype, path, model, facts)
    return Result(labels={"weights": facts[WEIGHTS], "library": facts[LIBRARY]})


def built_by_library(request: MakeRequest, *, fused: bool) -> tuple[Built, dict[str, str]]:
    """The model of a recipe, built, and the texts that say of a file what it was made of."""
    from pybench.models.zoo.build import build

    parameters, checkpoint = request.parameters, request.source("checkpoint")
    model, seed = parameters["model"], parameters["seed"]
    config = request.files.get("model")
    steps = {name: bool(parameters.get(name)) for name in ("cached", "one_step")}
    built = build(model, config=config, weights=checkpoint, seed=seed, fused=fused, **steps)
    library = library_of(model)
    package = "" if library is None else library.package
    facts = {
        WEIGHTS: "checkpoint" if checkpoint is not None else f"random, seed {seed}",
        LIBRARY: f"{package} {metadata.version(package)}",
        KEY: feeds_to_text(built.feeds),
    }
    return built, facts
