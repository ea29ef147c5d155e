# SPDX-License-Identifier: Apache-2.0
"""Factors of how a run is made: arrivals, copies, CPUs, the board, windows."""

from __future__ import annotations

from dataclasses import dataclass

from pybench.case import idle
from pybench.case.factor import board_setting, factor
from pybench.case.factors.training import TrainingFactors

ARRIVALS = ("closed", "fixed", "poisson")
CACHES = ("warm", "cold")
WARM, COLD = CACHES
TO_GPU, FROM_GPU, BOTH = DIRECTIONS = ("h2d", "d2h", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFactors(TrainingFactors):
    """How a run is made."""

    transfers: bool = factor(
        "boolean",
        False,
        "whether an iteration includes the copies to and from the device",
        "serving",
        answers=False,
        sets_work=True,
    )
    arrivals: str = factor(
        "choice",
        "closed",
        "`closed`: a new iteration begins as soon as an earlier one has ended; `fixed` and `poisson`: iterations "
        "arrive at a rate, and latency counts from the arrival",
        "arriving",
        choices=ARRIVALS,
        answers=False,
        sets_work=True,
    )
    arrival_rate_per_s: float | None = factor(
        "number",
        None,
        "how many iterations arrive in a second, where `arrivals` is not `closed`",
        "arriving",
        minimum=0.001,
        idle=idle.NO_ARRIVALS,
        follows=("arrivals",),
        answers=False,
        sets_work=True,
    )
    cache: str = factor(
        "choice",
        WARM,
        "`warm`: an iteration finds in the GPU's L2 cache what the last one left there; `cold`: the cache is "
        "overwritten before each iteration",
        "serving",
        choices=CACHES,
        idle=idle.NO_REPLAYS,
        follows=("runtime", "launch", "transfers"),
        answers=False,
        sets_work=True,
    )
    transfer_bytes: int = factor("integer", 67108864, "bytes in a copy", "copying", minimum=1, answers=False)
    pinned: bool = factor("boolean", False, "whether the copy is from page-locked memory", "copying", answers=False)
    non_blocking: bool = factor("boolean", False, "whether the copy is asynchronous", "copying", answers=False)
    direction: str = factor(
        "choice",
        TO_GPU,
        "to the GPU, from it, or as many bytes both ways at once; `both` needs `pinned` and `non_blocking`",
        "copying",
        choices=DIRECTIONS,
        answers=False,
    )
    streams: int = factor(
        "integer",
        1,
        "CUDA streams for each direction: the copy is cut into as many parts, which are copied at once",
        "copying",
        minimum=1,
        maximum=64,
        idle=idle.NOT_AT_ONCE,
        follows=("pinned", "non_blocking"),
        answers=False,
    )
    numa_node: int | None = factor(
        "integer",
        None,
        "NUMA node of the host memory",
        "copying",
        absent="where the kernel puts it",
        hint="`lscpu` lists the nodes",
        answers=False,
    )
    threads: int | None = factor(
        "integer",
        None,
        "CPU threads inside an operator",
        minimum=1,
        absent="as many as the CPUs that the run may use",
        idle=idle.NOT_THREADED,
        follows=("runtime",),
        answers=False,
    )
    affinity: str | None = factor(
        "text", None, "CPUs that the run may use, such as `0-3,8`", form="cpus", absent="all", answers=False
    )
    device: str = factor(
        "text",
        "auto",
        "`auto`: the first GPU, or the CPU if there is none; or `cpu`, `cuda`, a GPU's UUID",
        form="device",
        answers=False,
    )
    power_limit_w: int | None = board_setting("power limit of the GPU's board during the run", "watts")
    sm_clock_mhz: int | None = board_setting("clock that the GPU's multiprocessors are locked to", "MHz")
    memory_clock_mhz: int | None = board_setting("clock that the GPU's memory is locked to", "MHz")
    warmup_iterations: int = factor(
        "integer",
        10,
        "iterations before the timing window",
        minimum=0,
        protocol=True,
        idle=idle.NOT_ITERATED,
        answers=False,
    )
    iterations: int = factor(
        "integer",
        100,
        "iterations in the timing window",
        minimum=1,
        protocol=True,
        idle=idle.NOT_ITERATED,
        answers=False,
    )
    energy_window_s: float = factor(
        "number",
        0.0,
        "length of the energy window in seconds; 0: energy is measured in the timing window",
        minimum=0,
        protocol=True,
        idle=idle.NOT_ITERATED,
        answers=False,
    )
    idle_window_s: float = factor(
        "number",
        0.5,
        "seconds of rest before the warm-up and after the energy window, for a GPU's idle power; 0: no rest",
        minimum=0,
        protocol=True,
        answers=False,
    )
