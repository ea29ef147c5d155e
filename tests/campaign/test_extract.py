# SPDX-License-Identifier: Apache-2.0
"""What is stored of a run when it ends tells what its files tell, and never stands for files that changed."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pybench.campaign import extract, hashed
from pybench.campaign.directory import RunDirectory
from pybench.campaign.extract import EXTRACT, FORMAT
from pybench.campaign.finished_run import FinishedRun
from pybench.campaign.hashed import INDEX
from pybench.campaign.layout import COMPLETE, ENVIRONMENT, RUNS, SUMMARY
from pybench.campaign.storage import write_json
from pybench.case import Case
from pybench.catalogue.causes import Cause
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.cli import main
from pybench.dataset import Dataset, load, run_tables
from pybench.errors import EXIT_CORRUPT, EXIT_OK, CorruptError
from pybench.measure.quantity import Quantity
from pybench.measurement.result import Validity
from tests.support.campaigns import ENVIRONMENT_CONTENT, CampaignBuilder, build_typical, finish_again
from tests.support.energies import ON_A_BOARD, energy_metrics, energy_window, store_energy

INFER = Case(workload="infer", model="digits-cnn", runtime="onnxruntime")
BOARDS = INFER.with_factors(batch=8)
ODD = 'a "quoted" text, with a\nline end; ü'
TABLES = ("runs", "metrics", "cautions", "frame", "predictions")
REST = ("labels", "software", "environments", "energies", "prediction_runs", "unfinished", "orphans", "beyond")
SEED = 20261128


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return CampaignBuilder(tmp_path / "c", [INFER], repetitions=1).run(INFER, 1, {"latency_mean_ms": 1.0})


def campaign_of(run: RunDirectory) -> Path:
    return run.path.parents[3]


def latency_of(dataset: Dataset) -> float:
    (value,) = dataset.metrics["value"]
    return float(value)


def remove_extracts(campaign: Path) -> int:
    found = list((campaign / RUNS).rglob(EXTRACT))
    for file in found:
        file.unlink()
    return len(found)


def forbid_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on reading a run's own files fails."""

    def refuse(files: RunDirectory, known: object) -> FinishedRun:
        raise AssertionError(f"{files.path} was read")

    monkeypatch.setattr(run_tables, "read_finished_run", refuse)


def build_varied(folder: Path) -> CampaignBuilder:
    """Runs of all outcomes, with predictions, odd texts and environments that differ."""
    builder = build_typical(folder, repetitions=3)
    for case in (INFER, BOARDS):
        shutil.rmtree(builder.campaign.block(case.id, 1), ignore_errors=True)
    environments: list[Mapping[str, Any]] = [
        {**ON_A_BOARD, "measuring": {"begin_ns": 5, "gpu": {"name": "H200", "uuid": "GPU-1", "driver_version": "580"}}},
        {**ENVIRONMENT_CONTENT, "load_average": [0.5, 2], "image_digest": None, "packages": {"numpy": "2", "a.b": "1"}},
    ]
    metrics = {"latency_mean_ms": Quantity(value=1 / 3, method=ODD, samples=7), "latency_p50_ms": Quantity(method="")}
    builder.run(BOARDS, 1, {"latency_mean_ms": 1.0}, environment=environments[0])
    builder.run(
        INFER, 1, metrics, labels={"device": "", "odd": [ODD, None, {"deep": 1e-320}]}, environment=environments[1]
    )
    return builder


@pytest.mark.parametrize("keeps_index", [True, False])
def test_extracts_and_files_make_the_same_dataset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeps_index: bool
) -> None:
    monkeypatch.setattr(hashed, "RECENT_S", -1.0)
    builder = build_varied(tmp_path / "c")
    if keeps_index:
        load(builder.path)
    with monkeypatch.context() as patched:
        forbid_files(patched)
        quick = load(builder.path)
    assert remove_extracts(builder.path) == quick.runs.height
    if not keeps_index:
        (builder.path / INDEX).unlink()
    plain = load(builder.path)
    for name in TABLES:
        assert getattr(quick, name).equals(getattr(plain, name)), name
        assert getattr(quick, name).schema == getattr(plain, name).schema, name
    for name in REST:
        assert getattr(quick, name) == getattr(plain, name), name
    assert list(quick.environments) == list(plain.environments)
    assert [list(counts) for counts in quick.environments.values()] == [
        list(counts) for counts in plain.environments.values()
    ]


