# SPDX-License-Identifier: Apache-2.0
"""How the numbers came about, as paragraphs for the page: docs/method/ in short, with this campaign's own figures."""

from __future__ import annotations

from collections.abc import Sequence, Set

from pybench.analysis.statistics.paired import EQUIVALENCE_MARGIN, POWER
from pybench.analysis.statistics.proportions import EXACT_BELOW
from pybench.analysis.statistics.sequential import confidence_among
from pybench.case import Case
from pybench.case.repetitions import StoppingRule
from pybench.dataset import Dataset

_TEXT = """\
The unit of the analysis is the repetition. Every run is a separate process, and its iterations are nested in it. The
plan has {repetitions}. Each repetition is a block in which every case runs once, in an order drawn from the seed
{seed}. {unequal}{timed}Accuracy cases run in the first two blocks at most, because predictions do not vary.

Means of times, rates, sizes and energies are geometric, unless a value is not above 0, as a net energy near 0 may be;
other means are arithmetic. Each mean over repetitions has a
skew-adjusted t interval, for any number of repetitions. This is Student's t interval with a wider bound on the side of
the longer tail. In simulations, bootstrap intervals contained the true value less often. If all repetitions are equal,
the mean has no interval, and a note says so.

A case is compared with its baseline within blocks. The effect is the geometric mean of the ratios in the blocks, with
the same interval, on the logarithms. For metrics without a meaningful ratio, the effect is the mean difference. A block
is used only if both runs are valid. The p value and the interval come from one calculation: p is below 0.05 exactly
when the 95 % interval excludes "no effect". Holm's correction covers all comparisons that the plan declares.

Equivalence within ±{margin:.0%} is tested by two one-sided tests. The smallest detectable effect is the effect that the
test would find with a probability of {power:.0%}, given the observed spread and skewness.

The unit of accuracy is what has one score: an image, a window of text, a volume or a state. It is not the repetition,
because a deterministic model does not vary between runs. Shares have Wilson's score interval, and paired differences
have Tango's score interval. The test is McNemar's exact test where fewer than {exact_below} units are right on one side
only. Otherwise, and for units in groups, it is McNemar's test by the score, which is Tango's test for a difference of
zero. The exact test is the stricter one: its p may be above 0.05 although the interval excludes zero.

A criterion is accepted when the whole 95 % interval satisfies the bound. It is rejected when the whole interval
violates the bound, and undecided otherwise. A candidate is accepted when all of its criteria are accepted.

Every metric rests on the precision of its run, and most also rest on the timing, the energy or the accuracy. If a run
is not valid in one of these respects, the value is excluded and counted. A dash marks a number that does not exist,
with the reason. It never means zero.
"""


_JOULES = """\
The energy of a GPU board is computed from the driver's power samples and its energy counter together. The delay and the
lag of the sensor are removed. The energy has two uncertainties. A printed energy has the absolute uncertainty, which
includes the unknown gain of the board (up to 5 %). A printed ratio has the interval over blocks, because the gain
cancels between runs on one board. For each case, the run with the median energy is shown with its power and its
uncertainty budget.
"""


_UNEQUAL = """\
Cases with fewer repetitions run in the first blocks only, and a comparison uses the blocks of both its cases.
"""


_TIMED = """\
A timed run has {warmup} warm-up iterations, then {timed} timed ones.
"""


_STOPPING = """\
The campaign is run until every comparison of the plan is decided, in at most {at_most} blocks. It is looked at after
blocks {looks}. An interval or test that is looked at again and again errs more often. Therefore each 95 % interval over
blocks is computed with {confidence}, and each p value is multiplied by {number}. They then hold at the look at which
the campaign stopped, whichever it was. For the stop itself, all comparisons had to be decided together: their intervals
are wider still, by the number of comparisons. The tests and intervals of protocols are those of their papers, and do
not allow for looks.
"""


def _stopping(rule: StoppingRule) -> str:
    number = len(rule.looks)
    confidence = f"{confidence_among(number):.2%}".replace("%", " %")
    return _STOPPING.format(
        at_most=rule.at_most, looks=", ".join(map(str, rule.looks)), confidence=confidence, number=number
    )


def _timed(cases: Sequence[Case]) -> str:
    timed = [case for case in cases if "iterations" not in case.idle]
    if not timed:
        return ""
    return _TIMED.format(
        warmup=_range_text({case.warmup_iterations for case in timed}),
        timed=_range_text({case.iterations for case in timed}),
    )


def _range_text(numbers: Set[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(least) if least == most else f"{least} to {most}"


def paragraphs(dataset: Dataset) -> tuple[str, ...]:
    """Plain sentences, one paragraph each."""
    text = (_TEXT + ("\n" + _JOULES if dataset.energies else "")).format(
        repetitions=dataset.plan.repetitions.text(dataset.plan.cases),
        unequal=_UNEQUAL if dataset.plan.repetitions.by_case else "",
        timed=_timed(dataset.plan.cases),
        seed=dataset.plan.seed,
        margin=EQUIVALENCE_MARGIN,
        exact_below=EXACT_BELOW,
        power=POWER,
    )
    rule = dataset.plan.repetitions.rule
    text += "" if rule is None else f"\n{_stopping(rule)}"
    return tuple(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
