# SPDX-License-Identifier: Apache-2.0
"""What a case needs and can be shared: artefacts, each addressed by the recipe that makes it.

A recipe is plain data: its kind, its parameters and the digests of the recipes it builds on. Its own digest is the
artefact's address, so each is made once in a campaign, by a run of its own. Deriving recipes imports no framework: the
runner does it to plan the work, the worker to know what it was given.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pybench.case import Case
from pybench.case.data import content_of, data_of, preprocessing_of, trained_here, usual_data_of
from pybench.case.factors import FACTORS
from pybench.case.quantising import quantiser_of, scheme_of
from pybench.case.yields import TOKENS_OF, is_compared
from pybench.catalogue.data_sets import SYNTHETIC
from pybench.catalogue.heads import role_of
from pybench.catalogue.kinds import KINDS
from pybench.catalogue.paths import PATHS
from pybench.catalogue.precisions import floating_type, quantised_type
from pybench.catalogue.quantisers import QUANTISERS
from pybench.catalogue.runtimes import BUILD_FACTORS
from pybench.catalogue.zoo import library_of

# Raised when the making of an artefact changes in a way that its parameters do not show. In 11: models of libraries are
# in FP32 whatever their config.json says, and their random weights have no layer that multiplies by zero. INT8 keeps
# convolutions over three dimensions whose output is not quantised. In 12: files in lower precision say how much their
# inputs change the outputs.
RECIPE_VERSION = 12
_SAMPLES = ("images", "data")  # factors that name what ranges are found on
_UNUSUAL = ("range", "granularity", "placement")  # named where they are not the usual


@dataclass(frozen=True, slots=True)
class Recipe:
    """How one artefact is made.

    kind: one of `pybench.catalogue.kinds`
    parameters: what it is made with
    needs: role -> the recipe that it builds on
    files: factor and value, a path of the user's that is read. It is no part of the digest: the sha256 of the content
        is among the parameters.
    """

    kind: str
    parameters: tuple[tuple[str, Any], ...]
    needs: tuple[tuple[str, Recipe], ...] = ()
    files: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> str:
        """The artefact's file inside its folder."""
        return KINDS[self.kind].file

    @property
    def digest(self) -> str:
        """64 hexadecimal digits: the sha256 of the canonical JSON of `as_json`."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        return {
            "recipe_version": RECIPE_VERSION,
            "kind": self.kind,
            "file": self.file,
            "parameters": dict(self.parameters),
            "needs": {role: recipe.digest for role, recipe in self.needs},
        }

    def title(self) -> str:
        """A line for people."""
        values = dict(self.parameters)
        shown = [(name, values[name]) for name in KINDS[self.kind].title if values.get(name) is not None]
        words = [value if isinstance(value, str) else f"{name}={value}" for name, value in shown]
        return " ".join([self.kind, *words, *([] if self.environment is None else [f"environment={self.environment}"])])

    @property
    def environment(self) -> str | None:
        """Which of the plan's environments makes it; None: that of pybench itself."""
        name: str | None = dict(self.parameters).get("environment")
        return name

    def packages(self) -> Iterator[str]:
        """What its making needs, and the making of what it builds on; a name may come twice."""
        for _, needed in self.needs:
            yield from needed.packages()
        yield from KINDS[self.kind].needs
        quantiser = dict(self.parameters).get("quantiser")
        if quantiser is not None:
            yield from QUANTISERS[quantiser].needs
        library = library_of(dict(self.parameters).get("model")) if KINDS[self.kind].builds else None
        if library is not None:
            yield library.package


def recipes_of(case: Case, platform: str | None = None, environment: str | None = None) -> dict[str, Recipe]:
    """Role -> recipe of what the worker of this case opens (`_opened_by`).

    In an environment of the plan all of it is made there, from the beginning, and made again once anything in that
    environment has changed. `environment`: the sha256 of what it has installed.
    """
    found = _opened_by(case, platform)
    if case.environment is None:
        return found
    named = (("environment", case.environment), ("environment_sha256", environment))
    return {role: _made_in(named, recipe) for role, recipe in found.items()}


