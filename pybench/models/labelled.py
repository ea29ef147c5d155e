# SPDX-License-Identifier: Apache-2.0
"""A user's labelled arrays: an .npz with an array for each input of a model, and `labels`.

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


@dataclass(frozen=True, slots=True)
class _Stored:
    """What a file contains beside the inputs. ids: of each sample; groups: None where samples are independent."""

    labels: Array
    ids: tuple[str, ...]
    groups: tuple[str, ...] | None


def open_arrays(path: Path, split: Split, inputs: Sequence[str], task: Task | None = None) -> Samples:
    """The samples of one split, in the order stored. `inputs`: names of the model's; `task`: None where nothing is
    judged, and the samples then have no truth. Raises InputError for a file that does not have these arrays."""
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
    rows = _rows(path, stored, split, is_apart=is_apart, trained=len(arrays[inputs[0]]))
    if any(len(array) < len(rows) for array in arrays.values()):
        raise InputError(f"the arrays of {path} have different numbers of samples", hint="store one row a sample")
    return _samples(arrays, rows, stored, task, has_names=not prefix)


def _check_names(path: Path, names: set[str], inputs: Sequence[str], *, is_apart: bool) -> None:
    """`is_apart`: whether what trains has arrays of its own, one for each input."""
    trained = [TRAIN + name for name in inputs] if is_apart else []
    missing = [name for name in (*inputs, *trained, LABELS) if name not in names]
    if missing:
        hint = f"the model's inputs are {', '.join(inputs)}"
        raise InputError(f"{path} has no array {missing[0]}", hint=hint)


def _beside(path: Path, archive: Mapping[str, Array], inputs: Sequence[str]) -> _Stored:
    """Labels, ids and groups. Raises InputError where ids repeat or a sample lacks one of these."""
    labels = archive[LABELS]
    ids = tuple(f"{i:06d}" for i in range(len(labels)))
    texts = {name: tuple(map(str, archive[name])) for name in (IDS, GROUPS) if name in archive and name not in inputs}
    if any(len(each) != len(labels) for each in texts.values()):
        raise InputError(f"`{IDS}` and `{GROUPS}` of {path} are not one a sample", hint=f"store {len(labels)} of them")
    ids = texts.get(IDS, ids)
    if len(set(ids)) < len(ids):
        raise InputError(f"`{IDS}` of {path} repeat", hint="give each sample an id of its own")
    return _Stored(labels, ids, texts.get(GROUPS))


def _rows(path: Path, stored: _Stored, split: Split, *, is_apart: bool, trained: int) -> Indices:
    """Which rows of the arrays are of a split. `is_apart`: whether what trains has arrays of its own, of `trained`
    rows."""
    if is_apart:
        return np.arange(trained if split == "train" else len(stored.ids))
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
    first = next(iter(arrays))
    has_classes = task is not None and task.classes is not None
    return Samples(
        ids=tuple(stored.ids[i] for i in rows) if has_names else tuple(f"{i:06d}" for i in rows),
        shape=arrays[first].shape[1:],
        load=loads[first],
        truth=partial(_rows_of, stored.labels.astype(np.int64 if has_classes else np.float64), rows),
        classes=tuple(map(str, range(int(stored.labels.max()) + 1))) if has_classes else (),
        groups=tuple(stored.groups[i] for i in rows) if has_names and stored.groups is not None else None,
        dtype=arrays[first].dtype,
        inputs=loads,
    )


def _rows_of(array: Array, rows: Indices, indices: Indices) -> Array:
    return array[rows[indices]]
