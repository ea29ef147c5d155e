# SPDX-License-Identifier: Apache-2.0
"""Labelled arrays of a user: an .npz with an array for each input of a model, and `labels`.

Arrays are [n, ...], one row a sample, and are fed as they are. `ids` and `groups` are [n], of integers or text. A model
is calibrated on `train_<input>`; without such arrays on a fifth of the samples or, where there are groups, of the
groups. This fifth does not judge, whatever a case calibrates: all cases judge the same samples. Nothing is unpickled.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pybench.catalogue.data_sets import GROUPS, IDS, LABELS, TRAIN
from pybench.catalogue.tasks import Task
from pybench.errors import InputError
from pybench.models.samples import Array, Indices, Samples, Split

CALIBRATING_PARTS = 5  # one of so many parts calibrates, and the rest judges
_TRUTH = {True: np.int64, False: np.float64}  # of classes, and of values


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a file contains beside the inputs. ids: of each sample; groups: None where samples are independent."""

    labels: Array
    ids: tuple[str, ...]
    groups: tuple[str, ...] | None


def open_arrays(path: Path, split: Split, inputs: Sequence[str], task: Task | None = None) -> Samples:
    """The samples of one split, in the order stored. `inputs`: of the model, by name; `task`: None where nothing is
    judged, and truth is then as it is stored. Raises InputError for a file that does not have these arrays."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            names = set(archive.files)
            is_apart = any(TRAIN + name in names for name in inputs)
            _check_names(path, names, inputs, is_apart=is_apart)
            stored = _beside(path, archive, inputs)
            prefix = TRAIN if is_apart and split == "train" else ""
            arrays = {name: archive[prefix + name] for name in inputs}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} contains no readable arrays ({error})", hint="store them again") from error
    fed = {prefix + name: array for name, array in arrays.items()}
    samples = _count_rows(path, fed if prefix else {LABELS: stored.labels} | fed)
    rows = np.arange(samples) if is_apart else _rows_of_split(path, stored, split)
    return _samples(arrays, rows, stored, task, has_names=not prefix)


def _check_names(path: Path, names: set[str], inputs: Sequence[str], *, is_apart: bool) -> None:
    """`is_apart`: whether what trains has arrays of its own, one for each input."""
    trained = [TRAIN + name for name in inputs] if is_apart else []
    missing = [name for name in (*inputs, *trained, LABELS) if name not in names]
    if missing:
        hint = f"the model's inputs are {', '.join(inputs)}"
        raise InputError(f"{path} has no array {missing[0]}", hint=hint)


def _count_rows(path: Path, arrays: Mapping[str, Array]) -> int:
    """Rows of each of these arrays. Raises InputError where they have none, or not as many as the others."""
    counts = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
    if len(set(counts.values())) > 1 or 0 in counts.values():
        said = ", ".join(f"{name}: {count}" for name, count in counts.items())
        what = f"the arrays of {path} have no or different numbers of rows ({said})"
        raise InputError(what, hint="store one row a sample")
    return next(iter(counts.values()))


def _beside(path: Path, archive: Mapping[str, Array], inputs: Sequence[str]) -> _Stored:
    """Labels, ids and groups. Raises InputError where ids repeat or a sample lacks one of these."""
    labels = archive[LABELS]
    count = _count_rows(path, {LABELS: labels})
    ids = tuple(f"{i:06d}" for i in range(count))
    texts = {name: _texts(archive[name]) for name in (IDS, GROUPS) if name in archive and name not in inputs}
    if any(len(each) != count for each in texts.values()):
        raise InputError(f"`{IDS}` and `{GROUPS}` of {path} are not one a sample", hint=f"store {count} of them")
    ids = texts.get(IDS, ids)
    if len(set(ids)) < len(ids):
        raise InputError(f"`{IDS}` of {path} repeat", hint="give each sample an id of its own")
    return _Stored(labels, ids, texts.get(GROUPS))


def _texts(array: Array) -> tuple[str, ...]:
    """Integers or text, as text. Raises ValueError for bytes that are no UTF-8."""
    names = np.atleast_1d(array)
    return tuple(map(str, np.char.decode(names, "utf-8") if names.dtype.kind == "S" else names))


def _rows_of_split(path: Path, stored: _Stored, split: Split) -> Indices:
    """Which rows of the arrays are of a split, where what trains has no arrays of its own."""
    calibrates = calibrating(stored.ids if stored.groups is None else stored.groups)
    rows: Indices = np.flatnonzero(calibrates if split == "train" else ~calibrates)
    if len(rows) == 0:
        what = "group" if stored.groups is not None else "sample"
        raise InputError(f"{path} has one {what}, which cannot both calibrate and judge", hint=f"store more {what}s")
    return rows


def calibrating(names: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which samples calibrate, by the name of each or of its group: those whose names have the least sha256. So the
    choice follows no order, and stays when samples are stored in another one."""
    ordered = sorted(set(names), key=lambda name: hashlib.sha256(name.encode()).digest())
    chosen = set(ordered[: max(1, len(ordered) // CALIBRATING_PARTS)])
    return np.array([name in chosen for name in names])


def _samples(
    arrays: dict[str, Array], rows: Indices, stored: _Stored, task: Task | None, *, has_names: bool
) -> Samples:
    """`has_names`: whether rows are of the samples that ids and groups are of."""
    loads: dict[str, Callable[[Indices], Array]] = {
        name: partial(_rows_of, array, rows) for name, array in arrays.items()
    }
    first, labels = next(iter(arrays)), stored.labels
    has_classes = task is not None and task.classes is not None
    return Samples(
        ids=tuple(stored.ids[i] for i in rows) if has_names else tuple(f"{i:06d}" for i in rows),
        shape=arrays[first].shape[1:],
        load=loads[first],
        truth=partial(_rows_of, labels if task is None else labels.astype(_TRUTH[has_classes]), rows),
        classes=tuple(map(str, range(int(labels.max()) + 1))) if has_classes else (),
        groups=tuple(stored.groups[i] for i in rows) if has_names and stored.groups is not None else None,
        dtype=arrays[first].dtype,
        inputs=loads,
    )


def _rows_of(array: Array, rows: Indices, indices: Indices) -> Array:
    return array[rows[indices]]
