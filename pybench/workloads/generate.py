# SPDX-License-Identifier: Apache-2.0
"""Generation: one request an iteration, a batch of random prompts read (prefill) and continued (decode) from a cache.

A request begins with the prompts on the host and ends with all new tokens on the host. In the timing window and the
energy window whole requests run. So time to first token (TTFT) and time per output token (TPOT) are of the same
request, and mean latency = TTFT + (new_tokens - 1) x TPOT. Inside a request energy cannot be told apart, for its parts
are shorter than a power sensor's lag: prefill and decode are repeated in windows of their own. Tokens are chosen
greedily or drawn with the run's seed; no token ends a sample. After the windows one more request is looked at: whether
its logits are finite, and how far its tokens agree with FP32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pybench import measure
from pybench.case import Case
from pybench.case.quantising import opened_in
from pybench.case.yields import TOKENS_OF, is_compared
from pybench.catalogue.cautions import Caution, CautionCode
from pybench.catalogue.code import code_of
from pybench.catalogue.reasons import Reason, ReasonCode
from pybench.catalogue.refusals import refuse_generation
from pybench.errors import DeviceMemoryError
from pybench.measure.quantity import Quantity
from pybench.measurement.inputs import fed_ranges, random_arrays
from pybench.measurement.model import OpenedModel, conclude, open_model
from pybench.measurement.recorder import TIMING, Amounts, Recorder
from pybench.measurement.result import Result, RunRequest, Validity
from pybench.runtimes.generation import Generation, GenerationTask, Ids
from pybench.runtimes.memory import memory_errors

PREFILL, DECODE = "prefill", "decode"


def run(request: RunRequest) -> Result:
    case = request.case
    row = case.runtime_row
    if row is not None:
        has_gpu = case.device != "cpu" and bool(measure.visible_gpus())
        refuse_generation(row, row.backend(case.provider, has_gpu), opened_in(case))
    opened = open_model(request)
    task = _task(opened, case, request.seed)
    generation = open_generation(opened, case, task)
    result = _measure(request, opened, generation)
    result = conclude(result, opened, case)
    result.metrics["kv_cache_bytes"] = Quantity(value=float(generation.cache_bytes))
    result.labels |= {
        "iteration": f"one request: prefill, then {case.new_tokens - 1} steps of decode",
        "inputs": "seeded random: uniform ids",
        "transfers": "prompts to the device and new tokens back in each request",
    }
    _judge(result, request, task, generation)
    return result


def open_generation(opened: OpenedModel, case: Case, task: GenerationTask) -> Generation:
    """What continues the prompts of `task` in an opened model, as the row of the case's runtime names it."""
    row = case.runtime_row
    assert row is not None  # for the type checker: a model was opened
    assert row.generates is not None
    generation: Generation = code_of(row, "generates")(opened.session, task)
    return generation


def _task(opened: OpenedModel, case: Case, seed: int) -> GenerationTask:
    inputs = opened.session.inputs[:1]  # others are the cache of an ONNX file
    ranges = fed_ranges({}, opened.metadata)
    prompt = random_arrays(inputs, opened.name, case.batch, case.seq_len, seed, case.catalogue.models, ranges)
    return GenerationTask(prompt[inputs[0].name], case.new_tokens, case.temperature, seed)


def _measure(request: RunRequest, opened: OpenedModel, generation: Generation) -> Result:
    """The windows: prefill, decode, whole requests timed, whole requests for energy."""
    case = request.case
    first_ns: list[int] = []
    work = _request(generation, first_ns)
    uuid = opened.session.device_uuid
    with Recorder(case, uuid, sensors=request.sensors, seed=request.seed) as recorder:
        recorder.warm_up(work)
        recorder.measure_part(PREFILL, generation.prefill, Amounts(input_tokens=case.batch * case.seq_len))
        recorder.measure_part(DECODE, generation.decode, Amounts(output_tokens=case.batch * (case.new_tokens - 1)))
        first_ns.clear()
        recorder.time(work)
        timed_first_ns = np.array(first_ns, np.int64)
        recorder.replay_for_energy(work)
    result = recorder.result(Amounts(samples=case.batch))
    result.metrics |= token_metrics(recorder.times, timed_first_ns, case)
    to_first_ns = timed_first_ns - recorder.times.begin_ns
    result.tables["iterations"] = {**result.tables["iterations"], "to_first_token_ns": to_first_ns}
    return result


