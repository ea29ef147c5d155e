# SPDX-License-Identifier: Apache-2.0
"""Whether a GPU feels its preprocessing: TinyLM fed by a path and by ids that cost nothing, in turn in one process.

    python3 -P -m bench.tokenizer.fed [--path go_rust] [--model tinylm-small ...] [--blocks 20] [--rounds 25]

An iteration is a run's own (`pybench.measurement.feed`): the batch in hand is launched, the next one fetched, the
launch waited for. Both streams are open from begin to end and feed one model, each with a batch of its own in hand.
They alternate every few iterations in the order ABBA BAAB, in which a drift that is straight or a parabola meets both
alike. So what the machine does to eager launches for tenths of a second on end cancels. A block is many rounds of these
eight turns; its ratio is the time of none's iterations over that of the path's: path over none, as throughput. Which
side was opened second matters by some thousandths, so all of it is done twice, the other side first.

Printed: the geometric mean with Student's 95 % interval over as many ratios as blocks, each of one block of either
opening. Then the means of both openings, and what taking a batch costs each side. A copy of the path `none` in the
path's place shows what the procedure itself reads: its interval has to hold 1.

In turn with another, a path has twice the time for its batches. Whether it keeps up by itself is measured after each
opening: `alone` is the path with nothing beside it. A path that does not keep up has a greater `wait_share` there.

The defaults are 16,000 iterations of each side a model. Needs torch, and a GPU unless --device cpu.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from pybench.case import Case
from pybench.catalogue.paths import PATHS
from pybench.measure.timing.clock import NANOSECONDS_PER_SECOND, monotonic_ns
from pybench.measurement.feed import TokenFeed
from pybench.measurement.model import open_model
from pybench.measurement.result import RunRequest

ORDER = (0, 1, 1, 0, 1, 0, 0, 1)  # which of the two, turn by turn
WARM_UP_S = 1.0
CHECKED = 8  # iterations between two looks at the clock
CONFIDENCE = 0.95


@dataclass
class Spent:
    """Iterations, the time they took, and how much of it was taking batches."""

    iterations: int = 0
    ns: int = 0
    waited_ns: float = 0.0

    def add(self, iterations: int, ns: int, waited_ns: float) -> None:
        self.iterations += iterations
        self.ns += ns
        self.waited_ns += waited_ns

    def facts(self) -> dict[str, float]:
        return {
            "ms_an_iteration": round(self.ns / self.iterations / 1e6, 4),
            "take_us": round(self.waited_ns / self.iterations / 1e3, 2),
            "wait_share": round(self.waited_ns / self.ns, 5),
        }


@dataclass(frozen=True)
class Side:
    """One source of batches, and the iteration that it feeds."""

    feed: TokenFeed
    iterate: Callable[[], object]

    def turn(self, iterations: int, into: Spent) -> int:
        """Runs some iterations; returns their time in ns."""
        iterate, waited_s, begin_ns = self.iterate, self.feed.wait_s, monotonic_ns()
        for _ in range(iterations):
            iterate()
        ns = monotonic_ns() - begin_ns
        into.add(iterations, ns, (self.feed.wait_s - waited_s) * NANOSECONDS_PER_SECOND)
        return ns

    def stretch(self, seconds: float) -> Spent:
        """Runs for so long with nothing beside it."""
        spent = Spent()
        while spent.ns < seconds * NANOSECONDS_PER_SECOND:
            self.turn(CHECKED, spent)
        return spent


def measure(model: str, paths: Sequence[str], options: argparse.Namespace) -> dict[str, Any]:
    spent = [Spent(), Spent()]
    alone: list[Spent] = []
    ratios: list[list[float]] = []
    for first in (0, 1):
        with contextlib.ExitStack() as stack:
            sides = open_sides(model, paths, first, options, stack)
            for side in sides:
                side.stretch(WARM_UP_S)
            ratios.append([block(sides, spent, options) for _ in range(options.blocks)])
            alone.append(sides[1].stretch(options.alone))
    return {
        "model": model,
        "path": paths[1],
        "blocks": options.blocks,
        "turns": 2 * options.blocks * options.rounds * len(ORDER),
        "iterations_a_turn": options.turn,
        "throughput_over_none": interval([float(np.sqrt(a * b)) for a, b in zip(*ratios, strict=True)]),
        "path_opened_second_first": [round(float(np.exp(np.log(each).mean())), 4) for each in ratios],
        "none": spent[0].facts(),
        "in_turn": spent[1].facts(),
        "alone": [each.facts() for each in alone],
    }


def open_sides(
    model: str, paths: Sequence[str], first: int, options: argparse.Namespace, stack: contextlib.ExitStack
) -> list[Side]:
    """A stream of each path, open as long as `stack`, and one model behind both; `first`: which is opened first."""
    sides: dict[int, Side] = {}
    opened = None
    for index in (first, 1 - first):
        path = paths[index]
        case = Case(workload="infer", model=model, runtime=options.runtime, path=path, fed=path == "none",
                    batch=options.batch, seq_len=options.seq_len, corpus_limit_bytes=options.corpus_limit_bytes,
                    threads=options.threads, device=options.device)  # fmt: skip
        request = RunRequest(case, block=1, attempt=1, seed=1, artefacts={}, files={})
        feed = stack.enter_context(TokenFeed(request))
        opened = opened or open_model(request, vocabulary=feed.vocabulary)
        sides[index] = Side(feed, feed.feeding(opened, case))
    return [sides[0], sides[1]]


def block(sides: Sequence[Side], spent: Sequence[Spent], options: argparse.Namespace) -> float:
    """The ratio of throughputs, second side over first, of some rounds of turns."""
    ns = [0, 0]
    for _ in range(options.rounds):
        for index in ORDER:
            ns[index] += sides[index].turn(options.turn, spent[index])
    return ns[0] / ns[1]


def interval(ratios: Sequence[float]) -> list[float]:
    """Geometric mean and its 95 % interval, by Student's t on logarithms."""
    logs = np.log(ratios)
    half = student.ppf((1 + CONFIDENCE) / 2, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return [round(float(np.exp(logs.mean() + side * half)), 4) for side in (0, -1, 1)]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--path", choices=PATHS, nargs="+", default=["go_rust", "none"], help="none: the copy of itself"
    )
    parser.add_argument("--model", nargs="+", default=["tinylm-small", "tinylm-large"])
    parser.add_argument("--runtime", default="torch")
    parser.add_argument("--device", default="cuda", help="cuda or cpu")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq-len", type=int, default=128)
    parser.add_argument("--threads", type=int, default=4, help="workers of go_rust; threads of the model on a CPU")
    parser.add_argument("--corpus-limit-bytes", type=int, default=8_000_000)
    parser.add_argument(
        "--blocks", type=at_least(2), default=20, help="of each opening: the interval is over as many ratios"
    )
    parser.add_argument("--rounds", type=at_least(1), default=25, help="of eight turns each, in a block")
    parser.add_argument("--turn", type=at_least(1), default=4, help="iterations before the other side's turn")
    parser.add_argument(
        "--alone", type=at_least(0.1), default=2.0, help="seconds of the path alone, after each opening"
    )
    options = parser.parse_args(arguments)
    for model in options.model:
        for path in options.path:
            print(json.dumps(measure(model, ("none", path), options)), flush=True)


def at_least(least: float) -> Callable[[str], float]:
    """A number of the type of `least`, not below it."""

    def number(text: str) -> float:
        if (value := type(least)(text)) < least:
            raise argparse.ArgumentTypeError(f"at least {least}")
        return value

    return number


if __name__ == "__main__":
    sys.exit(main())
