# SPDX-License-Identifier: Apache-2.0
"""GPUs are given by UUID; what the caller may not use is not given."""

from __future__ import annotations

from pathlib import Path

import pytest

from pybench.errors import PybenchError
from pybench.launcher.gpus import cdi_names, wanted_gpus

FIRST, SECOND = "GPU-11111111-aaaa-bbbb-cccc-000000000001", "GPU-22222222-aaaa-bbbb-cccc-000000000002"
INFORMATION = "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 138\nGPU UUID: \t {uuid}\nVideo BIOS: \t 96.00.61.00.01\n"


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    for address, uuid in (("0000:1b:00.0", SECOND), ("0000:0a:00.0", FIRST)):
        (tmp_path / address).mkdir()
        (tmp_path / address / "information").write_text(INFORMATION.format(uuid=uuid))
    return tmp_path


@pytest.mark.parametrize(
    ("visible", "given"),
    [
        (None, (FIRST, SECOND)),
        ("", ()),
        ("-1", ()),
        (SECOND, (SECOND,)),
        ("GPU-2222", (SECOND,)),
        (f"{SECOND}, {FIRST}", (FIRST, SECOND)),
        ("1", (FIRST, SECOND)),  # CUDA's numbers are not the bus's: the variable goes along instead
    ],
)
def test_what_cuda_may_see_is_what_a_container_gets(driver: Path, visible: str | None, given: tuple[str, ...]) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    assert wanted_gpus(environment, driver) == given


def test_without_a_driver_there_are_none(tmp_path: Path) -> None:
    assert wanted_gpus({}, tmp_path / "absent") == ()


def test_podman_is_given_gpus_by_their_names_in_the_cdi_description(tmp_path: Path) -> None:
    (tmp_path / "nvidia.yaml").write_text(f"kind: nvidia.com/gpu\ndevices:\n- name: {FIRST}\n- name: all\n")
    assert cdi_names((FIRST,), (tmp_path,)) == [f"nvidia.com/gpu={FIRST}"]
    with pytest.raises(PybenchError, match=f"cannot be given {SECOND}") as raised:
        cdi_names((FIRST, SECOND), (tmp_path, tmp_path / "absent"))
    assert "nvidia-ctk cdi generate" in str(raised.value.hint)
    assert cdi_names((), (tmp_path, tmp_path / "absent")) == []