def _request(generation: Generation, first_ns: list[int]) -> Callable[[], None]:
    """A whole request; notes when its first tokens were there."""

    def work() -> None:
        generation.prefill()
        first_ns.append(measure.monotonic_ns())
        generation.decode()

    return work


def token_metrics(times: measure.Times, first_ns: NDArray[np.int64], case: Case) -> dict[str, Quantity]:
    """TTFT, TPOT and output tokens a second of n requests. `first_ns`: int64 [n], raw clock, when the first tokens were
    on the host."""
    begin_ns, end_ns = times.latency_ns[:, 0], times.latency_ns[:, 1]
    steps, count = case.new_tokens - 1, len(times)
    first = measure.summarise_latency(np.stack((begin_ns, first_ns), axis=1))
    later = measure.summarise_latency(np.stack((first_ns, end_ns), axis=1))
    values = {
        "ttft_ms": first.mean_s * 1e3,
        "ttft_p99_ms": first.p99_s * 1e3,
        "tpot_ms": later.mean_s * 1e3 / steps,
        "tpot_p99_ms": later.p99_s * 1e3 / steps,
        "output_tokens_per_s": case.batch * case.new_tokens * count / times.span_s,
    }
    return {name: Quantity(value=value, window=TIMING, samples=count) for name, value in values.items()}


def _judge(result: Result, request: RunRequest, task: GenerationTask, generation: Generation) -> None:
    """One more request, after the windows: whether its logits are finite, and whether its tokens are those of FP32."""
    bad = _step_without_number(generation)
    ids = generation.ids()
    result.labels["output_ids_sha256"] = hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()
    result.valid["accuracy"] = Validity(True) if bad is None else Validity(False, (Reason(ReasonCode.NOT_FINITE),))
    if bad is not None:
        result.cautions.append(Caution(CautionCode.OUTPUTS_LOST, f"logits of new token {bad} are NaN or infinite"))
    if not is_compared(request.case):
        return
    if bad is None:
        agreement = _agreement(ids, request, task)
    else:
        agreement = Quantity(reasons=(Reason(ReasonCode.NOT_FINITE, f"logits of new token {bad}"),))
    result.metrics["fp32_token_agreement_ratio"] = agreement


def _agreement(ids: Ids, request: RunRequest, task: GenerationTask) -> Quantity:
    """How far the tokens are those of FP32; without a value where there is no memory for FP32."""
    try:
        with memory_errors():
            reference = _reference_ids(request, task)
    except DeviceMemoryError as error:
        return Quantity(reasons=(Reason(ReasonCode.REFERENCE_OUT_OF_MEMORY, error.evidence),))
    return Quantity(
        value=agreeing_share(ids, reference),
        samples=len(ids),
        method="greedy tokens against torch in FP32 with the same weights and prompts",
    )


def _step_without_number(generation: Generation) -> int | None:
    """The first new token, counted from 1, some logit of which is no finite number; None: all are."""
    steps = enumerate(generation.logits(), start=1)
    broken = [index for index, logits in steps if not np.isfinite(logits).all()]
    return broken[0] if broken else None


def _reference_ids(request: RunRequest, task: GenerationTask) -> Ids:
    case, made = request.case.with_factors(**TOKENS_OF), dict(request.artefacts)
    made |= {"program": made["reference"]} if "reference" in made else {}
    generation = open_generation(open_model(replace(request, case=case, artefacts=made)), case, task)
    generation.prefill()
    generation.decode()
    return generation.ids()


def agreeing_share(ids: Ids, reference: Ids) -> float:
    """Mean over samples of the share of tokens before the first that differs; both int64 [N, new_tokens]."""
    agreeing = np.cumprod(ids == reference, axis=1)
    return float(agreeing.mean())
