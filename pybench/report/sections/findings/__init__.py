# SPDX-License-Identifier: Apache-2.0
"""What was found, in sentences: verdicts first, then what is only described, then what to doubt. No markup here.

A sentence carries its numbers with their intervals; whatever a sentence cannot say (no criteria, one repetition,
nothing ran) it says in words instead of leaving a gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from pybench.analysis import Analysis
from pybench.analysis.comparability import describe_exclusions, describe_unstated
from pybench.analysis.contrasts import ContrastFinding, PairFinding
from pybench.analysis.estimate import Estimate
from pybench.analysis.paired import POWER
from pybench.analysis.verdicts import CaseVerdict, Judgement, Verdict
from pybench.dataset import Dataset
from pybench.dataset.coverage import Coverage
from pybench.report.labels import bound_text, case_text, criterion_label, pair_texts, varying_factors
from pybench.report.numbers import display_unit, factor_above_one, format_estimate, format_p
from pybench.report.sections.findings.contrast_tables import TONES, context_factors, subjects
from pybench.report.sections.reliability import guard_text


@dataclass(frozen=True, slots=True)
class Sentence:
    """`lead`: the words set in bold before the text; `tone`: good, bad, neutral; `verdict`: a word before the text, or
    None."""

    lead: str
    text: str
    tone: str
    verdict: str | None = None

    @property
    def plain(self) -> str:
        return ": ".join(part for part in (self.lead, self.verdict, self.text) if part)


@dataclass(frozen=True, slots=True)
class Findings:
    """`headline`: one or two sentences; `groups`: contrast title -> its sentences; `doubts`: what limits all of it."""

    headline: str
    groups: tuple[tuple[str, tuple[Sentence, ...]], ...]
    doubts: tuple[Sentence, ...]


def describe(dataset: Dataset, analysis: Analysis, coverage: Coverage) -> Findings:
    """The report's first page in words."""
    groups = [
        (contrast.contrast.title(), tuple(_contrast_sentences(contrast, verdicts)))
        for contrast, verdicts in zip(analysis.contrasts, analysis.verdicts, strict=True)
    ]
    if not groups:
        groups = [("What was measured", tuple(_case_sentences(analysis)))]
    return Findings(
        headline=_token_alarm(analysis) + _headline(dataset, analysis, coverage),
        groups=tuple(group for group in groups if group[1]),
        doubts=tuple(_doubts(dataset, analysis, coverage)),
    )


def _headline(dataset: Dataset, analysis: Analysis, coverage: Coverage) -> str:
    judged = [one for found in analysis.verdicts for one in found if one.verdict is not None]
    verdicts = Counter(one.verdict for one in judged if one.is_measured and one.verdict is not None)
    unmeasured = sum(not one.is_measured for one in judged)
    runs = f"{coverage.covered} of {coverage.planned} planned runs are covered"
    if not dataset.runs.filter(pl.col("outcome") == "ok").height:
        return f"No run is ok, so there are no numbers: {runs}. The reasons are below."
    if not analysis.contrasts:
        return f"The plan declares no criteria, so cases are described but not compared; {runs}."
    if not judged:
        return f"The plan compares cases but sets no threshold, so nothing is accepted or rejected; {runs}."
    parts = [f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]]
    missing = [f"{unmeasured} could not be measured"] if unmeasured else []
    candidates = "1 candidate" if len(judged) == 1 else f"{len(judged)} candidates"
    return f"{candidates} compared with a baseline: {_listed([*parts, *missing])}; {runs}."


def _token_alarm(analysis: Analysis) -> str:
    """Nothing about tokenizer speeds is worth reading when the paths tokenize differently: that stands before all."""
    wrong = any(finding.equal is False for finding in analysis.token_paths)
    return "TOKENIZER PATHS GAVE DIFFERENT IDS: do not compare their speeds. " if wrong else ""


# --- comparisons -----------------------------------------------------------------------------------------------------


