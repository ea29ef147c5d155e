# SPDX-License-Identifier: Apache-2.0
"""`stdlib-packages` and `stdlib-text`: windows of 128 tokens from the sources of Python 3.11.7's standard library.

The corpus is shipped: 327 files of ten packages, each with its path, the sha256 of its text, and its text. A text is
cut after at most 8,000 bytes (bench/text/freeze.py makes it; its licence stands next to it). Every fourth file of a
package judges, and the others train, so that no file is in both. Windows of one file are alike: the file is their
group.

`stdlib-packages`: the class of a window is the package of its file. `stdlib-text`: what is asked for is the token that
follows the window. Text becomes ids by the shipped tokenizer, in plain Python: a second for what judges.
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pybench.catalogue.models import Model
from pybench.errors import CorruptError, InputError
from pybench.models.samples import Samples, Split
from pybench.preprocess.python_bpe import PythonEncoder
from pybench.preprocess.vocabulary import find_tokenizer

CORPUS = Path(__file__).with_name("stdlib_packages.jsonl.xz")
CORPUS_SHA256 = "1f11a58561d0f80653269c8d01c4cbf2b7d561dc9e521aec8ff63de3dac9c855"  # of the lines, decompressed
WINDOW_TOKENS = 128
JUDGING = 4  # every so many files of a package, one judges

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of the corpus; `package`: the first part of its path."""

    path: str
    package: str
    text: str


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows in the order of files.

    ids: int64 [n, WINDOW_TOKENS]
    following: int64 [n], the token after each window
    names: [n], path and number
    files: [n], the path of each
    """

    ids: Ids
    following: Ids
    names: tuple[str, ...]
    files: tuple[str, ...]


def open_packages(split: Split, model: Model) -> Samples:
    """Windows whose class is their package. Raises InputError for a model that does not take so long a sequence."""
    windows = _fitting(split, model)
    classes = tuple(sorted({file.package for file in read_corpus()}))
    labels = np.array([classes.index(file.partition("/")[0]) for file in windows.files], np.int64)
    return _samples(windows, labels, classes)


def open_text(split: Split, model: Model) -> Samples:
    """Windows and the token that follows each. Raises InputError as `open_packages` does."""
    windows = _fitting(split, model)
    return _samples(windows, windows.following, ())


@functools.cache
def read_corpus(path: Path = CORPUS) -> tuple[SourceFile, ...]:
    """Every file, in the order of paths. Raises CorruptError when it is not the corpus that was frozen."""
    content = lzma.decompress(path.read_bytes())
    found = hashlib.sha256(content).hexdigest()
    if found != CORPUS_SHA256:
        raise CorruptError(
            f"{path} has the sha256 {found[:12]}, expected {CORPUS_SHA256[:12]}", hint="install pybench again"
        )
    return tuple(_file(line) for line in content.splitlines())


@functools.cache
def windows_of(split: Split) -> Windows:
    """All windows of a split; a file's last, incomplete one is left out."""
    encoder = PythonEncoder(find_tokenizer("tok32k"))
    ids, following, names, files = [], [], [], []
    for file in _files_of(split):
        tokens = np.array(encoder.encode(file.text), np.int64)
        count = (len(tokens) - 1) // WINDOW_TOKENS  # the last needs a token behind it
        ids.append(tokens[: count * WINDOW_TOKENS].reshape(count, WINDOW_TOKENS))
        following.append(tokens[WINDOW_TOKENS::WINDOW_TOKENS][:count])
        names += [f"{file.path}:{number}" for number in range(count)]
        files += [file.path] * count
    return Windows(np.concatenate(ids), np.concatenate(following), tuple(names), tuple(files))


def _file(line: bytes) -> SourceFile:
    record = json.loads(line)
    path: str = record["path"]
    return SourceFile(path, path.partition("/")[0], record["text"])


def _files_of(split: Split) -> Iterator[SourceFile]:
    seen: Counter[str] = Counter()
    for file in read_corpus():
        judges = seen[file.package] % JUDGING == JUDGING - 1
        seen[file.package] += 1
        if judges == (split == "validation"):
            yield file


def _fitting(split: Split, model: Model) -> Windows:
    if model.longest_sequence is None or model.longest_sequence < WINDOW_TOKENS:
        raise InputError(f"{model.name} takes no sequence of {WINDOW_TOKENS} tokens", hint="use another model")
    return windows_of(split)


def _samples(windows: Windows, truth: Ids, classes: tuple[str, ...]) -> Samples:
    return Samples(
        ids=windows.names,
        shape=(WINDOW_TOKENS,),
        load=lambda indices: windows.ids[indices],
        truth=lambda indices: truth[indices],
        classes=classes,
        groups=windows.files,
        dtype=np.int64,
    )
