# SPDX-License-Identifier: Apache-2.0
"""What an iteration that is fed does, in which order; with a GPU: tests/gpu/test_token_feed.py."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pybench.case import Case  # noqa: E402
from pybench.errors import InputError  # noqa: E402
from pybench.measurement.feed import TokenFeed, ahead  # noqa: E402
from pybench.measurement.result import RunRequest  # noqa: E402
from pybench.preprocess import find_tokenizer, open_batches, resolve_corpus  # noqa: E402
from tests.support.making import run  # noqa: E402

pytestmark = pytest.mark.process  # the orchestrator of go_rust

CASE = Case(workload="infer", model="tinylm-small", runtime="torch", batch=2, seq_len=16, threads=1, iterations=4)
PATHS = ("none", "rust", "go_rust")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for number in range(8):
        (tmp_path / f"{number}.txt").write_text(f"Document {number}: the quick brown fox.\n" * 9)
    return tmp_path


def request_of(case: Case, corpus: Path) -> RunRequest:
    return RunRequest(case=case, block=1, attempt=1, seed=1, artefacts={}, files={"corpus": corpus})


@pytest.mark.parametrize("as_tensors", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_the_next_batch_is_fetched_between_launch_and_wait_and_each_runs_once(
    corpus: Path, path: str, as_tensors: bool
) -> None:
    with TokenFeed(request_of(CASE.with_factors(path=path), corpus)) as feed:
        if as_tensors:
            feed.bring_to("cpu")
        done: list[str] = []
        ran: list[np.ndarray] = []
        fetch = feed.next

        def noted() -> object:
            done.append("fetch")
            return fetch()

        def launch(batch: object) -> Callable[[], None]:
            done.append("launch")
            ran.append(np.asarray(batch))
            return lambda: done.append("wait")

        feed.next = noted  # type: ignore[method-assign]
        iterate = ahead(feed, launch)
        for _ in range(40):
            iterate()
    assert done == ["fetch", *["launch", "fetch", "wait"] * 40]
    tokenizer = find_tokenizer("tok32k")
    with open_batches(
        path, tokenizer, resolve_corpus(str(corpus)), 2, 16, 1, epochs=0, seed=1, hash_ids=False
    ) as stream:
        for ids in ran:
            slot = stream.take()
            np.testing.assert_array_equal(ids, slot.ids)
            stream.give_back(slot.index)


def test_a_window_takes_as_many_batches_as_it_runs(corpus: Path) -> None:
    with TokenFeed(request_of(CASE.with_factors(path="rust"), corpus)) as feed:
        iterate = ahead(feed, lambda _: lambda: None)
        iterate()
        before = feed._stream.tokens
        for _ in range(10):
            iterate()
        assert feed._stream.tokens - before == 10 * 2 * 16


def test_results_say_what_an_iteration_is(corpus: Path) -> None:
    fed = run(CASE.with_factors(path="rust"), {"corpus": corpus})
    assert fed.labels["iteration"].startswith("one forward pass, from the launch of its batch")
    assert "fetch" not in run(CASE).labels["iteration"]
    trained = run(CASE.with_factors(workload="train", path="rust"), {"corpus": corpus})
    assert trained.labels["iteration"].startswith("one optimiser step, from the launch of its batch")


@pytest.mark.parametrize("path", ["rust", "go_rust"])
def test_a_corpus_that_goes_away_while_a_batch_is_in_hand_ends_with_its_error(corpus: Path, path: str) -> None:
    waited: list[int] = []

    def run_on() -> None:
        with TokenFeed(request_of(CASE.with_factors(path=path), corpus)) as feed:
            feed.bring_to("cpu")
            iterate = ahead(feed, lambda _: lambda: waited.append(1))
            iterate()
            (corpus / "7.txt").unlink()
            for _ in range(1_000_000):  # it is read again and again
                iterate()

    with pytest.raises(InputError, match=r"7\.txt"):
        run_on()
    assert waited


def test_what_another_process_made_ahead_is_used_up(corpus: Path) -> None:
    with TokenFeed(request_of(CASE.with_factors(path="go_rust"), corpus)) as feed:
        feed.skip()
        while feed._stream.ready < feed._stream.slots // 2:
            time.sleep(0.001)
        before = feed._stream.tokens
        feed.use_up()
        taken = (feed._stream.tokens - before) // (CASE.batch * CASE.seq_len)
        assert taken >= feed._stream.slots // 2 + feed._stream.slots
    with TokenFeed(request_of(CASE.with_factors(path="rust"), corpus)) as feed:
        feed.use_up()
        assert feed._stream.tokens == 0
