# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os

import pytest

from pybench.errors import UnsupportedError
from pybench.runtimes.device import VISIBLE, chosen, narrow

UUID = "GPU-de761324-3949-245c-727b-465127825891"


@pytest.mark.parametrize(
    ("device", "gpu_present", "expected"),
    [
        ("auto", False, "cpu"),
        ("auto", True, "cuda"),
        ("cpu", True, "cpu"),
        ("cuda", True, "cuda"),
        (UUID, True, "cuda"),
    ],
)
def test_the_device_is_what_the_case_asks_for(device: str, gpu_present: bool, expected: str) -> None:
    assert chosen(device, gpu_present, "torch") == expected


@pytest.mark.parametrize("device", ["cuda", UUID])
def test_a_gpu_that_is_not_there_is_never_replaced(device: str) -> None:
    with pytest.raises(UnsupportedError, match="sees no GPU") as caught:
        chosen(device, gpu_present=False, runtime="torch")
    assert caught.value.reason.stored_code == "no_gpu"


def test_a_uuid_is_the_only_gpu_that_frameworks_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VISIBLE, "1,2")
    narrow("auto")
    assert os.environ[VISIBLE] == "1,2"
    narrow(UUID)
    assert os.environ[VISIBLE] == UUID
