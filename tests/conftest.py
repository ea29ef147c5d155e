# SPDX-License-Identifier: Apache-2.0
"""Tests import each other as `tests.…`, and pybench as it is installed: this folder's parent comes last on the path,
and no Python that a test starts puts its working directory first."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
os.environ["PYTHONSAFEPATH"] = "1"
