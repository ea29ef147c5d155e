# SPDX-License-Identifier: Apache-2.0
"""What was found, in sentences: verdicts first, then what is only described. No markup here.

A sentence carries its numbers with their intervals; whatever a sentence cannot say (no criteria, one repetition,
nothing ran) it says in words instead of leaving a gap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import polars as pl

from pybench.analysis import Analysis
from pybench.analysis.findings.boards import BoardEffects
from pybench.analysis.findings.contrasts import ContrastFinding, PairFinding
from pybench.analysis.findings.verdicts import CaseVerdict, Judgement, Verdict
from pybench.analysis.statistics.paired import POWER
from pybench.case import Repetitions
from pybench.case.pairing import Pair
from pybench.dataset import Dataset
from pybench.dataset.coverage import Coverage
from pybench.report.labels import (
    bound_text,
    case_text,
    comparison_label,
    criterion_label,
    pair_texts,
    varying_factors,
)
from pybench.report.numbers import display_unit, factor_above_one, format_estimate, format_p
from pybench.report.reasons import because
from pybench.report.sections.findings.contrast_tables import TONES, context_factors, subjects
from pybench.report.sentences import Sentence, estimate_text, list_text
from pybench.words import counted

MOST_NAMED = 6  # comparisons without a number for one reason that are named; a partial campaign has dozens


def sentence_groups(analysis: Analysis) -> list[tuple[str, list[Sentence]]]:
    """Title of each comparison -> its sentences; without comparisons, what was measured."""
    differing = [one for one in (*analysis.board_models, *analysis.boards) if one.differs]
    groups = [
        (contrast.contrast.title(), _contrast_sentences(contrast, verdicts, differing))
        for contrast, verdicts in zip(analysis.contrasts, analysis.verdicts, strict=True)
    ]
    if not groups:
        groups = [("What was measured", _case_sentences(analysis))]
    return [group for group in groups if group[1]]


def headline(dataset: Dataset, analysis: Analysis, coverage: Coverage) -> str:
    """A few sentences that sum up the report."""
    return _token_alarm(analysis) + _headline(dataset, analysis, coverage) + _stop(dataset.plan.repetitions)


def _headline(dataset: Dataset, analysis: Analysis, coverage: Coverage) -> str:
    judged = [one for found in analysis.verdicts for one in found if one.verdict is not None]
    verdicts = Counter(one.verdict for one in judged if one.is_measured and one.verdict is not None)
    unmeasured = sum(not one.is_measured for one in judged)
    runs = coverage.covered_text
    if not dataset.runs.filter(pl.col("outcome") == "ok").height:
        return f"No run is ok, so there are no numbers: {runs}. The reasons are below."
    if not analysis.contrasts:
        return f"The plan declares no criteria, so cases are described but not compared; {runs}."
    if not judged:
        return f"The plan compares cases but sets no threshold, so nothing is accepted or rejected; {runs}."
    parts = [f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]]
    missing = [f"{unmeasured} could not be measured"] if unmeasured else []
    candidates = counted(len(judged), "candidate")
    return f"{candidates} compared with a baseline: {list_text([*parts, *missing])}; {runs}."


def _stop(repetitions: Repetitions) -> str:
    """Whether the campaign stopped because it was decided, where its plan has such a rule."""
    rule = repetitions.rule
    if rule is None:
        return ""
    told = "not decided so far" if repetitions.stop is None else rule.told(repetitions.stop)
    return f" {told.capitalize()}. Intervals and p values allow for {counted(len(rule.looks), 'look')}."


def _token_alarm(analysis: Analysis) -> str:
    """Nothing about tokenizer speeds is worth reading when the paths tokenize differently: that stands before all."""
    wrong = any(finding.equal is False for finding in analysis.token_paths)
    return "TOKENIZER PATHS GAVE DIFFERENT IDS: do not compare their speeds. " if wrong else ""


# --- comparisons -----------------------------------------------------------------------------------------------------


def _contrast_sentences(
    contrast: ContrastFinding, verdicts: Sequence[CaseVerdict], differing: Sequence[BoardEffects]
) -> list[Sentence]:
    """`differing`: effects that are not the same on all boards, or models of board."""
    by_case = {pair.pair.case.id: pair for pair in contrast.pairs}
    context = context_factors(contrast, subjects(verdicts))
    sentences = []
    unmeasured: dict[str, list[str]] = {}
    for verdict in verdicts:
        pair = by_case[verdict.subject.case.id]
        candidate, baseline, where = pair_texts(pair.pair, tuple(contrast.contrast.baseline), context)
        subject = f"{candidate} instead of {baseline}" + (f" ({where})" if where else "")
        if not verdict.is_measured:
            reasons = dict.fromkeys(one.why for one in verdict.judgements if one.why and one.pair is not None)
            why_none = " and ".join(map(because, reasons)) or "because there is nothing to compare"
            unmeasured.setdefault(why_none, []).append(subject)
        elif verdict.verdict is None and (why := _why_no_effect(pair)) is not None:
            unmeasured.setdefault(because(why), []).append(subject)
        elif verdict.verdict is None:
            text = _effect_text(pair) + _boards_text(pair.pair, [str(pair.pair.headline)], differing)
            sentences.append(Sentence(subject, text, "neutral"))
        else:
            judged = dict.fromkeys(_judgement_text(one) for one in verdict.judgements)  # two cases may share a number
            metrics = [one.criterion.metric for one in verdict.judgements]
            text = "; ".join(judged) + "." + _device_text(pair) + _boards_text(pair.pair, metrics, differing)
            sentences.append(Sentence(subject, text, TONES[verdict.verdict], verdict.verdict.value))
    if unmeasured:
        texts = [_unmeasured_text(why, those) for why, those in unmeasured.items()]
        word = "Not measured" if contrast.contrast.accept else "Not comparable"
        sentences.append(Sentence(word, "; ".join(texts) + ".", "neutral"))
    return sentences


def _unmeasured_text(why: str, those: Sequence[str]) -> str:
    """What has no number for one reason: each, or how many and the first. The table has all."""
    if len(those) > MOST_NAMED:
        return f"{len(those)} comparisons, such as {those[0]}, {why}"
    return "; ".join(f"{subject}, {why}" for subject in those)


def _judgement_text(judgement: Judgement) -> str:
    criterion = judgement.criterion
    label = criterion_label(criterion)
    if judgement.estimate is None:
        return f"{label} has no value ({judgement.why}); required {bound_text(criterion)}"
    number = estimate_text(judgement.estimate, signed=criterion.kind == "difference", ratio=criterion.kind == "ratio")
    text = f"{label} {number}, required {bound_text(criterion)}"
    needed = judgement.blocks_to_decide
    more = "" if needed is None else f"; about {_rounded_up(needed)} blocks would decide"
    return f"{text} ({judgement.why}{more})" if judgement.why else text


def _rounded_up(blocks: int) -> int:
    """To two digits, because it is an estimate."""
    step = 10 if blocks >= 100 else 1
    return -(-blocks // step) * step


def _why_no_effect(pair: PairFinding) -> str | None:
    """Why a pair has no headline; None: it has one."""
    name = pair.pair.headline
    found = None if name is None else pair.effects.get(name)
    if found is None:
        return "this workload has no metric to compare"
    return None if found.effect is not None else str(found.why_none)


def _effect_text(pair: PairFinding) -> str:
    """The headline of a pair that is not judged, with what a null result could have hidden."""
    found = pair.effects[str(pair.pair.headline)]
    effect = found.effect
    assert effect is not None
    ratio = effect.scale == "ratio"
    number = estimate_text(effect.estimate, signed=not ratio, ratio=ratio)
    text = f"{found.metric.label} {number}{' pp' if not ratio and found.metric.unit == '%' else ''}"
    lower, upper = effect.estimate.lower, effect.estimate.upper
    null = 1.0 if ratio else 0.0
    if lower is None or upper is None:
        return f"{text}; {effect.estimate.why_no_interval}." + _device_text(pair)
    if not lower <= null <= upper:
        better = (effect.estimate.value > null) == (found.metric.better == "higher")
        return f"{text}, {'better' if better else 'worse'} than the baseline." + _device_text(pair)
    seen = (
        ""
        if effect.detectable is None or not ratio
        else f"; a change by a factor of {factor_above_one(effect.detectable)} would be found with a probability of "
        f"{POWER * 100:.0f} %"
    )
    equal = f", equivalent within a factor of 1.05 (p {format_p(effect.p_equivalence)})" if effect.is_equivalent else ""
    return f"{text}, no difference shown{equal}{seen}." + _device_text(pair)


def _boards_text(pair: Pair, metrics: Sequence[str], differing: Sequence[BoardEffects]) -> str:
    """` Boards differ in Speed-up: 9.459× and 9.571×.`: an interval over all blocks may contain neither."""
    found = [one for one in differing if one.pair == pair and one.metric.name in metrics]
    return "".join(
        f" {'Models of board' if one.of_models else 'Boards'} differ in "
        f"{comparison_label(one.metric, one.metric.scale, inverse=one.inverse)}: {_by_board(one)}."
        for one in found
    )


def _by_board(effects: BoardEffects) -> str:
    """`9.459× and 9.571×`, in ascending order; of models with their names."""
    sign = "×" if effects.metric.scale == "ratio" else ""
    ascending = sorted(effects.by_board.items(), key=lambda item: item[1].value)
    texts = [f"{format_estimate(estimate, signed=not sign)[0]}{sign}" for _, estimate in ascending]
    if effects.of_models:
        return list_text([f"{text} ({model})" for text, (model, _) in zip(texts, ascending, strict=True)])
    return list_text(texts) if len(texts) <= MOST_NAMED else f"{texts[0]} to {texts[-1]} on {len(texts)} boards"


def _device_text(pair: PairFinding) -> str:
    return " The two sides ran on different devices." if pair.same_device is False else ""


# --- descriptions -----------------------------------------------------------------------------------------------------


def _case_sentences(analysis: Analysis) -> list[Sentence]:
    """For plans without criteria: the headline of each case."""
    sentences = []
    for case in analysis.cases:
        same = [other.case for other in analysis.cases if other.case.workload == case.case.workload]
        name = case.case.headline
        finding = None if name is None else case.metrics.get(name)
        if name is None or finding is None or finding.estimate is None:
            continue
        unit = display_unit(finding.metric.unit, [finding.estimate.value])
        number = estimate_text(finding.estimate.scaled(1 / unit.scale), signed=False, ratio=False)
        lead = ", ".join(part for part in (case.case.workload, case_text(case.case, varying_factors(same))) if part)
        words = [finding.metric.label.lower(), number, *([] if unit.name == "1" else [unit.name])]
        sentences.append(Sentence(lead, f"{' '.join(words)}.", "neutral"))
    return sentences
