# SPDX-License-Identifier: Apache-2.0
"""What `quick` answers: a row for each case, and one sentence that says which runtime and precision to take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pybench.analysis import Analysis
from pybench.analysis.findings.cases import CaseFinding
from pybench.analysis.statistics.estimate import Estimate, Sample
from pybench.analysis.statistics.intervals import estimate_geometric_mean
from pybench.analysis.statistics.paired import EQUIVALENCE_MARGIN
from pybench.analysis.statistics.ranking import Ranking, Rival
from pybench.campaign.directory import CampaignDirectory, read_checked
from pybench.campaign.layout import SUMMARY
from pybench.campaign.recipe import in_making_order
from pybench.case import Case
from pybench.machine import Machine
from pybench.quick.candidates import is_baseline
from pybench.quick.rounds import Rounds
from pybench.words import counted

# Measured ones, never an estimate, and what they are of.
ENERGIES = {"gpu_energy_per_sample_j": "GPU", "cpu_energy_per_sample_j": "CPU"}


@dataclass(frozen=True, slots=True)
class OutputAgreement:
    """Outputs against those of FP32, on the same samples. `error`: relative; None: not finite, or not to be found.
    `lost`: why they mean nothing, or None; `hardly_vary`: why the comparison says little, or None."""

    error: float | None
    top1_ratio: float | None
    samples: int | None
    lost: str | None
    hardly_vary: str | None = None

    def text(self) -> str:
        if self.lost is not None:
            return f"lost: {self.lost}"
        error = "not known" if self.error is None else f"error {100 * self.error:.2g} %"
        if self.hardly_vary is not None:
            return f"{error}, which says little: {self.hardly_vary}"
        return error if self.top1_ratio is None else f"{error}, same class in {100 * self.top1_ratio:.3g} %"


@dataclass(frozen=True, slots=True)
class Row:
    """One case.

    latency_ms: mean of an iteration; None: there is none
    samples_per_s: None: there is none
    energy_per_sample_j: of the GPU, or of the CPU where no GPU is measured; None: neither is
    model_bytes: of what the runtime executes; None: it is not known
    agreement: with the outputs of FP32; None: they were not compared
    failed: why it has no time; None: it has one
    failures: why, of each run that has none
    is_ranked: whether the verdict is about it, too
    energy_of: what the energy is of, as `ENERGIES` says; None: there is none
    """

    case: Case
    latency_ms: Estimate | None
    samples_per_s: Estimate | None
    energy_per_sample_j: Estimate | None
    model_bytes: float | None
    agreement: OutputAgreement | None
    failed: str | None
    failures: tuple[str, ...] = ()
    is_ranked: bool = True
    energy_of: str | None = None

    def as_json(self) -> dict[str, Any]:
        agreement = self.agreement
        return {
            "case_id": self.case.id,
            "runtime": self.case.runtime,
            "provider": self.case.provider,
            "precision": self.case.precision,
            "batch": self.case.batch,
            "latency_ms": None if self.latency_ms is None else self.latency_ms.as_json(),
            "throughput_samples_per_s": None if self.samples_per_s is None else self.samples_per_s.as_json(),
            "energy_per_sample_j": None if self.energy_per_sample_j is None else self.energy_per_sample_j.as_json(),
            "energy_of": self.energy_of,
            "model_bytes": self.model_bytes,
            "against_fp32_relative_error": None if agreement is None else agreement.error,
            "against_fp32_top1_agreement_ratio": None if agreement is None else agreement.top1_ratio,
            "outputs_lost": None if agreement is None else agreement.lost,
            "outputs_hardly_vary": None if agreement is None else agreement.hardly_vary,
            "failed": self.failed,
            "failures": list(self.failures),
            "is_ranked": self.is_ranked,
        }


@dataclass(frozen=True, slots=True)
class QuickVerdict:
    """`sentence`: for people; `best`: batch -> id of the case to take, where that is decided."""

    is_decided: bool
    sentence: str
    best: Mapping[int, str]


def rows_of(analysis: Analysis, campaign: CampaignDirectory, machine: Machine, rounds: Rounds) -> list[Row]:
    """A row for each case, by batch, the fastest first, what failed last."""
    rows = [_row(finding, campaign, machine, rounds) for finding in analysis.cases]
    return sorted(rows, key=lambda row: (row.case.batch, row.latency_ms.value if row.latency_ms else float("inf")))


def called(case: Case) -> str:
    """`int8 on onnxruntime (cpu)`."""
    return f"{case.precision} on {case.runtime}" + (f" ({case.provider})" if case.provider else "")


def judge(rounds: Rounds, rows: Sequence[Row]) -> QuickVerdict:
    """The verdict on the last look, or why there is none."""
    by_id = {row.case.id: row for row in rows}
    if not rounds.rankings:
        return QuickVerdict(False, f"Not decided: {_why_no_look(rounds)}.", {})
    best = {batch: _taken(ranking, by_id) for batch, ranking in rounds.rankings.items() if ranking.is_decided}
    doubts = list(dict.fromkeys(_doubts(by_id[case_id] for case_id in best.values())))
    sentence = "; ".join([_advice(rounds.rankings, best, by_id), *doubts])
    return QuickVerdict(len(best) == len(rounds.rankings), f"{sentence[0].upper()}{sentence[1:]}.", best)


def _advice(rankings: Mapping[int, Ranking], best: Mapping[int, str], rows: Mapping[str, Row]) -> str:
    """What to take: once, where it is the same at every batch and the faster one at all of them."""
    taken = {called(rows[case_id].case) for case_id in best.values()}
    gains = [_gain(batch, rankings[batch], rows) for batch in best]
    if len(best) == len(rankings) and len(taken) == 1 and all(gain is not None for gain in gains):
        return f"take {taken.pop()}: {', and '.join(str(gain) for gain in gains)}"
    return "; ".join(_part(batch, ranking, rows) for batch, ranking in rankings.items())


def _gain(batch: int, ranking: Ranking, rows: Mapping[str, Row]) -> str | None:
    """How much faster the leader is, where it is what to take and another is slower."""
    if not ranking.rivals or _taken(ranking, rows) != ranking.leader:
        return None
    leader = rows[ranking.leader].case
    rival = _compared(ranking, rows, leader)
    if rival.standing != "slower":
        return None
    return f"{_ratio(rival)} times as fast as {_other(rows[rival.case_id].case, leader)} at batch {batch}"


def _why_no_look(rounds: Rounds) -> str:
    if rounds.stopped_by == "interrupted":
        return "it was interrupted"
    if rounds.stopped_by == "failed":
        return "runs of every case failed, and no block has all cases"
    return f"the time was over after {rounds.blocks} of at least 3 blocks"


def _taken(ranking: Ranking, rows: Mapping[str, Row]) -> str:
    """The leader; FP32 where nothing is more than 5 % faster, for it costs no accuracy."""
    equal = [rival.case_id for rival in ranking.rivals if rival.standing == "equal"]
    plain = [case_id for case_id in (ranking.leader, *equal) if is_baseline(rows[case_id].case)]
    return plain[0] if plain else ranking.leader


def _part(batch: int, ranking: Ranking, rows: Mapping[str, Row]) -> str:
    at = f"at batch {batch}"
    open_rivals = [rival for rival in ranking.rivals if rival.standing == "open"]
    if open_rivals:
        rival = open_rivals[0]
        pair = f"{called(rows[ranking.leader].case)} and {called(rows[rival.case_id].case)}"
        blocks = counted(ranking.blocks, "block")
        return f"not decided {at}: {pair} cannot be told apart in {blocks} ({_ratio(rival)})"
    taken = rows[_taken(ranking, rows)].case
    if not ranking.rivals:
        return f"{at}, {called(taken)} is the only one that runs"
    margin = f"{100 * EQUIVALENCE_MARGIN:.0f} %"
    is_plain_enough = is_baseline(taken) and ranking.rivals[0].standing == "equal"
    if taken.id != ranking.leader or is_plain_enough:
        return f"{at}, take {called(taken)}: nothing is more than {margin} faster"
    rival = _compared(ranking, rows, taken)
    other = _other(rows[rival.case_id].case, taken)
    if rival.standing == "equal":
        return f"{at}, take {called(taken)}: {other} is within {margin} of it"
    return f"{at}, take {called(taken)}: it is {_ratio(rival)} times as fast as {other}"


def _other(case: Case, taken: Case) -> str:
    """Another case, by its precision alone where the runtime is the same."""
    is_same = (case.runtime, case.provider) == (taken.runtime, taken.provider)
    return case.precision if is_same else called(case)


def _compared(ranking: Ranking, rows: Mapping[str, Row], taken: Case) -> Rival:
    """What the leader is told against: FP32 in the same runtime, else the fastest FP32, else the next."""
    plain = [rival for rival in ranking.rivals if is_baseline(rows[rival.case_id].case)]
    same = [rival for rival in plain if rows[rival.case_id].case.runtime == taken.runtime]
    return (same or plain or list(ranking.rivals))[0]


def _ratio(rival: Rival) -> str:
    """`1.52 (1.48 to 1.55)`."""
    ratio = rival.ratio
    if not ratio.has_interval:
        return f"{ratio.value:.3g}"
    return f"{ratio.value:.3g} ({ratio.lower:.3g} to {ratio.upper:.3g})"


def _doubts(rows: Iterator[Row]) -> Iterator[str]:
    for row in rows:
        if row.agreement is None:
            continue
        if row.agreement.lost is not None:
            yield f"but the outputs of {row.case.precision} mean nothing here ({row.agreement.lost})"
        else:
            yield f"{row.case.precision} against FP32: {row.agreement.text()}"


def _row(finding: CaseFinding, campaign: CampaignDirectory, machine: Machine, rounds: Rounds) -> Row:
    case = finding.case

    def estimate(name: str) -> Estimate | None:
        found = finding.metrics.get(name)
        return None if found is None else found.estimate

    times = rounds.groups.get(case.batch, {}).get(case.id)
    latency = estimate_geometric_mean(Sample.of(times.values())) if times else None
    size = estimate("model_bytes")
    energy_of = next((of for name, of in ENERGIES.items() if estimate(name) is not None), None)
    return Row(
        case=case,
        latency_ms=latency,
        samples_per_s=None if latency is None else latency.inverse().scaled(1000 * case.batch),
        energy_per_sample_j=next(filter(None, map(estimate, ENERGIES)), None),
        model_bytes=None if size is None else size.value,
        agreement=_agreement(case, campaign, machine),
        failed=rounds.failed.get(case.id),
        failures=tuple(rounds.failures.get(case.id, ())),
        is_ranked=not rounds.rankings or any(case.id in one.case_ids for one in rounds.rankings.values()),
        energy_of=energy_of,
    )


def _agreement(case: Case, campaign: CampaignDirectory, machine: Machine) -> OutputAgreement | None:
    """What the making of the case's ONNX file found; None where nothing was compared."""
    for recipe in reversed(in_making_order(machine.recipes(case))):
        path = campaign.artefact(recipe.digest) / SUMMARY
        labels = read_checked(path, ("labels",))["labels"] if path.exists() else {}
        if "against_fp32_relative_error" in labels:
            error, same = labels["against_fp32_relative_error"], labels["against_fp32_top1_agreement_ratio"]
            is_lost = same is not None and (error is None or error >= 1)
            lost = labels["against_fp32_reason"] or f"relative error {error:.2g}" if is_lost else None
            samples, hardly_vary = labels.get("against_fp32_samples"), labels.get("outputs_hardly_vary")
            return OutputAgreement(error, same, samples, lost, hardly_vary)
    return None
