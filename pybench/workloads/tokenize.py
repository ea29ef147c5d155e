# SPDX-License-Identifier: Apache-2.0
"""From text to token batches on one path, drained, or fed to TinyLM where a model is given.

Reports tokens and text a second, the share of the window in which the consumer waited, and the hash of the first
batches, which is equal on every path that tokenizes exactly. Without a model the consumer only takes batches: the
path's own speed. An orchestrator in a process of its own fills its ring before the window begins; those few batches
are a gift to it.
"""

from __future__ import annotations

from collections.abc import Callable

from pybench.cautions import CautionCode
from pybench.units import MEGA
from pybench.workloads.doubts import allowed_threads
from pybench.workloads.feeding import TokenFeed
from pybench.workloads.opening import Opened, conclude, open_model
from pybench.workloads.recording import TIMING, Amounts, Recorder
from pybench.workloads.result import Measured, Request, Result


def run(request: Request) -> Result:
    case = request.case
    with TokenFeed(request) as feed:
        opened = None if case.model is None else open_model(request, vocabulary=feed.vocabulary)
        iterate = _iteration(feed, opened)
        device_uuid = None if opened is None else opened.session.device_uuid
        with Recorder(case, device_uuid, sensors=request.sensors) as recorder:
            recorder.warm_up(iterate)
            text_before, wait_before = feed.text_bytes, feed.wait_s
            recorder.time(iterate)
            text_bytes, wait_s = feed.text_bytes - text_before, feed.wait_s - wait_before
            timed_cautions = feed.cautions()
            recorder.replay_for_energy(iterate)
        result = recorder.result(Amounts(samples=case.batch, tokens=case.batch * case.seq_len))
        result.metrics["text_mb_per_s"] = _text_rate(text_bytes, recorder.timed_s)
        result.metrics["wait_share_ratio"] = Measured(value=min(wait_s / recorder.timed_s, 1.0), window=TIMING)
        result.labels |= feed.labels(case)
        # A batch takes as long as the documents that begin in it: long iterations are the text's, not a disturbance.
        result.cautions = [caution for caution in result.cautions if caution.code is not CautionCode.OUTLIERS]
        result.cautions += timed_cautions
    result.labels |= {"device": "cpu", "threads": allowed_threads(case)}
    result.labels["inputs"] = "drained" if opened is None else f"fed to {opened.name}"
    return result if opened is None else conclude(result, opened, case)


def _iteration(feed: TokenFeed, opened: Opened | None) -> Callable[[], None]:
    if opened is None:
        return lambda: _drop(feed)
    consume, name = opened.session.bind_feed(), opened.session.inputs[0].name
    return lambda: consume({name: feed.next()})


def _drop(feed: TokenFeed) -> None:
    feed.next()


def _text_rate(text_bytes: int, timed_s: float) -> Measured:
    if not text_bytes:
        return Measured(window=TIMING, reason="no document ended in the window: too few iterations, or synthetic ids")
    return Measured(
        value=text_bytes / MEGA / timed_s, window=TIMING, method="bytes of documents that ended in the window"
    )
