# SPDX-License-Identifier: Apache-2.0
"""What cases need made beforehand: a row for each kind of artefact, in the order in which they build on each other.

Which of them a case needs is `pybench.campaign.recipe`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybench.catalogue.rows import Rows
from pybench.catalogue.runtimes import BUILD_FACTORS


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtefactKind:
    """One kind of artefact.

    name: as recipes name it
    meaning: what it is
    file: what its making leaves in its folder
    module: where its `make(order, path) -> Result` is
    needs: packages that its making needs, on the machine that runs the case
    title: the parameters of a recipe that a line for people shows, where they have a value
    builds: whether its making builds the model, so that it needs the library of a model that has one
    takes_long: whether its making takes minutes: nodes of a cluster then share what is to be made
    trials: file in which its maker stores its trials, a line each after a first one; the next maker goes on from there
        after it was ended early. None: it begins anew.
    """

    name: str
    meaning: str
    file: str
    module: str
    needs: tuple[str, ...]
    title: tuple[str, ...]
    builds: bool = False
    takes_long: bool = False
    trials: str | None = None


_ONNX_FILE = "model.onnx"
_RANGES = ("calibration", "calibration_images", "images", "data", "crop_share", "interpolation", "normalisation")
_ROUNDING = ("precision", "quantiser", "scheme", "range", "granularity", "block_size", "placement")
_SHAPE = ("image_size", "block_type", "depth", "width", "heads", "dispatch", "part")  # of a built-in model

_ROWS = (
    ArtefactKind(
        name="checkpoint",
        meaning="weights, trained here",
        file="weights.pt",
        module="pybench.artefacts.checkpoint",
        needs=("torch",),
        title=("model", *_SHAPE, "trained_on", "trained_in", "images"),
        takes_long=True,
    ),
    ArtefactKind(
        name="program",
        meaning="a model of a library as a torch program, which runs without the library",
        file="model.pt2",
        module="pybench.artefacts.program",
        needs=("torch",),
        title=("model", "precision", "cached", "one_step"),
        builds=True,
    ),
    ArtefactKind(
        name="onnx",
        meaning="a built-in model, or one of a library, in FP32, exported from torch",
        file=_ONNX_FILE,
        module="pybench.artefacts.onnx",
        needs=("torch", "onnx", "onnxscript"),
        title=("model", *_SHAPE, "cached"),
        builds=True,
    ),
    ArtefactKind(
        name="onnx-shaped",
        meaning="a copy of the user's ONNX file in which free dimensions have fixed sizes",
        file=_ONNX_FILE,
        module="pybench.artefacts.shaped",
        needs=("onnx",),
        title=("model", "shapes"),
    ),
    ArtefactKind(
        name="onnx-batched",
        meaning="a copy of the user's ONNX file whose fixed batch is free; both are run and their outputs compared",
        file=_ONNX_FILE,
        module="pybench.artefacts.batched",
        needs=("onnx", "onnxruntime"),
        title=("model", "fixed_batch"),
    ),
    ArtefactKind(
        name="onnx-converted",
        meaning="an ONNX file in FP16 or BF16",
        file=_ONNX_FILE,
        module="pybench.artefacts.converted",
        needs=("onnx", "onnxruntime"),  # which compares its outputs with those in FP32, as of the following kinds
        title=("model", *_SHAPE, "precision", "keep_fp32"),
    ),
    ArtefactKind(
        name="calibration",
        meaning="ranges of a graph's tensors, on samples",
        file="ranges.json",
        module="pybench.artefacts.calibration",
        needs=("onnx", "onnxruntime"),
        title=("model", *_SHAPE, *_RANGES),
    ),
    ArtefactKind(
        name="kept-nodes",
        meaning="nodes that a search keeps in FP32, and each graph that it tried, with the error of its outputs",
        file="kept.json",
        module="pybench.artefacts.kept",
        needs=("onnx", "onnxruntime"),
        title=("model", *_SHAPE, *_ROUNDING, *_RANGES, "keep_fp32", "keep_error_max"),
        takes_long=True,
        trials="trials.jsonl",
    ),
    ArtefactKind(
        name="onnx-quantised",
        meaning="an ONNX file with the rounding of int8, int4 or fp8",
        file=_ONNX_FILE,
        module="pybench.artefacts.quantised",
        needs=("onnx", "onnxruntime"),
        title=(
            "model",
            *_SHAPE,
            *_ROUNDING,
            *_RANGES,
            "keep_fp32",
            "keep_error_max",
            "search",
            "batch",
            "seq_len",
            "platform",
        ),
    ),
    ArtefactKind(
        name="engine",
        meaning="what TensorRT builds of an ONNX file, for one kind of GPU",
        file="model.engine",
        module="pybench.artefacts.engine",
        needs=("onnx", "onnxruntime"),
        title=("model", *_SHAPE, "precision", "batch", "seq_len", *BUILD_FACTORS, "platform"),
        takes_long=True,
    ),
)

KINDS = Rows("kind of artefact", _ROWS)
