# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gzip
import os
from itertools import count
from pathlib import Path

import pytest

from pybench.case import Case
from pybench.errors import InputError, PybenchError, UnsupportedError
from pybench.measurement import doubts
from pybench.measurement.doubts import judge_timing
from pybench.measurement.feed import TokenFeed
from pybench.preprocess import packing, vocabulary
from pybench.workloads import tokenize
from tests.support.making import codes, run

pytestmark = pytest.mark.process  # the orchestrator of go_rust

TEXT = Case(workload="tokenize", path="rust", batch=2, seq_len=32, threads=1, iterations=30, corpus="text")
TRAIN = Case(workload="train", model="tinylm-small", runtime="torch", batch=2, seq_len=16, threads=1, iterations=6)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "text"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number:02d}.txt").write_text(f"Document {number}: the quick brown fox.\n" * (5 + number))
    return folder


def test_every_path_gives_the_same_ids_however_long_it_measures(corpus: Path) -> None:
    hashes = {}
    for path, iterations in (("python", 5), ("hf", 12), ("rust", 30), ("go_rust", 200)):
        try:
            result = run(TEXT.with_factors(path=path, iterations=iterations), {"corpus": corpus})
        except PybenchError as error:
            if path != "go_rust":
                raise
            pytest.skip(f"the orchestrator is not built: {error.message}")
        hashes[path] = result.labels["ids_sha256"]
        assert result.labels["ids_hashed_batches"] == (1 << 17) // 64
    assert len(set(hashes.values())) == 1


def test_the_hash_is_that_of_the_first_batches_of_the_text(corpus: Path) -> None:
    import hashlib

    from pybench.preprocess import find_tokenizer, open_batches, resolve_corpus

    result = run(TEXT, {"corpus": corpus})
    digest = hashlib.sha256()
    resolved = resolve_corpus(str(corpus))
    with open_batches("hf", find_tokenizer("tok32k"), resolved, 2, 32, epochs=0, hash_ids=False) as stream:
        for _ in range(result.labels["ids_hashed_batches"]):
            digest.update(packing.hashed_form(next(stream)))
    assert result.labels["ids_sha256"] == digest.hexdigest()


def test_draining_reports_tokens_text_and_waiting(corpus: Path) -> None:
    result = run(TEXT.with_factors(iterations=400), {"corpus": corpus})
    assert result.metrics["throughput_tokens_per_s"].value > 10_000
    assert result.metrics["text_mb_per_s"].value > 0
    assert 0 < result.metrics["wait_share_ratio"].value <= 1
    assert result.labels["inputs"] == "drained"
    assert "outliers" not in codes(result)


