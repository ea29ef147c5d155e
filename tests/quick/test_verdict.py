# SPDX-License-Identifier: Apache-2.0
"""The sentence: what to take, where nothing is decided, and which doubts go with it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from pybench.analysis import analyse
from pybench.analysis.statistics.ranking import rank
from pybench.case import Case
from pybench.cli.quick import energy_text
from pybench.dataset import load
from pybench.machine import Machine
from pybench.measurement.result import Validity
from pybench.quick.rounds import LOOKS, Rounds
from pybench.quick.verdict import OutputAgreement, Row, judge, rows_of
from tests.support.campaigns import CampaignBuilder

BLOCKS = range(1, 6)


def rounds(factors: dict[tuple[str, int], float], spread: float = 0.002) -> tuple[Rounds, list[Row]]:
    """(precision, batch) -> its time, as five blocks with a little noise."""
    found = Rounds(blocks=len(BLOCKS))
    rows = []
    for index, ((precision, batch), mean) in enumerate(factors.items()):
        case = Case(workload="infer", model="m.onnx", runtime="onnxruntime", provider="cpu",
                    precision=precision, batch=batch)  # fmt: skip
        times = {block: mean * (1 + spread * ((block * 7 + index * 3) % 5 - 2)) for block in BLOCKS}
        found.groups.setdefault(batch, {})[case.id] = times
        agreement = OutputAgreement(0.02, 1.0, 32, None) if precision == "int8" else None
        rows.append(Row(case, None, None, None, None, agreement, None))
    found.rankings = dict(zip(found.groups, rank(list(found.groups.values()), len(LOOKS)), strict=True))
    return found, rows


def test_one_case_that_wins_at_every_batch_is_named_once() -> None:
    verdict = judge(*rounds({("fp32", 1): 2.0, ("int8", 1): 1.0, ("fp32", 8): 12.0, ("int8", 8): 4.0}))
    assert verdict.is_decided
    assert verdict.sentence.startswith("Take int8 on onnxruntime (cpu): 2")
    assert "times as fast as fp32 at batch 1, and " in verdict.sentence
    assert verdict.sentence.endswith(
        "times as fast as fp32 at batch 8; int8 against FP32: error 2 %, same class in 100 %."
    )


def test_each_batch_may_have_its_own_winner() -> None:
    verdict = judge(*rounds({("fp32", 1): 1.0, ("int8", 1): 2.0, ("fp32", 8): 12.0, ("int8", 8): 4.0}))
    assert verdict.is_decided
    assert "At batch 1, take fp32 on onnxruntime (cpu): it is 2" in verdict.sentence
    assert "at batch 8, take int8 on onnxruntime (cpu): it is 3" in verdict.sentence


def test_fp32_is_taken_where_nothing_is_faster_by_more_than_the_margin() -> None:
    found, rows = rounds({("fp32", 1): 1.0, ("int8", 1): 0.999}, spread=0.0005)
    verdict = judge(found, rows)
    assert verdict.sentence == "At batch 1, take fp32 on onnxruntime (cpu): nothing is more than 5 % faster."
    assert verdict.best == {1: rows[0].case.id}


def test_what_cannot_be_told_apart_is_not_decided() -> None:
    verdict = judge(*rounds({("fp32", 1): 1.02, ("int8", 1): 1.0}, spread=0.1))
    assert not verdict.is_decided
    assert verdict.best == {}
    assert verdict.sentence.startswith(
        "Not decided at batch 1: int8 on onnxruntime (cpu) and fp32 on onnxruntime (cpu)"
    )
    assert "cannot be told apart in 5 blocks" in verdict.sentence


def test_outputs_that_mean_nothing_are_said() -> None:
    found, rows = rounds({("fp32", 1): 2.0, ("int8", 1): 1.0})
    lost = OutputAgreement(3.0, 0.01, 32, "relative error 3")
    rows[1] = Row(rows[1].case, None, None, None, None, lost, None)
    assert "but the outputs of int8 mean nothing here (relative error 3)" in judge(found, rows).sentence


def test_an_agreement_that_says_little_is_not_said() -> None:
    found, rows = rounds({("fp32", 1): 2.0, ("int8", 1): 1.0})
    why = "the inputs change 0.005 % of the FP32 outputs"
    agreement = OutputAgreement(0.0039, 1.0, 32, None, why)
    rows[1] = Row(rows[1].case, None, None, None, None, agreement, None)
    assert judge(found, rows).sentence.endswith(f"int8 against FP32: error 0.39 %, which says little: {why}.")
    assert rows[1].as_json()["outputs_hardly_vary"] == why


def test_one_case_alone_is_said_to_be_alone() -> None:
    verdict = judge(*rounds({("fp32", 1): 2.0}))
    assert verdict.sentence == "At batch 1, fp32 on onnxruntime (cpu) is the only one that runs."


def test_no_look_is_no_verdict() -> None:
    verdict = judge(Rounds(blocks=1, stopped_by="time"), [])
    assert verdict.sentence == "Not decided: the time was over after 1 of at least 3 blocks."


def test_an_energy_says_whether_it_is_of_the_gpu_or_of_the_cpu(tmp_path: Path) -> None:
    """Side by side in one column, they are energies of different parts of the machine."""
    cases = [
        Case(workload="infer", model="resnet50", runtime="onnxruntime", provider=provider, precision="fp32", batch=1)
        for provider in ("cpu", "cuda")
    ]
    builder = CampaignBuilder(tmp_path, cases)
    joules = {"cpu_energy_per_sample_j": 0.5}
    for block in BLOCKS:
        builder.run(cases[0], block, {"latency_mean_ms": 4.0, **joules}, valid={"energy": Validity(True)})
        both = {"gpu_energy_per_sample_j": 0.25, **joules}
        builder.run(cases[1], block, {"latency_mean_ms": 1.0, **both}, valid={"energy": Validity(True)})
    found = Rounds(groups={1: {case.id: dict.fromkeys(BLOCKS, 1.0 + index) for index, case in enumerate(cases)}})
    recipeless = cast("Machine", SimpleNamespace(recipes=lambda case: {}))
    rows = rows_of(analyse(load(tmp_path)), builder.campaign, recipeless, found)
    energies = {str(row.case.provider): row.as_json()["energy_of"] for row in rows}
    assert energies == {"cpu": "CPU", "cuda": "GPU"}
    assert {energy_text(row.energy_per_sample_j, row.energy_of) for row in rows} == {"0.5 CPU", "0.25 GPU"}
