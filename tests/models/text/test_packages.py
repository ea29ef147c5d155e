# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybench.catalogue.models import MODELS, TOKENIZER_IDS
from pybench.errors import CorruptError, InputError
from pybench.models.text.packages import CORPUS, WINDOW_TOKENS, open_packages, open_text, read_corpus, windows_of

ROW = MODELS["text-encoder"]


def test_every_text_has_the_sha256_that_the_list_states() -> None:
    lines = [json.loads(line) for line in lzma.decompress(CORPUS.read_bytes()).splitlines()]
    assert len(lines) == 327
    for line in lines:
        assert hashlib.sha256(line["text"].encode()).hexdigest() == line["sha256"], line["path"]
    assert [line["path"] for line in lines] == sorted({line["path"] for line in lines})


def test_another_corpus_is_an_error(tmp_path: Path) -> None:
    other = tmp_path / "other.xz"
    other.write_bytes(lzma.compress(b'{"path": "a/b.py", "sha256": "", "text": ""}\n'))
    with pytest.raises(CorruptError, match=r"other\.xz has the sha256 \w{12}, expected 1f11a58561d0"):
        read_corpus(other)


def test_no_file_both_trains_and_judges_and_all_classes_are_in_both() -> None:
    train, judges = open_packages("train", ROW), open_packages("validation", ROW)
    assert set(train.groups or ()).isdisjoint(judges.groups or ())
    assert set(train.all_truth()) == set(judges.all_truth()) == set(range(10))
    assert (len(train), len(judges), len(set(judges.groups or ()))) == (2424, 844, 79)


def test_a_window_has_the_class_of_its_package_and_is_followed_by_the_next_one() -> None:
    judges, text = open_packages("validation", ROW), open_text("validation", ROW)
    windows = windows_of("validation")
    place = judges.ids.index("asyncio/constants.py:1") if "asyncio/constants.py:1" in judges.ids else 1
    assert judges.classes[int(judges.truth(np.array([place]))[0])] == judges.ids[place].split("/")[0]
    alike = [i for i in range(len(windows.files) - 1) if windows.files[i] == windows.files[i + 1]]
    assert alike
    assert all(windows.following[i] == windows.ids[i + 1, 0] for i in alike)
    assert np.array_equal(text.all_truth(), windows.following)
    assert windows.ids.shape == (844, WINDOW_TOKENS)
    assert int(windows.ids.max()) < TOKENIZER_IDS


def test_a_model_of_short_sequences_takes_no_window() -> None:
    with pytest.raises(InputError, match="text-encoder takes no sequence of 128 tokens"):
        open_packages("train", replace(ROW, longest_sequence=64))