def test_batches_that_come_in_bursts_are_timed_together(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, skip = count(), TokenFeed.skip
    monkeypatch.setattr(TokenFeed, "skip", lambda feed: skip(feed) if next(calls) % 16 == 0 else None)
    result = run(TEXT.with_factors(iterations=320), {"corpus": corpus})
    assert result.metrics["latency_p50_ms"].value < result.metrics["latency_mean_ms"].value / 2
    monkeypatch.setattr(doubts, "SHORTEST_ITERATION_S", result.metrics["latency_p50_ms"].value * 1e-3 * 1.5)
    assert judge_timing(result.metrics["latency_p50_ms"].value * 1e-3).value is False
    assert run(TEXT.with_factors(iterations=320), {"corpus": corpus}).valid["timing"].value is True


def test_a_corpus_that_is_read_again_raises_a_caution(corpus: Path) -> None:
    assert "corpus_wrapped" in codes(run(TEXT.with_factors(iterations=2000), {"corpus": corpus}))
    assert "corpus_wrapped" not in codes(run(TEXT.with_factors(iterations=30), {"corpus": corpus}))


@pytest.mark.parametrize("path", ["python", "hf", "rust"])
def test_a_window_inside_a_document_has_no_rate(tmp_path: Path, path: str) -> None:
    (tmp_path / "book.txt").write_text("It was the best of times, it was the worst of times.\n" * 800)
    case = TEXT.with_factors(path=path, iterations=30)
    result = run(case, {"corpus": tmp_path / "book.txt"})
    for name in ("throughput_tokens_per_s", "throughput_samples_per_s", "cpu_energy_per_token_estimate_j"):
        found = result.metrics[name]
        assert (found.value, found.interval) == (None, None), name
        assert [str(reason.code) for reason in found.reasons] == ["nothing_counted"], name
    assert result.metrics["text_mb_per_s"].value is None


def test_a_model_fed_inside_a_document_has_a_caution(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text("It was the best of times, it was the worst of times.\n" * 800)
    case = TRAIN.with_factors(model="tinylm-tiny", path="python", corpus="text")
    assert "tokenizing_uneven" in codes(run(case, {"corpus": tmp_path / "book.txt"}))
    (tmp_path / "note.txt").write_text("It was the best of times.\n")
    assert "tokenizing_uneven" not in codes(run(case, {"corpus": tmp_path / "note.txt"}))
    assert "tokenizing_uneven" not in codes(run(case.with_factors(path="none"), {}))


@pytest.mark.parametrize("path", ["python", "hf", "rust"])
def test_a_rate_is_of_what_was_tokenized_in_the_window(tmp_path: Path, path: str) -> None:
    text = "It was the best of times, it was the worst of times.\n" * 800
    (tmp_path / "book.txt").write_text(text)
    case = TEXT.with_factors(path=path, iterations=330, warmup_iterations=0)
    result = run(case, {"corpus": tmp_path / "book.txt"})
    times = result.tables["iterations"]
    took_s = (times["host_ns"].sum() + times["gap_ns"][1:].sum()) * 1e-9
    # 1.76 documents of 12,000 tokens and their end were taken, so two were tokenized.
    assert result.metrics["throughput_tokens_per_s"].value == pytest.approx(2 * 12_001 / took_s)
    assert result.metrics["throughput_samples_per_s"].value == pytest.approx(2 * 12_001 / case.seq_len / took_s)
    assert result.metrics["text_mb_per_s"].value == pytest.approx(2 * len(text) / 1e6 / took_s)


def test_text_of_no_finished_document_has_no_rate() -> None:
    assert tokenize._text_rate(0, 1.0).value is None
    assert tokenize._text_rate(0, 1.0).reasons
    assert tokenize._text_rate(3_000_000, 2.0).value == 1.5


def test_batches_can_feed_a_model(corpus: Path) -> None:
    case = TEXT.with_factors(model="tinylm-small", runtime="torch", iterations=3)
    result = run(case, {"corpus": corpus})
    assert result.labels["inputs"] == "fed to tinylm-small"
    assert result.labels["ids_sha256"] == run(TEXT, {"corpus": corpus}).labels["ids_sha256"]
    assert result.valid["precision"].value is True
    assert result.metrics["wait_share_ratio"].value < 0.9


def test_a_corpus_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe broken")
    with pytest.raises(InputError, match=r"bad\.txt"):
        run(TEXT, {"corpus": tmp_path / "bad.txt"})


def test_training_learns_its_batches() -> None:
    result = run(TRAIN.with_factors(warmup_iterations=0, iterations=24))
    first, last = result.metrics["loss_first_nats"].value, result.metrics["loss_last_nats"].value
    assert 10 < first < 11  # ln 32000 = 10.37: an untrained model knows nothing
    assert last < first - 0.5
    assert result.valid["precision"].value is True
    assert result.labels["precision_realised"] == "parameters float32, TF32 off"
    assert result.metrics["throughput_tokens_per_s"].value > 0
    assert "untrained_weights" not in codes(result)


def test_training_under_autocast_keeps_its_weights_in_fp32() -> None:
    result = run(TRAIN.with_factors(precision="amp-bf16"))
    assert result.labels["precision_realised"] == "parameters float32, autocast to bf16"
    assert result.metrics["loss_last_nats"].value < 11


def test_training_takes_tokenized_text(corpus: Path) -> None:
    result = run(TRAIN.with_factors(path="hf", corpus="text", iterations=2), {"corpus": corpus})
    assert result.labels["vocabulary"] == vocabulary.vocabulary_size(vocabulary.find_tokenizer("tok32k"))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"runtime": "onnxruntime"}, "no_training"),
        ({"model": "mlp"}, "no_training"),
        ({"precision": "int8"}, "no_int8_in_torch"),
        ({"precision": "amp-fp16", "device": "cpu"}, "no_gpu"),
    ],
)
def test_training_that_is_not_offered_is_unsupported(changes: dict[str, str], code: str) -> None:
    from pybench import workloads
    from pybench.measurement.result import RunRequest

    case = TRAIN.with_factors(**changes)
    with pytest.raises(UnsupportedError) as caught:
        workloads.run(RunRequest(case=case, block=0, attempt=1, seed=0, artefacts={}, files={}))
    assert caught.value.reason.stored_code == code


def test_copies_to_a_gpu_that_is_not_there_are_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="a copy inside the host would be another measurement") as caught:
        run(Case(workload="h2d", device="cpu", threads=1))
    assert caught.value.reason.stored_code == "no_gpu"


@pytest.mark.parametrize("workload", ["infer", "train"])
@pytest.mark.parametrize("path", ["none", "rust", "go_rust"])
def test_a_fed_model_says_how_long_it_waited_and_how_many_cores_it_took(corpus: Path, workload: str, path: str) -> None:
    case = TRAIN.with_factors(
        workload=workload, path=path, fed=None if workload == "train" else path == "none", iterations=4
    )
    files = {} if path == "none" else {"corpus": corpus}
    result = run(case if path == "none" else case.with_factors(corpus="text"), files)
    assert 0 <= result.metrics["wait_share_ratio"].value < 0.9
    assert 0 < result.metrics["cpu_cores_ratio"].value < 2 * len(os.sched_getaffinity(0))
    assert result.metrics["throughput_tokens_per_s"].value > 0
    assert ("ids_sha256" in result.labels) is (path != "none")


def test_synthetic_ids_that_are_fed_are_hardly_waited_for(corpus: Path) -> None:
    fed = TRAIN.with_factors(workload="infer", fed=True, iterations=10)
    assert run(fed).metrics["wait_share_ratio"].value < 0.05
    assert "wait_share_ratio" not in run(fed.with_factors(fed=False)).metrics


def test_a_field_of_json_lines_is_a_corpus(tmp_path: Path) -> None:
    lines = tmp_path / "x.jsonl.gz"
    lines.write_bytes(gzip.compress(b'{"body": "some words, again and again"}\n' * 500))
    case = TEXT.with_factors(corpus="lines", corpus_field="body")
    hashes = {run(case.with_factors(path=path), {"corpus": lines}).labels["ids_sha256"] for path in ("hf", "go_rust")}
    assert len(hashes) == 1
