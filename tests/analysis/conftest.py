# SPDX-License-Identifier: Apache-2.0
"""The first paper's campaign with numbers that are drawn, analysed once for all tests of the named protocols."""

from __future__ import annotations

import pytest

from pybench.analysis import Analysis, analyse
from pybench.analysis.protocols.protocol import ProtocolFinding
from pybench.dataset import Dataset, load
from tests.support.precision_campaign import build_precisions


@pytest.fixture(scope="session")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return load(build_precisions(tmp_path_factory.mktemp("precisions") / "c"))


@pytest.fixture(scope="session")
def analysis(papers: Dataset) -> Analysis:
    return analyse(papers)


@pytest.fixture(scope="session")
def finding(analysis: Analysis) -> ProtocolFinding:
    (found,) = analysis.protocols
    return found