def _made_in(environment: tuple[tuple[str, Any], ...], recipe: Recipe) -> Recipe:
    needs = tuple((role, _made_in(environment, needed)) for role, needed in recipe.needs)
    return replace(recipe, parameters=(*recipe.parameters, *environment), needs=needs)


def _opened_by(case: Case, platform: str | None) -> dict[str, Recipe]:
    """Role -> recipe of what the worker of this case opens: `model` (an ONNX file), `engine`, `program` or
    `checkpoint`. Or there is an engine for each part of the model, in its role (`heads.role_of`). Where tokens are
    compared with those of another program, that one is the `reference`.

    `platform`: TensorRT's version and the GPU, which an engine is bound to. Empty for a case that needs nothing made:
    no model, a user's own ONNX file in fp32 on onnxruntime, seeded random weights.
    """
    if case.model is None or case.workload_row.model == "none":
        return {}
    opens = None if case.runtime_row is None else case.runtime_row.opens
    parts = case.parts
    if parts is not None:
        # A file of weights is of so many heads; other weights are equal whatever heads come after.
        cut = case if case.checkpoint is not None else case.with_factors(**parts.arguments)
        return {role_of(name): _engine_of(cut, platform, name) for name in parts.names}
    if opens == "engine":
        return {"engine": _engine_of(case, platform)}
    if opens == "onnx":
        model = _onnx_of(case)
        return {} if model is None else {"model": model}
    if case.library is not None:
        return _programs_of(case)
    checkpoint = None if opens == "equations" else _checkpoint_of(case)  # a solver has no weights
    return {} if checkpoint is None else {"checkpoint": checkpoint}


def packages_of(case: Case) -> tuple[str, ...]:
    """What has to be installed for a case, each once: what runs it first, then what makes what it opens."""
    row = case.runtime_row
    needed = [*(() if row is None else row.needs), *case.workload_row.needs, *PATHS[case.path].needs]
    for recipe in recipes_of(case).values():
        needed += recipe.packages()
    return tuple(dict.fromkeys(needed))


def in_making_order(recipes: Mapping[str, Recipe]) -> list[Recipe]:
    """The recipes and everything they need, each once, needs first."""
    ordered: dict[str, Recipe] = {}

    def visit(recipe: Recipe) -> None:
        for _, needed in recipe.needs:
            visit(needed)
        ordered.setdefault(recipe.digest, recipe)

    for recipe in recipes.values():
        visit(recipe)
    return list(ordered.values())


def _checkpoint_of(case: Case) -> Recipe | None:
    """What trains the case's weights; None: they are random, or a file of the user's."""
    row, trained_on = case.model_row, trained_here(case)
    if row is None or trained_on is None:
        return None
    images = (("images", row.images_to_train),) if trained_on == SYNTHETIC else ()
    lowered = () if case.trained_in is None else (("trained_in", case.trained_in),)
    parameters = (
        ("model", row.name),
        *_sized(case),
        ("trained_on", trained_on),
        ("seed", case.training_seed),
        *lowered,
        *images,
        *_code(case),
    )
    return Recipe("checkpoint", parameters)


def _engine_of(case: Case, platform: str | None, part: str | None = None) -> Recipe:
    """TF32 is a flag of the build; every other precision is in the ONNX file. What it computes is compared with the
    FP32 file, the `origin`. `part`: of the model, which is then an engine by itself."""
    onnx, origin = _onnx_of(case, platform, part), _onnx_of(case.with_factors(precision="fp32"), part=part)
    is_calibrated = quantised_type(case.precision) is not None
    parameters = (
        ("model", case.model),
        ("model_sha256", dict(case.sources).get("model")),
        *_sized(case),
        *_cut(part),
        ("precision", case.precision),
        ("batch", case.batch),
        ("seq_len", _tokens(case)),
        *((name, getattr(case, name)) for name in BUILD_FACTORS),
        ("platform", platform),
        *(_sampled(case) if is_calibrated else (("images", usual_data_of(case)), ("images_sha256", None))),
    )
    needs = {"onnx": onnx, "origin": origin if origin != onnx else None}
    made = tuple((role, recipe) for role, recipe in needs.items() if recipe is not None)
    own = _own(case, "model", *(_SAMPLES if is_calibrated else ()))
    return Recipe("engine", parameters, made, own)


