# SPDX-License-Identifier: Apache-2.0
"""Factors of what a model is fed with: ids, text, images."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.case import idle
from pybench.case.factor import factor
from pybench.case.factors.sizes import SizeFactors
from pybench.catalogue.data_sets import DIGITS, SYNTHETIC
from pybench.catalogue.paths import PATHS
from pybench.catalogue.preprocessing import INTERPOLATIONS, NORMALISATIONS, USUAL
from pybench.catalogue.tasks import TASKS

NORMAL, ZEROS, DATA = "normal", "zeros", "data"  # of `inputs`


@dataclass(frozen=True, slots=True, kw_only=True)
class InputFactors(SizeFactors):
    """What a model is fed with."""

    path: str = factor(
        "choice",
        "none",
        "which tokenizer turns text into the model's token ids; `none`: the ids are random",
        "text",
        choices=tuple(PATHS),
        answers=False,
    )
    fed: bool | None = factor(
        "boolean",
        None,
        "with path `none`: hand the random ids over batch by batch, as a path that reads text does; or compute on one "
        "batch that stays on the device",
        "feeding",
        absent="batch by batch in train, one batch in infer",
        usual="feeds",
        idle=idle.FED_ANYHOW,
        follows=("path",),
        answers=False,
        sets_work=True,
    )
    tokenizer: str = factor(
        "file",
        "tok32k",
        "the shipped vocabulary, or the path of a tokenizer.json",
        "text",
        choices=("tok32k",),
        idle=idle.NOT_TOKENIZED,
        follows=("path", "inputs"),
        answers=False,
    )
    corpus: str = factor(
        "file",
        "python-stdlib",
        "the text: the sources of Python's standard library, or a file or folder of text or .jsonl, plain or as "
        ".gz or .zst",
        "text",
        choices=("python-stdlib",),
        idle=idle.SYNTHETIC_IDS,
        follows=("path", "inputs"),
        answers=False,
        sets_work=True,
    )
    corpus_limit_bytes: int | None = factor(
        "integer",
        None,
        "read whole documents up to this many bytes",
        "text",
        minimum=1,
        absent="read all",
        idle=idle.SYNTHETIC_IDS,
        follows=("path", "inputs"),
        answers=False,
        sets_work=True,
    )
    corpus_field: str = factor(
        "text",
        "text",
        "which field of a JSON line contains its text",
        "text",
        hint="as in `text`",
        idle=idle.SYNTHETIC_IDS,
        follows=("path", "inputs"),
        answers=False,
        sets_work=True,
    )
    images: str | None = factor(
        "file",
        None,
        "labelled images: `digits` of scikit-learn, the generated `synthetic-100`, or a path (docs/user/models.md)",
        "images",
        choices=(DIGITS, SYNTHETIC),
        absent="those that the model was trained on here",
        idle=idle.NO_IMAGES,
        follows=("precision", "inputs", "workers"),
        answers=True,
        sets_work=True,
    )
    crop_share: float = factor(
        "number",
        USUAL.crop_share,
        "of pictures in a folder: side of the centre crop, which is the model's input, over the shorter side of the "
        "resized picture; timm's `crop_pct`",
        "images",
        minimum=0.1,
        maximum=1,
        idle=idle.NOT_PREPROCESSED,
        follows=("images",),
        answers=True,
    )
    interpolation: str = factor(
        "choice",
        USUAL.interpolation,
        "how pictures in a folder are resized, with antialiasing",
        "images",
        choices=INTERPOLATIONS,
        idle=idle.NOT_PREPROCESSED,
        follows=("images",),
        answers=True,
    )
    normalisation: str = factor(
        "choice",
        USUAL.normalisation,
        "mean that is subtracted from the pixels of pictures in a folder, and deviation that they are then divided by",
        "images",
        choices=tuple(NORMALISATIONS),
        idle=idle.NOT_PREPROCESSED,
        follows=("images",),
        answers=True,
    )
    workers: int | None = factor(
        "integer",
        None,
        "processes that read, decode and resize `images` while a model trains; 0: it does so itself, between two steps",
        "loading",
        minimum=0,
        maximum=256,
        absent="one batch of random images, which stays on the device",
        answers=False,
    )
    image_limit: int | None = factor(
        "integer",
        None,
        "judge at most this many images",
        "images",
        minimum=1,
        absent="all",
        idle=idle.NOT_JUDGED,
        answers=False,
    )
    data: str | None = factor(
        "file",
        None,
        "your own labelled samples: an .npz with an array for each input of the model, and `labels` "
        "(docs/user/models.md)",
        "labelled",
        absent="`images`, or what the model was trained on here",
        idle=idle.NO_LABELLED,
        follows=("precision", "inputs"),
        answers=True,
    )
    task: str | None = factor(
        "choice",
        None,
        "what the labels of `data` are, and so what outputs are scored by",
        "judging",
        choices=tuple(TASKS),
        absent="regression where labels are floats; else a plan has to say",
        idle=idle.NOT_LABELLED,
        answers=False,
    )
    output: str | None = factor(
        "text",
        None,
        "which output of your own ONNX file is judged on `data`",
        "judging",
        form="name",
        absent="its only one",
        idle=idle.NOT_LABELLED,
        answers=False,
    )
    inputs: str = factor(
        "file",
        NORMAL,
        "what the model is fed with: `normal` random numbers, `zeros`, the case's own `data` (images, samples, "
        "or ids of text), or an .npz with an array for each input",
        "inputs",
        choices=(NORMAL, ZEROS, DATA),
        idle=idle.FED_BY_PATH,
        follows=("path",),
        answers=False,
        sets_work=True,
    )
