# SPDX-License-Identifier: Apache-2.0
"""How the numbers came about, as paragraphs for the page: docs/method/ in short, with this campaign's own figures."""

from __future__ import annotations

from pybench.analysis.paired import EQUIVALENCE_MARGIN, POWER
from pybench.dataset import Dataset

_TEXT = """\
The repetition is the unit: every run is a process of its own, and its iterations are nested in it. The plan asks for
{repetitions} repetitions; each is a block in which all cases run once, in an order drawn from the seed {seed};
accuracies run in the first two at most, as predictions do not vary.

Times, rates, sizes and energies are averaged geometrically, other numbers arithmetically. A mean over repetitions has
a skew-adjusted t interval, for any number of repetitions. It is Student's t interval whose bound on the side of the
longer tail is farther out. Simulations showed that bootstrap intervals contain the truth less often. Repetitions that
are all equal give a point and are marked.

A case is compared with its baseline within blocks: the effect is the geometric mean of the blocks' ratios (a mean
difference where a ratio has no sense), with the same interval, on the logarithms. Only blocks in which both sides are
valid are used. A p value and its interval come from one calculation: p is below 0.05 exactly when the 95 % interval
excludes no effect. Holm's correction covers everything that the plan declares.

Equivalence is tested within ±{margin:.0%} by two one-sided tests. The smallest detectable effect is what this test
would find with a probability of {power:.0%}, given the spread and skewness seen.

Accuracy has the image as its unit, because a deterministic model does not vary between runs: shares have Wilson's
score interval, paired differences Tango's, and the test is McNemar's, which is Tango's at zero.

A criterion is accepted when the whole 95 % interval keeps its bound, rejected when the whole interval breaks it,
undecided otherwise; a candidate is accepted when all of its criteria are.

Values whose run is invalid in the sense that they rest on are counted and left out. A dash is a number that does not
exist, with its reason; it is never zero.
"""


_JOULES = """\
The energy of a GPU board is found from the driver's power samples and its energy counter together, with the sensor's
delay and lag taken off. It has two uncertainties. A printed joule carries the absolute one, in which the board's
unknown gain (up to 5 %) is part; a printed ratio carries the interval over blocks, because the gain cancels on one
board. For each case the run with the median energy is shown with its power and the budget of its uncertainty.
"""


def paragraphs(dataset: Dataset) -> tuple[str, ...]:
    """Plain sentences, one paragraph each."""
    text = (_TEXT + ("\n" + _JOULES if dataset.energies else "")).format(
        repetitions=dataset.plan.repetitions,
        seed=dataset.plan.seed,
        margin=EQUIVALENCE_MARGIN,
        power=POWER,
    )
    return tuple(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
