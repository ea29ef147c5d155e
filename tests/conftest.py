# SPDX-License-Identifier: Apache-2.0
"""Tests import each other as `tests.…`, and pybench as it is installed: this folder's parent comes last on the path."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
