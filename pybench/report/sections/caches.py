# SPDX-License-Identifier: Apache-2.0
"""What a warm cache does to comparisons.

caches  a row for each pair and metric: the ratio with warm caches, that with cold ones, and their ratio
"""

from __future__ import annotations

from collections.abc import Sequence

from pybench.analysis.findings.caches import CacheEffect
from pybench.case.factors.running import COLD
from pybench.case.pairing import Pair
from pybench.catalogue.metrics import METRICS
from pybench.report.labels import pair_texts, varying_factors
from pybench.report.sections.elements import Element, Material, Paragraph, Section, Sentences, Tables
from pybench.report.sections.findings.contrast_tables import head_cells, head_columns
from pybench.report.sentences import Sentence, estimate_text
from pybench.report.tables import Cell, Column, Table, estimate_cell, estimate_fields

LEAD = (
    "A loop of iterations finds data in the L2 cache of the GPU. "
    "A model that is used now and then reads them from memory. "
    "By the cache: the ratio with warm caches over the ratio with cold ones. "
    "Below 1, a warm cache helps the case more than its baseline."
)
NOTES = (
    "Ratios of the case to its baseline, over the blocks in which all four runs count.",
    "By the cache: the ratio with warm caches over the ratio with cold ones, paired within blocks.",
)


def build(material: Material) -> list[Element]:
    found = material.analysis.cache_effects
    if not found:
        return []
    context = _context(found)
    shown = [_sentence(one, context) for one in found if one.is_shown]
    return [
        Paragraph(LEAD, "lead"),
        *([Sentences(shown)] if shown else []),
        Tables(lambda: [caches_table(found)], is_printed=True),
    ]


def _context(found: Sequence[CacheEffect]) -> tuple[str, ...]:
    """The factors that tell pairs apart."""
    return tuple(varying_factors([one.pair.case for one in found]))


def _sentence(found: CacheEffect, context: Sequence[str]) -> Sentence:
    case, baseline, where = pair_texts(found.pair, tuple(found.contrast.baseline), context)
    subject = f"{case} instead of {baseline}" + (f" ({where})" if where else "")
    estimates = (found.warm, found.cold, found.by_cache)
    warm, cold, by_cache = (estimate_text(one, signed=False, ratio=True) for one in estimates)
    text = f"{METRICS[found.metric].label} {warm} with warm caches, {cold} with cold caches: {by_cache} by the cache."
    return Sentence(subject, text, "neutral")


def caches_table(found: Sequence[CacheEffect]) -> Table:
    """`caches`."""
    columns = (
        *head_columns(),
        Column("Metric", ("metric",)),
        Column("Warm caches", estimate_fields("warm"), numeric=True),
        Column("Cold caches", estimate_fields("cold"), numeric=True),
        Column("By the cache", estimate_fields("by_cache"), numeric=True),
    )
    context = _context(found)
    rows = tuple(
        (
            *head_cells(one.pair, one.contrast, context),
            Cell(METRICS[one.metric].label, csv=(one.metric,), cases=_cold_ids(one.pair)),
            *(estimate_cell(each) for each in (one.warm, one.cold, one.by_cache)),
        )
        for one in found
    )
    return Table("caches", "Comparisons with warm and with cold caches", columns, rows, NOTES)


def _cold_ids(pair: Pair) -> tuple[str, ...]:
    return tuple(case.with_factors(cache=COLD).id for case in (pair.case, pair.baseline))


SECTION = Section("caches", "Warm and cold caches", build)
