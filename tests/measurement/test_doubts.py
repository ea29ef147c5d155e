# SPDX-License-Identifier: Apache-2.0
"""Doubts that facts of the machine raise."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.case import Case
from pybench.catalogue.cautions import CautionCode
from pybench.measurement.doubts import saturation_cautions

INT8 = Case(workload="infer", model="digits-cnn", runtime="onnxruntime", precision="int8")
OLD = "processor : 0\nflags\t\t: fpu sse avx2 fma\n"


def _machine(folder: Path, cpuinfo: str) -> Path:
    (folder / "proc").mkdir()
    (folder / "proc/cpuinfo").write_text(cpuinfo)
    return folder


@pytest.mark.parametrize("runtime", ["onnxruntime", "native", "openvino"])
def test_int8_without_vnni_has_a_caution(tmp_path: Path, runtime: str) -> None:
    (found,) = saturation_cautions(INT8.with_factors(runtime=runtime), _machine(tmp_path, OLD))
    assert found.code is CautionCode.INT8_SATURATES
    assert found.detail == "the CPU has none of amx_int8, avx512_vnni, avx_vnni"


@pytest.mark.parametrize(
    ("case", "cpuinfo"),
    [
        pytest.param(INT8.with_factors(precision="fp32"), OLD, id="another precision"),
        pytest.param(INT8.with_factors(runtime="torch"), OLD, id="a runtime without such kernels"),
        pytest.param(INT8.with_factors(quantiser="pybench"), OLD, id="symmetric ranges, which it computes in FP32"),
        pytest.param(INT8.with_factors(quantiser="weight-only"), OLD, id="weights alone"),
        pytest.param(INT8, OLD.replace("fma", "avx512_vnni"), id="AVX-512"),
        pytest.param(INT8, OLD.replace("fma", "avx_vnni"), id="AVX2"),
        pytest.param(INT8, "processor : 0\nFeatures\t: fp asimd\n", id="ARM"),
    ],
)
def test_nothing_else_has_it(tmp_path: Path, case: Case, cpuinfo: str) -> None:
    assert saturation_cautions(case, _machine(tmp_path, cpuinfo)) == []
    assert saturation_cautions(case, tmp_path / "no such machine") == []
