# SPDX-License-Identifier: Apache-2.0
"""From joules a token to the energy of a query and of a fleet.

`scenario` reads what is assumed, `measured` takes what a campaign has measured, `simulate` draws both
from `distributions`.
"""

from pybench.projection.measured import resolve
from pybench.projection.scenario import read_scenario
from pybench.projection.simulate import Projection, simulate

__all__ = ["Projection", "read_scenario", "resolve", "simulate"]
