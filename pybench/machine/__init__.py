# SPDX-License-Identifier: Apache-2.0
"""What this machine can do and measure. Asks the worker in a subprocess; imports no framework.

`machine` has the object that a campaign asks. It is made of these:

- `facts`: what a worker finds here, by `asking` it
- `environments`: the interpreters that a plan names, each with its facts
- `support`: whether a case can run here
- `estimate`: how long a campaign may take before anything has run
- `operations`: what a user's ONNX file computes, for the estimate
- `sensor`: a GPU's power sensor, measured
`diagnosis`: what `pybench doctor` says. `profiles`: the store of measured sensors. `opening`: what each runtime says of
an ONNX file.
"""

from pybench.machine.diagnosis import diagnose, diagnose_packages
from pybench.machine.estimate import CampaignEstimate
from pybench.machine.facts import EVERYTHING, ask
from pybench.machine.machine import Machine
from pybench.machine.opening import Opening, ask_runtimes, count_flops, time_library, time_pass
from pybench.machine.operations import count_multiply_adds

__all__ = [
    "EVERYTHING",
    "CampaignEstimate",
    "Machine",
    "Opening",
    "ask",
    "ask_runtimes",
    "count_flops",
    "count_multiply_adds",
    "diagnose",
    "diagnose_packages",
    "time_library",
    "time_pass",
]