def test_the_energy_of_boards_comes_from_extracts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = CampaignBuilder(tmp_path / "c", [INFER, BOARDS], repetitions=2)
    store_energy(builder.run(INFER, 1, energy_metrics(), environment=ON_A_BOARD), energy_window())
    store_energy(builder.run(BOARDS, 2, energy_metrics(), environment=ON_A_BOARD), energy_window(None, valid=False))
    builder.run(BOARDS, 1, {"latency_mean_ms": 1.0})
    with monkeypatch.context() as patched:
        forbid_files(patched)
        quick = load(builder.path)
    remove_extracts(builder.path)
    assert len(quick.energies) == 2
    assert quick.energies == load(builder.path).energies


def test_runs_with_and_without_extracts_may_alternate(tmp_path: Path) -> None:
    builder = build_typical(tmp_path / "c", repetitions=3)
    whole = load(builder.path)
    for number, file in enumerate(sorted((builder.path / RUNS).rglob(EXTRACT))):
        if number % 3:
            file.unlink()
    mixed = load(builder.path)
    for name in TABLES:
        assert getattr(mixed, name).equals(getattr(whole, name)), name


@pytest.mark.parametrize("was_hashed", [True, False])
def test_a_changed_file_is_corrupt_however_whole_the_extract_is(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, was_hashed: bool
) -> None:
    monkeypatch.setattr(hashed, "RECENT_S", -1.0)
    if was_hashed:
        load(campaign_of(run))
    summary = run.file(SUMMARY)
    before = summary.stat()
    summary.write_bytes(summary.read_bytes().replace(b"1.0", b"2.0", 1))
    os.utime(summary, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(CorruptError, match=r"summary\.json has sha256"):
        load(campaign_of(run))


def test_an_extract_next_to_another_complete_is_not_used(run: RunDirectory) -> None:
    summary = run.file(SUMMARY)
    summary.write_bytes(summary.read_bytes().replace(b"1.0", b"2.0", 1))
    finish_again(run.path)
    assert latency_of(load(campaign_of(run))) == 2.0


def test_a_removed_run_is_gone(run: RunDirectory) -> None:
    load(campaign_of(run))
    shutil.rmtree(run.path)
    assert load(campaign_of(run)).runs.height == 0


def test_a_damaged_extract_is_not_used(run: RunDirectory) -> None:
    file = run.file(EXTRACT)
    whole, moment = file.read_bytes(), random.Random(SEED)
    assert extract.read(run) is not None
    for _ in range(300):
        content = bytearray(whole)
        content[moment.randrange(len(content))] ^= moment.randint(1, 255)
        file.write_bytes(content)
        assert extract.read(run) is None
    for end in range(len(whole)):
        file.write_bytes(whole[:end])
        assert extract.read(run) is None
    assert latency_of(load(campaign_of(run))) == 1.0


def test_an_extract_of_another_format_is_not_used(run: RunDirectory) -> None:
    file = run.file(EXTRACT)
    file.write_bytes(file.read_bytes().replace(b"extract %d " % FORMAT, b"extract %d " % (FORMAT + 1), 1))
    assert extract.read(run) is None
    assert latency_of(load(campaign_of(run))) == 1.0


def test_an_extract_of_another_shape_is_not_used(run: RunDirectory) -> None:
    forge(run, b"[", b"[[],")
    assert extract.read(run) is not None
    assert latency_of(load(campaign_of(run))) == 1.0


def forge(run: RunDirectory, before: bytes, after: bytes) -> None:
    """An extract with something else, and with the digests that make it look whole."""
    head, _, body = run.file(EXTRACT).read_bytes().partition(b"\n")
    body = body.replace(before, after, 1)
    digest = hashlib.sha256(body).hexdigest().encode()
    run.file(EXTRACT).write_bytes(head.rpartition(b" ")[0] + b" " + digest + b"\n" + body)


def test_check_finds_a_forged_extract(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(campaign_of(run))]) == EXIT_OK
    forge(run, b",1.0,", b",3.0,")
    assert main(["check", str(campaign_of(run))]) == EXIT_CORRUPT
    told = capsys.readouterr().err
    assert f"{run.file(EXTRACT)} does not say what the run's files say" in told
    assert "remove it" in told