def _contrast_sentences(contrast: ContrastFinding, verdicts: Sequence[CaseVerdict]) -> list[Sentence]:
    by_case = {pair.pair.case.id: pair for pair in contrast.pairs}
    context = context_factors(contrast, subjects(verdicts))
    sentences, unmeasured = [], []
    for verdict in verdicts:
        pair = by_case[verdict.subject.case.id]
        candidate, baseline, where = pair_texts(pair.pair, tuple(contrast.contrast.baseline), context)
        subject = f"{candidate} instead of {baseline}" + (f" ({where})" if where else "")
        if not verdict.is_measured:
            reasons = dict.fromkeys(one.why for one in verdict.judgements if one.why and one.pair is not None)
            unmeasured.append(f"{subject}: {', '.join(reasons) or 'nothing to compare'}")
        elif verdict.verdict is None:
            sentences.append(Sentence(subject, _effect_text(pair), "neutral"))
        else:
            text = "; ".join(_judgement_text(one) for one in verdict.judgements) + "." + _device_text(pair)
            sentences.append(Sentence(subject, text, TONES[verdict.verdict], verdict.verdict.value))
    if unmeasured:
        sentences.append(Sentence("Not measured", "; ".join(unmeasured) + ".", "neutral"))
    return sentences


def _judgement_text(judgement: Judgement) -> str:
    criterion = judgement.criterion
    label = criterion_label(criterion)
    if judgement.estimate is None:
        return f"{label} has no value ({judgement.why}); required {bound_text(criterion)}"
    number = _estimate_text(judgement.estimate, signed=criterion.kind == "difference", ratio=criterion.kind == "ratio")
    text = f"{label} {number}, required {bound_text(criterion)}"
    return f"{text} ({judgement.why})" if judgement.why else text


def _effect_text(pair: PairFinding) -> str:
    """The headline of a pair that is not judged, with what a null result could have hidden."""
    name = pair.pair.case.workload_row.headline
    found = None if name is None else pair.effects.get(name)
    if name is None or found is None or found.effect is None:
        return f"not comparable ({found.why_none if found is not None else 'this workload has no metric to compare'})."
    effect = found.effect
    ratio = effect.scale == "ratio"
    number = _estimate_text(effect.estimate, signed=not ratio, ratio=ratio)
    text = f"{found.metric.label} {number}{'' if ratio else ' pp'}"
    lower, upper = effect.estimate.lower, effect.estimate.upper
    null = 1.0 if ratio else 0.0
    if lower is None or upper is None:
        return f"{text}; one repetition gives no interval." + _device_text(pair)
    if not lower <= null <= upper:
        better = (effect.estimate.value > null) == (found.metric.better == "higher")
        return f"{text}: {'better' if better else 'worse'} than the baseline." + _device_text(pair)
    seen = (
        ""
        if effect.detectable is None or not ratio
        else f"; a change by a factor of {factor_above_one(effect.detectable)} would be found with a probability of "
        f"{POWER * 100:.0f} %"
    )
    equal = f", equivalent within a factor of 1.05 (p {format_p(effect.p_equivalence)})" if effect.is_equivalent else ""
    return f"{text}: no difference shown{equal}{seen}." + _device_text(pair)


def _estimate_text(estimate: Estimate, *, signed: bool, ratio: bool) -> str:
    value, interval = format_estimate(estimate, signed=signed)
    return f"{value}{'×' if ratio else ''}" + (f" {interval}" if interval else "")


def _device_text(pair: PairFinding) -> str:
    return " The two sides ran on different devices." if pair.same_device is False else ""


# --- descriptions ----------------------------------------------------------------------------------------------------


def _case_sentences(analysis: Analysis) -> list[Sentence]:
    """For plans without criteria: the headline of each case."""
    sentences = []
    for case in analysis.cases:
        same = [other.case for other in analysis.cases if other.case.workload == case.case.workload]
        name = case.case.workload_row.headline
        finding = None if name is None else case.metrics.get(name)
        if name is None or finding is None or finding.estimate is None:
            continue
        unit = display_unit(finding.metric.unit, [finding.estimate.value])
        number = _estimate_text(finding.estimate.scaled(1 / unit.scale), signed=False, ratio=False)
        lead = ", ".join(part for part in (case.case.workload, case_text(case.case, varying_factors(same))) if part)
        sentences.append(Sentence(lead, f"{finding.metric.label.lower()} {number} {unit.name}.", "neutral"))
    return sentences


# --- doubts ----------------------------------------------------------------------------------------------------------


