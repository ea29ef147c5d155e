# SPDX-License-Identifier: Apache-2.0
"""pybench: benchmark campaigns for numeric precisions and runtimes, with numbers that a referee can trust.

`load` and `__version__` are what Python code may use. `load` imports when it is called: every worker executes this file
too, and must not pay for the reading half.
"""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars

__version__ = "0.1.0"
__all__ = ["__version__", "load"]


def load(directory: str | PathLike[str]) -> polars.DataFrame:
    """All runs that a campaign's plan asks for as one tidy polars frame: one row a (run, metric).

    Columns: every factor of the case, `case_id`, `block`, `attempt`, `outcome`, `valid_*`, `metric`, `unit`, `window`,
    `value`, `u_standard`, `u_absolute`, `lower`, `upper`, `samples`, `method`, `reason`. A run without metrics
    keeps one row, with a null metric. Missing values are null. Raises `CorruptError` for a finished run
    whose files cannot be read, `UsageError` when `directory` is not a campaign.
    """
    from pybench.dataset import load as load_dataset

    return load_dataset(directory).frame
