# SPDX-License-Identifier: Apache-2.0
"""Runs a campaign: artefacts first, once each, then every run of every block in a process of its own.

`campaign` is the table of contents. The others:

- `call`: what one call shares
- `opening`: the directory, new or continued
- `schedule`: the order
- `standing`: what is done and what is left
- `claims`: who may do a run, in which `batch_job`
- `whole_blocks`: what a change of machine spoils
- `prepare`: the artefacts
- `unfinished`: those that were ended early and go on
- `sensors`: the profiles of the GPUs' power sensors
- `attempt`: one run
- `process`: one worker
- `outcome`: what came of it
- `memory_kills`: whether the kernel ended it for memory
- `interruption`: how to stop

Spawns the worker, never imports it.
"""

from pybench.runner.call import Options
from pybench.runner.campaign import make_artefacts, run_campaign
from pybench.runner.opening import changed_cases, open_for_running, opened_for_running, planned_before
from pybench.runner.schedule import Shard, parse_shard, planned_runs
from pybench.runner.sensors import SensorSource, prepare_sensors
from pybench.runner.standing import Tally, failures, pending_runs, tally, uncounted
from pybench.runner.unfinished import unfinished_makings

__all__ = [
    "Options",
    "SensorSource",
    "Shard",
    "Tally",
    "changed_cases",
    "failures",
    "make_artefacts",
    "open_for_running",
    "opened_for_running",
    "parse_shard",
    "pending_runs",
    "planned_before",
    "planned_runs",
    "prepare_sensors",
    "run_campaign",
    "tally",
    "uncounted",
    "unfinished_makings",
]
