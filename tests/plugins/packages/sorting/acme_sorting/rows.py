# SPDX-License-Identifier: Apache-2.0
from pybench.catalogue.metrics import Metric
from pybench.catalogue.options import Option
from pybench.catalogue.workloads import Workload

ROWS = (
    Metric(
        name="sorted_numbers_per_s",
        group="time",
        unit="numbers/s",
        better="higher",
        label="Numbers sorted",
        meaning="numbers sorted in a second",
        rests_on="timing",
    ),
    Workload(
        name="sort",
        label="Sorting",
        meaning="one sort of a batch of random numbers",
        module="acme_sorting.sort",
        takes=("run",),
        model="none",
        yields=("latency_mean_ms", "latency_p50_ms", "sorted_numbers_per_s"),
        headline="sorted_numbers_per_s",
        shown=("latency_mean_ms", "sorted_numbers_per_s"),
        options=(
            Option(name="sorting.count", kind="integer", default=10_000, minimum=1, meaning="numbers in a batch"),
        ),
    ),
)
