# SPDX-License-Identifier: Apache-2.0
"""Several processes read what one reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign.directory import RunDirectory
from pybench.campaign.hashed import INDEX, CheckedFiles
from pybench.campaign.layout import SUMMARY
from pybench.case import Case
from pybench.dataset import load, run_tables
from pybench.errors import CorruptError
from pybench.processes import Processes
from tests.support.campaigns import CampaignBuilder, build_typical
from tests.support.energies import ON_A_BOARD, energy_metrics, energy_window, store_energy

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[Processes]:
    """Two processes, and tasks of three runs."""
    monkeypatch.setattr(run_tables, "_TASK_RUNS", 3)
    processes = Processes(2)
    yield processes
    processes.close()


@pytest.mark.process
def test_two_processes_read_what_one_reads(tmp_path: Path, two: Processes) -> None:
    builder = build_typical(tmp_path / "c", repetitions=3)
    alone, shared = load(builder.path), load(builder.path, processes=two)
    assert len(alone.runs) > 6  # three tasks at least
    for name in ("runs", "metrics", "cautions", "frame", "predictions"):
        assert getattr(shared, name).equals(getattr(alone, name)), name
    for name in ("labels", "software", "environments", "prediction_runs", "unfinished", "orphans", "beyond"):
        assert getattr(shared, name) == getattr(alone, name), name


@pytest.mark.process
def test_energies_and_what_was_hashed_come_back_from_another_process(tmp_path: Path, two: Processes) -> None:
    cases = [INFER.with_factors(batch=batch) for batch in range(1, 8)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1)
    for case in cases:
        store_energy(builder.run(case, 1, energy_metrics(), environment=ON_A_BOARD), energy_window())
    alone = load(builder.path)
    (builder.path / INDEX).unlink(missing_ok=True)
    shared = load(builder.path, processes=two)
    assert len(shared.energies) == len(cases)
    assert shared.energies == alone.energies


@pytest.mark.process
def test_a_broken_run_is_named_by_whichever_process_read_it(tmp_path: Path, two: Processes) -> None:
    cases = [INFER.with_factors(batch=batch) for batch in range(1, 10)]
    builder = CampaignBuilder(tmp_path / "c", cases, repetitions=1)
    for case in cases:
        builder.run(case, 1, {"latency_mean_ms": 1.0})
        builder.campaign.attempt(case.id, 1, 1).file(SUMMARY).write_bytes(b"{}")
    with pytest.raises(CorruptError) as caught:
        load(builder.path, processes=two)
    assert all(case.id in caught.value.message for case in cases)


NUMBERS = b'{"metrics": {"n": [1, -0, 2.50, 1e5, 18446744073709551616]}, "windows": {}, "labels": {"sign": "\\u00b5"}'


@pytest.mark.parametrize(
    "more",
    [
        b"",
        b', "infinite": 1e999',
        b', "alone": "\\ud800"',
        b', "twice": 1, "twice": 2',
    ],
)
def test_whatever_python_reads_is_read_with_the_same_values(tmp_path: Path, more: bytes) -> None:
    text = NUMBERS + more + b', "schema_version": 1}'
    quick, plain = (read_with(tmp_path, text, decode).read_summary() for decode in (run_tables.DECODE, json.loads))
    assert repr(quick) == repr(plain) == repr(json.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[1]", b"\xff", b"[" * 100_000, b"{}"),
        *(b'{"a": 01}', b'{"a": NaN}', b'{"a": -Infinity}', b'{"schema_version": 2}'),
    ],
)
def test_whatever_python_refuses_is_refused_in_the_same_words(tmp_path: Path, text: bytes) -> None:
    told = []
    for decode in (run_tables.DECODE, json.loads):
        with pytest.raises(CorruptError) as caught:
            read_with(tmp_path, text, decode).read_summary()
        told.append((caught.value.message, caught.value.hint))
    assert told[0] == told[1]


def read_with(folder: Path, summary: bytes, decode: Callable[[bytes], Any]) -> RunDirectory:
    return RunDirectory(folder, INFER.id, 1, 1).with_contents(CheckedFiles(True, {SUMMARY: summary}), decode)
