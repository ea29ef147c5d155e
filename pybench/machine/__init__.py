# SPDX-License-Identifier: Apache-2.0
"""What this machine can do and measure. Asks the worker in a subprocess; imports no framework.

`facts`: the asking; `support`: whether a case can run here; `diagnosis`: what `pybench doctor` says; `estimate`: how
long a campaign may take before anything has run; `sensor`: a GPU's power sensor, measured; `profiles`: the store of
such measurements.
"""

from pybench.machine.diagnosis import diagnose
from pybench.machine.estimate import Estimate, estimate
from pybench.machine.facts import EVERYTHING, Facts, ask, needed_facts
from pybench.machine.sensor import boards_used, measure_profile
from pybench.machine.support import gpus_of, platform_of, unsupported

__all__ = [
    "EVERYTHING",
    "Estimate",
    "Facts",
    "ask",
    "boards_used",
    "diagnose",
    "estimate",
    "gpus_of",
    "measure_profile",
    "needed_facts",
    "platform_of",
    "unsupported",
]
