# SPDX-License-Identifier: Apache-2.0
"""What limits the findings, in sentences, loudest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybench.analysis import Analysis
from pybench.analysis.comparability import describe_exclusions, describe_unstated
from pybench.analysis.findings.boards import BoardEffects
from pybench.dataset import Dataset
from pybench.dataset.coverage import Coverage
from pybench.report.sections.reliability.coverage import guard_text
from pybench.report.sections.reliability.run_spread import core_doubts
from pybench.report.sentences import Sentence, list_text


def doubts(dataset: Dataset, analysis: Analysis, coverage: Coverage) -> list[Sentence]:
    """Loudest first: wrong tokens, other devices, gaps, invalid runs, one repetition, cautions."""
    found = [*_token_doubts(analysis), *_device_doubts(analysis), *_latency_doubts(analysis)]
    if coverage.is_full:
        states = list_text([f"{count} {state}" for state, count in coverage.states.items()])
        found.append(Sentence("Coverage is complete", f"{coverage.planned} planned runs: {states}.", "good"))
    else:
        states = list_text([f"{count} {state}" for state, count in coverage.states.items()])
        text = f"{coverage.covered_text}: {states}."
        found.append(Sentence("Coverage is incomplete", text, "bad"))
    found += _software_doubts(analysis)
    found += _board_doubts(analysis)
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
    found += core_doubts(analysis.run_spreads)
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
        text = (
            f"the paths {list_text(list(finding.digests))} gave identical ids in all {finding.blocks} blocks compared."
        )
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


def _board_doubts(analysis: Analysis) -> list[Sentence]:
    models = dict.fromkeys(model for one in analysis.board_models for model in one.by_board)
    of_models = f"boards of {len(models)} models ({list_text(list(models))})"
    boards = {board for one in analysis.boards for board in one.by_board}
    return [
        *_group_doubts(analysis.board_models, of_models, "Models of board differ", "Several models of board"),
        *_group_doubts(analysis.boards, f"{len(boards)} boards", "Boards differ", "Several boards"),
    ]


def _group_doubts(found: Sequence[BoardEffects], where: str, differ: str, several: str) -> list[Sentence]:
    """`where`: on what the blocks ran; then the words that lead where effects differ between these, and where not."""
    if not found:
        return []
    tested = sum(one.p_value is not None for one in found)
    if not tested:
        few = "boards of each" if found[0].of_models else "blocks on each"
        text = f"blocks ran on {where}; effects have fewer than two {few}, or no scatter, so none could be tested."
        return [Sentence(several, text, "neutral")]
    differing = sum(one.differs for one in found)
    ran = f"blocks ran on {where}, and {differing} of {tested} declared effects differ between them"
    ran = f"{ran} (Holm's p below 0.05)"
    if tested < len(found):
        ran = f"{ran}; {len(found) - tested} more have too few blocks, or no scatter"
    if not differing:
        return [Sentence(several, f"{ran}.", "neutral")]
    text = (
        f"{ran}. Their intervals are those of a mean over these boards, and may contain none "
        "of the effects that a table lists apart."
    )
    return [Sentence(differ, text, "bad")]


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
