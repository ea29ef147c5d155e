# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import json

import pytest

from pybench.errors import UnsupportedError
from pybench.kernels.launches import KernelLaunches, profile_of_launches
from pybench.kernels.profile import (
    Kernel,
    Profile,
    mean_profile,
    profile_from_json,
    profile_to_json,
    time_ratio,
    work_of,
)

PROFILE = Profile(
    source="onnxruntime",
    method="by hand",
    iterations=3,
    kernels=(
        Kernel(
            name="conv", kernel="QLinearConv", work="multiplying", computes_in="int8", inputs=("uint8", None),
            outputs=("uint8",), nodes=("conv", "relu"), reads=("x",), writes=("y",), time_ms=3.0,
        ),
        Kernel(name="move", kernel="Transpose", work="moving", of_constants=True, time_ms=1.0),
        Kernel(name="alias", kernel="NoOp", work="nothing"),
    ),
    iteration_ms=4.5,
    qdq_nodes=2,
)  # fmt: skip


def test_a_profile_comes_back_from_json() -> None:
    assert profile_from_json(json.loads(json.dumps(profile_to_json(PROFILE)))) == PROFILE


def test_what_a_kernel_does_not_have_is_not_stored() -> None:
    assert profile_to_json(PROFILE)["kernels"][2] == {"name": "alias", "kernel": "NoOp", "work": "nothing"}


def test_work_that_there_is_not_is_an_error() -> None:
    stored = profile_to_json(PROFILE)
    stored["kernels"][0]["work"] = "sleeping"
    with pytest.raises(ValueError, match="sleeping"):
        profile_from_json(stored)


def test_shares_are_of_time_and_what_runs_nothing_is_no_kernel() -> None:
    assert len(PROFILE.running) == 2
    assert PROFILE.total_ms == 4.0
    assert time_ratio(PROFILE, "moving") == 0.25
    assert time_ratio(PROFILE, "quantising") == 0.0
    assert [kernel.name for kernel in work_of(PROFILE, "moving")] == ["move"]


def test_a_profile_without_times_has_no_shares() -> None:
    bare = Profile(source="tensorrt", method="", iterations=0, kernels=(Kernel(name="a", kernel="k", work="other"),))
    assert not bare.has_times
    assert time_ratio(bare, "other") is None


def _run(**times_ms: float) -> Profile:
    kernels = tuple(Kernel(name=name, kernel="k", work="other", time_ms=time) for name, time in times_ms.items())
    return Profile(
        source="onnxruntime", method="m", iterations=10, kernels=kernels, iteration_ms=sum(times_ms.values())
    )


def test_the_mean_is_over_runs_of_the_same_kernels() -> None:
    mean = mean_profile([_run(a=1.0, b=2.0), _run(a=3.0, b=2.0), _run(a=100.0, c=1.0)])
    assert [kernel.time_ms for kernel in mean.kernels] == [2.0, 2.0]
    assert (mean.iterations, mean.iteration_ms) == (20, 4.0)


def test_there_is_no_mean_of_nothing() -> None:
    with pytest.raises(ValueError, match="no profile"):
        mean_profile([])


def test_launches_are_told_apart_by_their_place_and_known_by_name() -> None:
    launched = [
        ("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n", 0.5),
        ("void genericReformat::copyPackedKernel", 0.1),
        ("sm90_xmma_gemm_f16f16_f16f32_f32_tn_n", 0.25),
    ]
    profile = profile_of_launches(KernelLaunches(tuple(launched), busy_ms=0.6))
    assert [kernel.work for kernel in profile.kernels] == ["multiplying", "moving", "multiplying"]
    assert profile.kernels[0].computes_in == "fp16"
    assert len({kernel.name for kernel in profile.kernels}) == 3
    assert profile.total_ms == 0.85
    assert profile_from_json(profile_to_json(profile)) == profile
    assert profile.busy_ms == 0.6


def test_no_launch_is_no_profile() -> None:
    with pytest.raises(UnsupportedError, match="no kernel was recorded") as error:
        profile_of_launches(KernelLaunches())
    assert error.value.reason.stored_code == "no_kernels_recorded"
