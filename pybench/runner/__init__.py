# SPDX-License-Identifier: Apache-2.0
"""Runs a campaign: artefacts first, once each, then every run of every block in a process of its own.

`campaign` is the table of contents. The others:

- `schedule`: the order
- `claims`: who may do a run, in which `batch_job`
- `whole_blocks`: what a change of machine spoils
- `prepare`: the artefacts
- `sensors`: the profiles of the GPUs' power sensors
- `process`: one worker
- `outcome`: what came of it
- `memory_kills`: whether the kernel ended it for memory
- `interruption`: how to stop

Spawns the worker, never imports it.
"""

from pybench.runner.campaign import (
    Options,
    Tally,
    make_artefacts,
    open_for_running,
    pending_runs,
    run_campaign,
    tally,
    uncounted,
)
from pybench.runner.schedule import Shard, parse_shard, planned_runs
from pybench.runner.sensors import SensorSource, prepare_sensors

__all__ = [
    "Options",
    "SensorSource",
    "Shard",
    "Tally",
    "make_artefacts",
    "open_for_running",
    "parse_shard",
    "pending_runs",
    "planned_runs",
    "prepare_sensors",
    "run_campaign",
    "tally",
    "uncounted",
]
