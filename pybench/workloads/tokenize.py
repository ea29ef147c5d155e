# SPDX-License-Identifier: Apache-2.0
"""From text to token batches on one path, drained, or fed to TinyLM where a model is given.

Reports tokens and text a second, the share of the window in which the consumer waited, and the hash of the first
batches. The hash is equal on every path that tokenizes exactly. Without a model the consumer only takes batches: the
path's own speed. That is the speed of what is tokenized in the window, and not of what is taken there. A path in this
process tokenizes whole documents when the first of their batches is taken, and the window may begin behind that. An
orchestrator in a process of its own has filled its ring by then, so these batches are taken before the window.
"""

from __future__ import annotations

from pybench.case import Case
from pybench.catalogue.cautions import CautionCode
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.units import MEGA
from pybench.measure.quantity import Quantity
from pybench.measurement.doubts import allowed_threads, judge_timing
from pybench.measurement.feed import PERIOD, TokenFeed, open_feed, record_fed
from pybench.measurement.model import conclude, open_model
from pybench.measurement.recorder import TIMING, Amounts
from pybench.measurement.result import Result, RunRequest

RATES = ("throughput_samples_per_s", "throughput_tokens_per_s")
EACH = ("sample", "token")


def run(request: RunRequest) -> Result:
    case = request.case
    with open_feed(request) as feed:
        opened = None if case.model is None else open_model(request, vocabulary=feed.vocabulary)
        iterate = feed.feeding(opened, case)
        device_uuid = None if opened is None else opened.session.device_uuid
        done = Amounts(samples=case.batch, tokens=case.batch * case.seq_len)
        begin = feed.use_up if opened is None and isinstance(feed, TokenFeed) else None
        fed = record_fed(request, feed, iterate, done, device_uuid, begin)
        result = fed.result
        read = (fed.text_bytes, "ended") if fed.made is None else (fed.made.text_bytes, "were tokenized")
        result.metrics["text_mb_per_s"] = _text_rate(read[0], fed.timed_s, read[1])
        result.labels |= feed.labels(case)
        # A batch takes as long as the documents that begin in it: long iterations are the text's, not a disturbance.
        result.cautions = [caution for caution in result.cautions if caution.code is not CautionCode.OUTLIERS]
    result.labels |= {"device": "cpu", "threads": allowed_threads(case)}
    result.labels["inputs"] = "drained" if opened is None else f"fed to {opened.name}"
    if opened is None:
        if fed.made is not None:
            _count_tokenized(result, fed.made.ids / (done.tokens * case.iterations), case)
        # Batches that wait already are taken in an instant, one after the other: the rate is that of all together.
        result.valid["timing"] = judge_timing(fed.timed_s / case.iterations)
        return result
    result = conclude(result, opened, case)
    result.labels["iteration"] = f"one forward pass, {PERIOD}"
    return result


def _text_rate(text_bytes: int, timed_s: float, what: str = "ended") -> Quantity:
    if not text_bytes:
        why = Reason(ReasonCode.NO_DOCUMENT_ENDED, "too few iterations, or synthetic ids")
        return Quantity(window=TIMING, reasons=(why,))
    return Quantity(
        value=text_bytes / MEGA / timed_s, window=TIMING, method=f"bytes of documents that {what} in the window"
    )


def _count_tokenized(result: Result, share: float, case: Case) -> None:
    """Makes rates, and energies of one sample or token in the timing window, those of what was tokenized in it.
    `share`: how many ids were tokenized there for each that was taken."""
    factors = dict.fromkeys(RATES, share)
    for row in case.catalogue.metrics.values():
        if row.per in EACH or row.energy is not None:
            factors[row.name] = share if row.is_inverse or not share else 1 / share
    for name in factors.keys() & result.metrics.keys():
        found = result.metrics[name]
        if found.window != TIMING or (found.value is None and found.interval is None):
            continue
        why = Reason(ReasonCode.NOTHING_COUNTED, "what was taken in the window was tokenized before it")
        nothing = Quantity(window=TIMING, reasons=(why,))
        result.metrics[name] = found.scaled(factors[name]) if share else nothing
