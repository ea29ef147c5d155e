# SPDX-License-Identifier: Apache-2.0
"""What models are trained and judged on: a row for each built-in data set, and one for a user's labelled arrays.

A user's images have no row. They are classified, and each image is independent of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pybench.catalogue.rows import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """What is reached on a data set without a network: a model that does no better was not trained.

    metric: of the data set's task
    value: in the metric's unit, over all units that judge
    method: how it is reached, in words
    """

    metric: str
    value: float
    method: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """One data set. A part of it trains, and the rest judges.

    name: as plans and recipes name it
    meaning: what it consists of, in a phrase
    task: the task that its labels belong to
    unit: what has one score, in a word
    classes: how many its labels are of; None: they are no classes, or a model's outputs are made for them
    trains: how many of its units train, once an epoch; None: nobody has to know it before they are read
    group: what units have in common that are alike, in a word: intervals are then those of whole groups; None: units
        are independent
    open: `module:callable`, from (split, model's row) to `pybench.models.samples.Samples`; None for images, which
        `pybench.models.images` opens in the size that a model takes
    train: `module:callable`, from (model's row, parameters of the recipe) to `pybench.models.training.trained.Trained`;
        empty for a user's arrays, on which no model is trained
    trains_in: precisions that a plan can ask for (`trained_in`); empty: it is trained in one, which its recipe decides
    is_asked_for: whether a plan can name it as `checkpoint`, to train a model on it first
    floor: the best that is known to be reached without a network; None: nobody has found it
    """

    name: str
    meaning: str
    task: str
    unit: str
    classes: int | None = None
    trains: int | None = None
    group: str | None = None
    open: str | None = None
    train: str = ""
    trains_in: tuple[str, ...] = ()
    is_asked_for: bool = True
    floor: Floor | None = None


LABELS, GROUPS, IDS = "labels", "groups", "ids"  # arrays of a user's file that are no inputs
TRAIN = "train_"  # begins the name of an input's array for calibration
TRAINED_IN = ("fp32", "amp-fp16", "amp-bf16")  # of weights that are trained beforehand
SYNTHETIC = "synthetic-100"  # docs/method/accuracy.md
DIGITS = "digits"

_ROWS = (
    DataSet(
        name=DIGITS,
        meaning="the handwritten digits of scikit-learn",
        task="classification",
        unit="image",
        classes=10,
        trains=1_347,
        train="pybench.models.training.digits:train_on_digits",
        trains_in=TRAINED_IN,
        is_asked_for=False,  # what is trained on them is trained on them anyway
    ),
    DataSet(
        name=SYNTHETIC,
        meaning="generated images of a hundred classes",
        task="classification",
        unit="image",
        classes=100,
        trains=10_000,
        train="pybench.models.training.synthetic:train_on_synthetic",
        trains_in=TRAINED_IN,
    ),
    DataSet(
        name="stdlib-packages",
        meaning="windows of source text of Python's standard library, by package",
        task="classification",
        unit="window",
        group="file",
        open="pybench.models.text.packages:open_packages",
        train="pybench.models.training.text:train_on_packages",
        trains_in=TRAINED_IN,
        floor=Floor(metric="top1_percent", value=85.3, method="naive Bayes on counts of ids"),
    ),
    DataSet(
        name="fluid-states",
        meaning="states of a relativistic fluid, drawn from ranges, with the pressure that each was made with",
        task="regression",
        unit="state",
        open="pybench.models.fluid_states:open_states",
        train="pybench.models.training.fluid_states:train_on_states",
    ),
    DataSet(
        name="stdlib-text",
        meaning="windows of source text of Python's standard library, with the token that follows each",
        task="language",
        unit="window",
        group="file",
        open="pybench.models.text.packages:open_text",
        train="pybench.models.training.language:train_on_text",
        trains_in=TRAINED_IN,
        floor=Floor(metric="perplexity", value=806.0, method="counts of ids"),
    ),
    DataSet(
        name="nested-volumes",
        meaning="generated volumes of a body inside another, with a class for each voxel",
        task="segmentation",
        unit="volume",
        open="pybench.models.volumes:open_volumes",
        train="pybench.models.training.volumes:train_on_volumes",
        trains_in=TRAINED_IN,
        floor=Floor(metric="dice_percent", value=70.9, method="naive Bayes on value and place of each voxel"),
    ),
)

DATA_SETS = Rows("data set", _ROWS)
_ARRAYS = DataSet(
    name="",
    meaning="labelled arrays of a user",
    task="",
    unit="sample",
    group="group",
    is_asked_for=False,
)


def arrays_row(name: str, task: str) -> DataSet:
    """The row of a user's labelled arrays. `name`: of the file, as the plan has it."""
    return replace(_ARRAYS, name=name, task=task)


TRAINED_ON = tuple(name for name, row in DATA_SETS.items() if row.is_asked_for)
