# SPDX-License-Identifier: Apache-2.0
"""Batches of ids on a real GPU: page-locked once, copied while the host goes on, slots given back after their copy."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from pybench.case import Case  # noqa: E402
from pybench.errors import PybenchError  # noqa: E402
from pybench.preprocess import find_tokenizer, open_batches, resolve_corpus  # noqa: E402
from pybench.preprocess.tensors import PageLocked, TensorBatches  # noqa: E402
from pybench.runtimes.torch import end_marker  # noqa: E402
from tests.support.making import run  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")]

TOKENIZER = find_tokenizer("tok32k")
PATHS = ("python", "hf", "rust", "go_rust")


@pytest.mark.parametrize("path", PATHS)
def test_every_path_brings_the_same_ids_to_the_gpu(path: str) -> None:
    corpus = resolve_corpus("python-stdlib", 300_000)
    with open_batches("rust", TOKENIZER, corpus, 4, 128) as stream:
        expected = np.stack(list(stream))
    with open_batches(path, TOKENIZER, corpus, 4, 128, 2) as stream:
        batches = TensorBatches(stream, "cuda")
        got = [batches.next() for _ in expected]
        batches.close()
    assert all(ids.is_cuda and ids.dtype == torch.int64 for ids in got)
    np.testing.assert_array_equal(torch.stack(got).cpu().numpy(), expected)


@pytest.mark.parametrize("path", ["none", "rust", "go_rust"])
def test_slots_are_page_locked_as_torch_sees_it(path: str) -> None:
    with open_batches(path, TOKENIZER, resolve_corpus("python-stdlib", 300_000), 4, 128, 1) as stream:
        batches = TensorBatches(stream, "cuda")
        batches.next()
        assert all(view.is_pinned() for view in batches._views.values())
        batches.close()
        assert not any(view.is_pinned() for view in batches._views.values())


def test_memory_is_page_locked_once_and_a_second_time_is_refused_and_clears_up() -> None:
    with open_batches("none", TOKENIZER, resolve_corpus("python-stdlib", 300_000), 4, 128, 1) as stream:
        first = PageLocked(stream.memory)
        with pytest.raises(PybenchError, match="CUDA could not page-lock"):
            PageLocked(stream.memory)
        first.close()
        PageLocked(stream.memory).close()
    assert float((torch.ones(4, device="cuda") * 2).sum()) == 8.0  # no error is left behind


@pytest.mark.parametrize("path", ["rust", "go_rust"])
def test_a_slow_gpu_never_sees_a_slot_that_is_written_over(path: str) -> None:
    """Many copies are queued behind long work, so a slot that came back too early would hold later ids."""
    corpus = resolve_corpus("python-stdlib", 300_000)
    with open_batches("rust", TOKENIZER, corpus, 4, 128) as stream:
        expected = np.stack(list(stream))[:60]
    with open_batches(path, TOKENIZER, corpus, 4, 128, 2) as stream:
        batches = TensorBatches(stream, "cuda")
        got = []
        for _ in expected:
            torch.cuda._sleep(2_000_000)  # about a millisecond
            got.append(batches.next())
        batches.close()
    np.testing.assert_array_equal(torch.stack(got).cpu().numpy(), expected)


def test_a_pass_is_waited_for_and_nothing_that_is_enqueued_behind_it() -> None:
    stream, mark = torch.cuda.current_stream(), end_marker("cuda")
    for _ in range(3):  # one event serves all marks
        torch.cuda._sleep(2_000_000)
        wait = mark()
        assert not stream.query()
        wait()
        assert stream.query()
    wait = mark()
    torch.cuda._sleep(400_000_000)  # some 0.2 s
    wait()
    assert not stream.query()
    stream.synchronize()


@pytest.mark.parametrize("path", ["none", "rust", "go_rust"])
@pytest.mark.parametrize("workload", ["infer", "train"])
def test_a_fed_model_says_how_long_it_waited(path: str, workload: str) -> None:
    case = Case(
        workload=workload, model="tinylm-small", runtime="torch", path=path, batch=8, seq_len=128, iterations=40,
        fed=workload == "train" or path == "none",
    )  # fmt: skip
    metrics = run(case).metrics
    assert 0 <= metrics["wait_share_ratio"].value < 0.9
    assert metrics["cpu_cores_ratio"].value > 0
    assert metrics["throughput_tokens_per_s"].value > 0