def test_a_run_that_cannot_be_read_has_no_extract_and_is_told(tmp_path: Path) -> None:
    run = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1).run(INFER, 1, {"latency_mean_ms": 1.0})
    run.file(EXTRACT).unlink()
    summary = json.loads(run.file(SUMMARY).read_bytes())
    summary["windows"]["timing"]["iterations"] += 1
    write_json(run.file(SUMMARY), summary)
    finish_again(run.path)
    extract.store(run)
    assert not run.has(EXTRACT)
    with pytest.raises(CorruptError, match=r"complete rows, but summary\.json counts"):
        load(tmp_path / "c")


@pytest.mark.parametrize("metric", [{"value": 2**70}, {"samples": 2.0}, {"samples": 2**70}, {"unit": 5}])
def test_values_of_other_types_are_read_from_the_files(run: RunDirectory, metric: dict[str, Any]) -> None:
    run.file(EXTRACT).unlink()
    summary = json.loads(run.file(SUMMARY).read_bytes())
    summary["metrics"]["latency_mean_ms"] |= metric
    run.file(SUMMARY).write_text(json.dumps(summary))
    finish_again(run.path)
    extract.store(run)
    with_extracts = load(campaign_of(run)).metrics
    remove_extracts(campaign_of(run))
    assert with_extracts.equals(load(campaign_of(run)).metrics)


def test_a_place_that_cannot_be_written_costs_only_time(run: RunDirectory) -> None:
    run.file(EXTRACT).unlink()
    run.file(EXTRACT).mkdir()
    extract.store(run)
    assert latency_of(load(campaign_of(run))) == 1.0


def test_a_pipe_in_the_place_of_an_extract_costs_only_time(run: RunDirectory) -> None:
    run.file(EXTRACT).unlink()
    os.mkfifo(run.file(EXTRACT))
    assert latency_of(load(campaign_of(run))) == 1.0


def test_an_extract_is_no_file_of_the_run(run: RunDirectory) -> None:
    assert run.has(EXTRACT)
    assert EXTRACT.encode() not in run.file(COMPLETE).read_bytes()


def test_what_is_stored_changes_only_with_the_format(tmp_path: Path) -> None:
    """Whoever changes the bytes counts FORMAT up, so that no reader takes old extracts for new ones."""
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=1)
    environment = {**ENVIRONMENT_CONTENT, "measuring": {"begin_ns": 0, "gpu": {"name": "H200"}}}
    run = builder.run(INFER, 1, energy_metrics(), environment=environment)
    assert json.loads(run.file(ENVIRONMENT).read_bytes())["measuring"]["gpu"]
    store_energy(run, energy_window())
    _, _, body = run.file(EXTRACT).read_bytes().partition(b"\n")
    assert (FORMAT, hashlib.sha256(body).hexdigest()[:16]) == (2, "cd06960dcc5cfea3")


def test_everything_that_is_kept_is_in_what_the_format_pins(tmp_path: Path) -> None:
    """Each value differs from all others, so that two that change places are noticed."""
    builder = CampaignBuilder(tmp_path / "c", [INFER], repetitions=2)
    reasons = (Reason(Cause.MEMORY_ERROR, "a"), Reason(Cause.EXCEPTION, "b", ("OSError",)))
    latency = Quantity(
        value=1.5, u_standard=0.25, u_absolute=0.5, interval=(1.25, 2.0), samples=7, window="timing", method="by hand",
        reasons=(Reason(ReasonCode.NOTHING_COUNTED, "c"),),
    )  # fmt: skip
    whole = builder.run(
        INFER, 1, {"latency_mean_ms": latency, "top1_percent": 50.0}, labels={"device": "cpu", "ids_sha256": "12"},
        valid={"timing": Validity(False, reasons[:1]), "energy": Validity(None, reasons[1:])},
        cautions=[Caution(CautionCode.OUTLIERS, "two", "latency_mean_ms")],
    )  # fmt: skip
    crashed = builder.run(INFER, 2, outcome="crashed", reason="exception", detail="ended")
    bodies = b"".join(run.file(EXTRACT).read_bytes().partition(b"\n")[2] for run in (whole, crashed))
    kept = (b"1.5,0.25,0.5,1.25,2.0,7", b"by hand", b"nothing_counted", b"two", b'"12"', b'"crashed"', b'"ended"')
    assert [words for words in kept if words not in bodies] == []
    assert (FORMAT, hashlib.sha256(bodies).hexdigest()[:16]) == (2, "8ea290c0243b34a2")