def _tokens(case: Case) -> int | None:
    """The length of the sequences that the case's model is fed with, if it is fed with sequences."""
    return case.seq_len if case.model_row is None or case.model_row.takes_ids else None


def _onnx_of(case: Case, platform: str | None = None, part: str | None = None) -> Recipe | None:
    """The ONNX file in the case's precision; None: a user's own, as it is. `platform`: of an engine that opens it."""
    exported = _batched(case) if case.names_onnx else _exported(case, part)
    if quantised_type(case.precision) is not None:
        return _quantised(case, exported, platform)
    if floating_type(case.precision) == "fp32":
        return exported
    parameters = (
        *_named(case),
        *_part_of(exported),
        ("precision", case.precision),
        ("keep_fp32", case.keep_fp32),
        ("images", usual_data_of(case)),
    )
    return Recipe("onnx-converted", parameters, _on(exported), _own(case, "model"))


def _batched(case: Case) -> Recipe | None:
    """The user's file with a free batch, where it has another one fixed; None: as it is."""
    shaped = _shaped(case)
    if case.fixed_batch is None:
        return shaped
    return Recipe("onnx-batched", (*_named(case), ("fixed_batch", case.fixed_batch)), _on(shaped), _own(case, "model"))


def _shaped(case: Case) -> Recipe | None:
    """The user's file with its free dimensions fixed; None: as it is."""
    if case.shapes is None:
        return None
    return Recipe("onnx-shaped", (*_named(case), ("shapes", case.shapes)), (), _own(case, "model"))


def _quantised(case: Case, exported: Recipe | None, platform: str | None) -> Recipe:
    """A quantiser may work from ranges that were found before, which int8 and fp8 share, or find them by itself."""
    quantiser = quantiser_of(case)
    if quantiser.trains:
        return _trained_on(case, exported)
    if not quantiser.is_calibrated:
        compared = (("images", usual_data_of(case)), ("images_sha256", None))
        parameters = (*_named(case), *_part_of(exported), *compared, *_rounding(case), ("keep_fp32", case.keep_fp32))
        return Recipe("onnx-quantised", parameters, _on(exported), _own(case, "model"))
    calibration = (
        *_named(case),
        *_part_of(exported),
        ("calibration", case.calibration),
        ("calibration_images", case.calibration_images),
        *_sampled(case),
    )
    own = _own(case, "model", *_SAMPLES)
    needs = _on(exported)
    if quantiser.from_ranges:
        needs += (("calibration", Recipe("calibration", calibration, needs, own)),)
    paired = (("weights", "paired"),) if case.workload_row.parts_pairs and quantiser.drops_weights else ()
    rounding = (*calibration, *_rounding(case), ("keep_fp32", case.keep_fp32))
    if case.keep_error_max is not None:
        rounding += (("keep_error_max", case.keep_error_max),)
        needs += (("kept", Recipe("kept-nodes", rounding, needs, own)),)
    return Recipe("onnx-quantised", (*rounding, *paired, *_searched(case, platform)), needs, own)


def _sampled(case: Case) -> tuple[tuple[str, Any], ...]:
    """What ranges are found on, and how pictures are read where that is not the usual way."""
    if case.data is not None:
        return (("images", None), ("data", case.data), ("data_sha256", content_of(case)))
    named = (("images", data_of(case)), ("images_sha256", content_of(case)))
    return (*named, *preprocessing_of(case).unusual().items())


def _trained_on(case: Case, exported: Recipe | None) -> Recipe:
    """The file of a built-in model whose weights were trained on with rounding. A plan asks for no other."""
    checkpoint = _checkpoint_of(case)
    needs = () if checkpoint is None else (("checkpoint", checkpoint),)
    parameters = (
        *_named(case),
        ("images", usual_data_of(case)),
        ("images_sha256", None),
        ("seed", 1 + case.training_seed),
        *_rounding(case),
    )
    return Recipe("onnx-quantised", parameters, (*_on(exported), *needs))