def _doubts(dataset: Dataset, analysis: Analysis, coverage: Coverage) -> list[Sentence]:
    """Loudest first: wrong tokens, other devices, gaps, invalid runs, one repetition, cautions."""
    found = [*_token_doubts(analysis), *_device_doubts(analysis), *_latency_doubts(analysis)]
    if coverage.is_full:
        states = _listed([f"{count} {state}" for state, count in coverage.states.items()])
        found.append(Sentence("Coverage is complete", f"{coverage.planned} planned runs: {states}.", "good"))
    else:
        states = _listed([f"{count} {state}" for state, count in coverage.states.items()])
        text = f"{coverage.covered} of {coverage.planned} planned runs are covered: {states}."
        found.append(Sentence("Coverage is incomplete", text, "bad"))
    found += _software_doubts(analysis)
    if coverage.unguarded:
        found.append(Sentence("Unguarded runs", guard_text(coverage), "neutral"))
    invalid = sum(sum(finding.excluded.values()) for case in analysis.cases for finding in case.metrics.values())
    if invalid:
        text = f"{invalid} measured values are not valid and are excluded; a table below lists the reasons."
        found.append(Sentence("Invalid values", text, "bad"))
    found += unknown_metrics(analysis.unknown)
    if dataset.plan.blocks == 1:
        text = "no mean has an interval over runs, so no criterion on time or energy can be accepted or rejected."
        found.append(Sentence("One repetition", text, "bad"))
    for case_id, versions in analysis.varying.items():
        title = dataset.cases[case_id].title()
        text = f"{title} gave {versions} different sets of predictions; intervals over images do not include this."
        found.append(Sentence("Predictions vary", text, "bad"))
    if dataset.cautions.height:
        codes = (
            dataset.cautions.unique(["case_id", "block", "code"])["code"]
            .value_counts()
            .sort("count", "code", descending=[True, False])
        )
        listed = ", ".join(f"{code.replace('_', ' ')} ({count})" for code, count in codes.iter_rows())
        found.append(Sentence("Cautions (with the number of runs)", f"{listed}.", "neutral"))
    return found


def unknown_metrics(unknown: Mapping[str, int]) -> list[Sentence]:
    """One sentence where runs store metrics that this pybench has no row of."""
    if not unknown:
        return []
    listed = ", ".join(f"{name} ({values} values)" for name, values in sorted(unknown.items()))
    text = f"this version of pybench does not support {listed}. They are stored, but are in no table or figure."
    return [Sentence("Unknown metrics", text, "bad")]


def _token_doubts(analysis: Analysis) -> list[Sentence]:
    wrong = [finding for finding in analysis.token_paths if finding.equal is False]
    right = [finding for finding in analysis.token_paths if finding.equal]
    sentences = []
    for finding in wrong:
        paths = ", ".join(finding.digests)
        blocks = ", ".join(map(str, finding.differing))
        text = f"the paths {paths} did not give the same ids in blocks {blocks}: their speeds cannot be compared."
        sentences.append(Sentence("TOKENIZER PATHS DISAGREE", text, "bad"))
    for finding in right:
        text = f"the paths {_listed(list(finding.digests))} gave identical ids in all {finding.blocks} blocks compared."
        sentences.append(Sentence("Tokenizer paths agree", text, "good"))
    return sentences


def _device_doubts(analysis: Analysis) -> list[Sentence]:
    pairs = {
        pair.pair.case.id: pair
        for contrast in analysis.contrasts
        for pair in contrast.pairs
        if pair.same_device is False
    }
    if not pairs:
        return []
    devices = sorted({device for pair in pairs.values() for device in pair.candidate_devices | pair.baseline_devices})
    text = f"{len(pairs)} comparisons are between different devices ({', '.join(devices)}), so hardware differs, too."
    return [Sentence("Different devices", text, "bad")]


def _software_doubts(analysis: Analysis) -> list[Sentence]:
    compared = analysis.comparability.values()
    excluded, unstated = describe_exclusions(compared), describe_unstated(compared)
    found = [] if excluded is None else [Sentence("Different software", excluded, "bad")]
    return found if unstated is None else [*found, Sentence("Unstated software", unstated, "neutral")]


def _latency_doubts(analysis: Analysis) -> list[Sentence]:
    found = [pair for contrast in analysis.contrasts for pair in contrast.pairs if pair.same_latency is False]
    if not found:
        return []
    latencies = sorted({words for pair in found for words in pair.candidate_latencies | pair.baseline_latencies})
    text = (
        f"{len({pair.pair.case.id for pair in found})} comparisons are between latencies of different kinds "
        f"({'; '.join(latencies)}). Their ratios do not compare the same work. Compare energy, or compare the p50 "
        "latency at depth 1 of the replayed side with the p50 latency of the other side."
    )
    return [Sentence("Different latencies", text, "bad")]


def _listed(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else "none"
