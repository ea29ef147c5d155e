# SPDX-License-Identifier: Apache-2.0
"""What a named protocol found, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pybench.analysis.protocols.protocol import ProtocolFinding, TestedPair
from pybench.analysis.statistics.paired import ALPHA
from pybench.analysis.statistics.unpaired import AnovaAssumption, Variances
from pybench.report.numbers import DASH, format_fixed
from pybench.report.sections.protocols.table_one import STANDING_TONES, Line, lines_of, standing_text
from pybench.report.sentences import Sentence


def protocol_sentences(finding: ProtocolFinding) -> Iterator[Sentence]:
    several = sum(bool(rows) for rows in finding.trade_offs) > 1
    for contrast, rows in zip(finding.contrasts, finding.trade_offs, strict=True):
        for label, line in lines_of(contrast, rows) if rows else ():
            text, standing = standing_text(line)
            if line[0].case != line[0].baseline:
                lead = f"{label} ({contrast.title()})" if several else label  # one case may stand in both
                yield Sentence(lead, f"{_figures_text(line)}.", STANDING_TONES[standing] or "neutral", text)
    if not finding.tested_pairs:
        yield Sentence("Pairs", "no two cases have values of a metric that this protocol tests.", "neutral")
        return
    yield _pairs_sentence(finding)
    if finding.protocol.checks_normality:
        yield _choice_sentence(finding)
        yield _anova_sentence(finding)
    yield from _beside_sentences(finding)


def _figures_text(line: Line) -> str:
    speedups = " / ".join(
        DASH if row.speedup.estimate is None else f"{format_fixed(row.speedup.estimate.value, 2)}×" for row in line
    )
    batches = " / ".join(str(row.case.batch) for row in line)
    delta = line[0].top1_delta_pp
    if delta.estimate is None:
        return f"speed-up {speedups} at batch {batches}, Top-1 unknown ({delta.why_none})"
    sign = "+" if delta.estimate.value > 0 else ""
    return f"speed-up {speedups} at batch {batches}, Top-1 {sign}{format_fixed(delta.estimate.value, 2)} pp"


def _tested(finding: ProtocolFinding) -> list[TestedPair]:
    return [pair for pair in finding.distinct_pairs if pair.test is not None and pair.test.p_value is not None]


def _pairs_sentence(finding: ProtocolFinding) -> Sentence:
    tested = _tested(finding)
    raw = sum(pair.is_significant for pair in tested)
    after = sum(pair.p_adjusted is not None and pair.p_adjusted < ALPHA for pair in tested)
    text = f"{raw} of {len(tested)} differ with p < {ALPHA}, {after} after Holm's correction"
    missing = len(finding.distinct_pairs) - len(tested)
    return Sentence("Pairs", text + (f"; {missing} could not be tested." if missing else "."), "neutral")


def _choice_sentence(finding: ProtocolFinding) -> Sentence:
    chosen = Counter(pair.test.test for pair in finding.distinct_pairs if pair.test is not None)
    normal = [one.normality for one in finding.distinct_samples if one.normality is not None]
    refused = sum(one.p_value is not None and not one.is_plausible for one in normal)
    untested = sum(one.p_value is None for one in normal)
    text = (
        f"{' and '.join(f'{count} by {test}' for test, count in chosen.most_common())}. Welch's test requires that "
        f"Shapiro-Wilk rejects neither sample. It rejected {refused} of {len(normal)} samples"
    )
    text += f" and could not test {untested}" if untested else ""
    return Sentence("Tests", f"{text}.", "neutral")


def _anova_sentence(finding: ProtocolFinding) -> Sentence:
    found = [scenario.variances for setting in finding.settings for scenario in setting.scenarios]
    done = [one for one in found if one is not None and not one.failed_assumptions]
    against = Counter(reason for one in found for reason in _against_anova(one))
    text = f"done for {len(done)} of {len(found)} combinations of a metric and a setting"
    if against:
        listed = ", ".join(f"{reason} ({count})" for reason, count in against.most_common())
        text += f"; not done because of {listed}"
    return Sentence("ANOVA and Tukey", f"{text}.", "neutral")


def _against_anova(found: Variances | None) -> list[str]:
    """What left it out; an assumption that could not be tested is not one that was refused."""
    if found is None:
        return ["a case without values"]
    residuals, variances = found.residuals.p_value, found.brown_forsythe_p
    words = {
        AnovaAssumption.ENOUGH_SAMPLES: str(AnovaAssumption.ENOUGH_SAMPLES),
        AnovaAssumption.NORMAL_RESIDUALS: _which("residuals", "residuals that are not normal", residuals),
        AnovaAssumption.EQUAL_VARIANCES: _which("variances", "unequal variances", variances),
    }
    return [words[failed.assumption] for failed in found.failed_assumptions]


def _which(tested: str, refused: str, p_value: float | None) -> str:
    return refused if p_value is not None else f"{tested} that cannot be tested"


def _beside_sentences(finding: ProtocolFinding) -> Iterator[Sentence]:
    """Whether the house's own test and the protocol's say the same at one level, uncorrected; nothing where no pair has
    both."""
    both = [pair for pair in _tested(finding) if pair.paired is not None and pair.paired.p_value is not None]
    if not both:
        return
    own = [pair.paired is not None and (pair.paired.p_value or 0.0) < ALPHA for pair in both]
    only_paired = sum(paired and not pair.is_significant for pair, paired in zip(both, own, strict=True))
    only_protocol = sum(pair.is_significant and not paired for pair, paired in zip(both, own, strict=True))
    if not only_paired and not only_protocol:
        text = f"both tests agree on all {len(both)} pairs (p < {ALPHA}, uncorrected)."
    else:
        text = (
            f"of {len(both)} pairs, {only_paired} differ only in the paired test and {only_protocol} only in this "
            f"protocol (p < {ALPHA}, uncorrected)."
        )
    yield Sentence("Compared with paired blocks", text, "neutral")
