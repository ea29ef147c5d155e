# SPDX-License-Identifier: Apache-2.0
"""Whether a GPU feels its preprocessing: TinyLM fed by a path and by ids that cost nothing, in turn in one process.

    python3 -P -m bench.tokenizer.fed [--path go_rust] [--model tinylm-small ...] [--pairs 60] [--seconds 0.25]

An iteration is a run's own (`pybench.workloads.feeding`): the batch is taken, brought to the device, run, waited for.
Both streams are open from begin to end and feed one model; segments of so many seconds alternate in the order ABBA
BAAB, so that what the machine does to eager launches for seconds on end meets both. Printed: of each model the ratio
of the throughputs, path over none, its median over pairs with a 95 % interval, and the part of the path's time that
was spent waiting for batches. A copy of the path `none` in the path's place shows what the procedure itself reads.
Needs torch, and a GPU unless --device cpu.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.tokenizer.side_by_side import ratio
from pybench.case import Case
from pybench.preprocess.batches import PATHS
from pybench.workloads.feeding import TokenFeed, feeding
from pybench.workloads.opening import open_model
from pybench.workloads.result import Request

ORDER = (0, 1, 1, 0, 1, 0, 0, 1)  # which of the two, segment by segment, over and over
CHECKED = 8  # iterations between two looks at the clock


@dataclass
class Fed:
    """One source of batches: iterations a second of each of its segments, and the share of them that was waiting."""

    feed: TokenFeed
    iterate: Callable[[], object]
    rates: list[float]
    waited_s: float = 0.0
    spent_s: float = 0.0

    def segment(self, seconds: float) -> None:
        count, waited_s, begin_s = 0, self.feed.wait_s, time.perf_counter()
        while (spent_s := time.perf_counter() - begin_s) < seconds:
            for _ in range(CHECKED):
                self.iterate()
            count += CHECKED
        self.rates.append(count / spent_s)
        self.waited_s += self.feed.wait_s - waited_s
        self.spent_s += spent_s


def measure(model: str, paths: Sequence[str], options: argparse.Namespace) -> dict[str, object]:
    with contextlib.ExitStack() as stack:
        sides: list[Fed] = []
        opened = None
        for path in paths:
            case = Case(workload="infer", model=model, runtime=options.runtime, path=path, fed=path == "none",
                        batch=options.batch, seq_len=options.seq_len, corpus_limit_bytes=options.corpus_limit_bytes,
                        threads=options.threads, device=options.device)  # fmt: skip
            request = Request(case, block=1, attempt=1, seed=1, artefacts={}, files={})
            feed = stack.enter_context(TokenFeed(request))
            opened = opened or open_model(request, vocabulary=feed.vocabulary)
            sides.append(Fed(feed, feeding(feed, opened, case), []))
        for side in sides * 2:
            side.segment(1.0)
        for side in sides:
            side.rates.clear()
            side.waited_s = side.spent_s = 0.0
        while len(sides[1].rates) < options.pairs:
            for index in ORDER:
                sides[index].segment(options.seconds)
    none, path = sides
    return {
        "model": model,
        "path": paths[1],
        "pairs": len(path.rates),
        "ms_an_iteration": [round(1e3 / median(side.rates), 4) for side in (path, none)],
        "throughput_over_none": ratio(path.rates, none.rates),
        "wait_share": round(path.waited_s / path.spent_s, 5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--path", choices=PATHS, nargs="+", default=["go_rust", "none"])
    parser.add_argument("--model", nargs="+", default=["tinylm-small", "tinylm-large"])
    parser.add_argument("--runtime", default="torch")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq-len", type=int, default=128)
    parser.add_argument("--threads", type=int, default=4, help="workers of go_rust")
    parser.add_argument("--corpus-limit-bytes", type=int, default=8_000_000)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seconds", type=float, default=0.25, help="of a segment")
    options = parser.parse_args()
    for model in options.model:
        for path in options.path:
            print(json.dumps(measure(model, ("none", path), options)), flush=True)


if __name__ == "__main__":
    sys.exit(main())
