# SPDX-License-Identifier: Apache-2.0
"""Inference: one forward pass an iteration, on the arrays that `inputs` names, or on text where a path is given.

Language models run prefill: a batch of whole sequences in, the logits of the next token out. Where a path is given, an
iteration also fetches the next batch. So it does where `fed` asks for it with synthetic ids, which is what a path is to
be compared with. After the windows one more pass tells whether the outputs are finite numbers. Whether they are right
is not judged: `accuracy` does that.
"""

from __future__ import annotations

from pybench.catalogue.paths import PATHS
from pybench.measurement.feed import PERIOD, open_feed, record_fed
from pybench.measurement.heads import record_heads
from pybench.measurement.model import OpenedModel, conclude, open_model
from pybench.measurement.outputs import leave_outputs, look_at_outputs
from pybench.measurement.recorder import Amounts, record
from pybench.measurement.result import Result, RunRequest
from pybench.measurement.supply import supply, takes_text_ids, text_ids


def run(request: RunRequest) -> Result:
    case = request.case
    row = case.model_row
    if row is not None and row.takes_text and (PATHS[case.path].reads_text or case.fed):
        return _run_fed(request)
    ids = text_ids(request) if takes_text_ids(case) else None
    opened = open_model(request, vocabulary=0 if ids is None else ids.vocabulary)
    fed = supply(request, opened, ids)
    done = amounts(opened, case.batch, case.seq_len)
    if "heads" in case.shaping():
        result = record_heads(request, opened.session, fed.arrays, done)
    else:
        work = opened.session.bind_replay(fed.arrays, transfers=case.transfers)
        result = record(case, work, done, opened.session.device_uuid, seed=request.seed, sensors=request.sensors)
    result.labels["inputs"] = fed.described
    result.labels["transfers"] = "copies to and from the device in each iteration" if case.transfers else "none"
    result = conclude(result, opened, case)
    if case.head_rates_hz is None:
        look_at_outputs(result, opened.session, fed.arrays)
    else:
        leave_outputs(result, "a pass runs only the heads that are due in it")
    return result


def amounts(opened: OpenedModel, batch: int, seq_len: int) -> Amounts:
    """What one pass of an opened model does."""
    return Amounts(samples=batch, tokens=batch * seq_len if opened.language else 0)


def _run_fed(request: RunRequest) -> Result:
    case = request.case
    with open_feed(request) as feed:
        opened = open_model(request, vocabulary=feed.vocabulary)
        iterate = feed.feeding(opened, case)
        result = record_fed(
            request, feed, iterate, amounts(opened, case.batch, case.seq_len), opened.session.device_uuid
        ).result
        if PATHS[case.path].reads_text:
            result.labels |= feed.labels(case)
        first = feed.first_batch()
    result.labels["inputs"] = "tokenized text" if PATHS[case.path].reads_text else "synthetic ids"
    result = conclude(result, opened, case)
    result.labels["iteration"] = f"one forward pass, {PERIOD}"  # not the session's own, which fetches nothing
    if first is None:
        leave_outputs(result, "the runtime takes text alone")
    else:
        look_at_outputs(result, opened.session, {opened.session.inputs[0].name: first})
    return result
