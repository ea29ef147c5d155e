# SPDX-License-Identifier: Apache-2.0
"""Which cases share what is no runtime's."""

from __future__ import annotations

from pybench.analysis.findings.kernel_pairs import shared_factors
from pybench.case import Case

OWN = Case(workload="infer", model="own.onnx", runtime="onnxruntime", sources=(("model", "0" * 64),))


def test_cases_of_one_file_share_it_and_those_of_another_content_do_not() -> None:
    assert shared_factors(OWN) == shared_factors(OWN.with_factors(runtime="openvino"))
    assert shared_factors(OWN) != shared_factors(OWN.with_factors(sources=(("model", "1" * 64),)))
