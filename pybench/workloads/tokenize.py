# SPDX-License-Identifier: Apache-2.0
"""From text to token batches on one path, drained, or fed to TinyLM where a model is given.

Reports tokens and text a second, the share of the window in which the consumer waited, and the hash of the first
batches. The hash is equal on every path that tokenizes exactly. Without a model the consumer only takes batches: the
path's own speed. An orchestrator in a process of its own fills its ring before the window begins; those few batches are
a gift to it.
"""

from __future__ import annotations

from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.units import MEGA
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import allowed_threads, judge_timing
from pybench.measurement.feed import PERIOD, open_feed, record_fed
from pybench.measurement.model import conclude, open_model
from pybench.measurement.recorder import TIMING, Amounts
from pybench.measurement.result import Result, RunRequest


def run(request: RunRequest) -> Result:
    case = request.case
    with open_feed(request) as feed:
        opened = None if case.model is None else open_model(request, vocabulary=feed.vocabulary)
        iterate = feed.feeding(opened, case)
        device_uuid = None if opened is None else opened.session.device_uuid
        done = Amounts(samples=case.batch, tokens=case.batch * case.seq_len)
        fed = record_fed(request, feed, iterate, done, device_uuid)
        result = fed.result
        result.metrics["text_mb_per_s"] = _text_rate(fed.text_bytes, fed.timed_s)
        result.labels |= feed.labels(case)
        # A batch takes as long as the documents that begin in it: long iterations are the text's, not a disturbance.
        result.cautions = [caution for caution in result.cautions if caution.code is not CautionCode.OUTLIERS]
    result.labels |= {"device": "cpu", "threads": allowed_threads(case)}
    result.labels["inputs"] = "drained" if opened is None else f"fed to {opened.name}"
    if opened is None:
        # Batches that wait already are taken in an instant, one after the other: the rate is that of all together.
        result.valid["timing"] = judge_timing(fed.timed_s / case.iterations)
        return result
    result = conclude(result, opened, case)
    result.labels["iteration"] = f"one forward pass, {PERIOD}"
    return result


def _text_rate(text_bytes: int, timed_s: float) -> Quantity:
    if not text_bytes:
        why = Reason(ReasonCode.NO_DOCUMENT_ENDED, "too few iterations, or synthetic ids")
        return Quantity(window=TIMING, reasons=(why,))
    return Quantity(
        value=text_bytes / MEGA / timed_s, window=TIMING, method="bytes of documents that ended in the window"
    )