def _rounding(case: Case) -> tuple[tuple[str, Any], ...]:
    return (
        ("precision", case.precision),
        ("quantiser", quantiser_of(case).name),
        ("scheme", scheme_of(case)),
        *((("block_size", case.block_size),) if quantiser_of(case).weights_alone else ()),
        *((name, value) for name in _UNUSUAL if (value := getattr(case, name)) != FACTORS[name].default),
    )


def _searched(case: Case, platform: str | None) -> tuple[tuple[str, Any], ...]:
    """What a placement belongs to that was found by measuring: the board, TensorRT's version and the inputs' shapes."""
    mode = quantiser_of(case).search
    if mode is None:
        return ()
    return (("search", mode), ("platform", platform), ("batch", case.batch), ("seq_len", _tokens(case)))


def _named(case: Case) -> tuple[tuple[str, Any], ...]:
    return (("model", case.model), ("model_sha256", dict(case.sources).get("model")), *_sized(case))


def _sized(case: Case) -> tuple[tuple[str, Any], ...]:
    """The size of images, where it is not the model's own, and what else its layers follow."""
    size = () if case.image_size is None else (("image_size", case.image_size),)
    return (*size, *case.shaping().items())


def _cut(part: str | None) -> tuple[tuple[str, Any], ...]:
    """Which part of the model, where it is not whole."""
    return () if part is None else (("part", part),)


def _part_of(exported: Recipe | None) -> tuple[tuple[str, Any], ...]:
    """The same of what is derived from an exported file."""
    return () if exported is None else _cut(dict(exported.parameters).get("part"))


def _cached(case: Case) -> tuple[tuple[str, Any], ...]:
    """Whether the model continues what was seen before."""
    return (("cached", True),) if case.workload_row.generates else ()


def _on(exported: Recipe | None) -> tuple[tuple[str, Recipe], ...]:
    return () if exported is None else (("onnx", exported),)


def _code(case: Case) -> tuple[tuple[str, Any], ...]:
    """The digest of the package that adds the model: what is made of a model depends on its code. For pybench's own
    models `RECIPE_VERSION` says as much."""
    plugin = None if case.model_row is None else case.model_row.plugin
    return () if plugin is None else (("plugin_sha256", plugin.sha256),)


def _own(case: Case, *names: str) -> tuple[tuple[str, str], ...]:
    """Those of the named factors whose value is a file of the user's."""
    sources = dict(case.sources)
    return tuple((name, str(getattr(case, name))) for name in names if name in sources)


def _programs_of(case: Case) -> dict[str, Recipe]:
    program = _program_of(case)
    reference = _program_of(case.with_factors(**TOKENS_OF)) if is_compared(case) else program
    return {"program": program} | ({} if reference == program else {"reference": reference})


def _program_of(case: Case) -> Recipe:
    """A library's model as torch runs it in the case's type: the types inside of it are fixed when it is exported."""
    row, cached = case.runtime_row, _cached(case)
    steps = (("one_step", True),) if cached and row is not None and row.one_step else ()
    parameters = (*_of_library(case), ("precision", floating_type(case.precision)), *cached, *steps)
    return Recipe("program", parameters, (), _own(case, "model", "checkpoint"))


def _of_library(case: Case) -> tuple[tuple[str, Any], ...]:
    sources = dict(case.sources)
    digests = (("model_sha256", sources.get("model")), ("checkpoint_sha256", sources.get("checkpoint")))
    return (("model", case.model), *digests, ("seed", 0))


def _exported(case: Case, part: str | None = None) -> Recipe:
    if case.library is not None:
        return Recipe("onnx", (*_of_library(case), *_cached(case)), (), _own(case, "model", "checkpoint"))
    checkpoint = _checkpoint_of(case)
    parameters = (
        ("model", case.model),
        ("checkpoint_sha256", dict(case.sources).get("checkpoint")),
        *_sized(case),
        *_cut(part),
        ("seed", 0),
        *_cached(case),
        *_code(case),
    )
    needs = () if checkpoint is None else (("checkpoint", checkpoint),)
    return Recipe("onnx", parameters, needs, _own(case, "checkpoint"))
