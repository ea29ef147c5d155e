# SPDX-License-Identifier: Apache-2.0
"""`python -m pybench.cli` is `pybench`."""

import sys

from pybench.cli import main

sys.exit(main())
