# SPDX-License-Identifier: Apache-2.0
"""Memory of the host on a NUMA node, asked of the kernel that these tests run on."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from pybench.errors import UnsupportedError
from pybench.runtimes import host_memory
from pybench.runtimes.host_memory import nodes_of, numa_nodes, on_node

HERE = sorted(numa_nodes())
NOT_ALLOWED = (errno.EPERM, errno.ENOSYS)  # what a sandbox says of mbind(2)

has_nodes = pytest.mark.skipif(not HERE, reason="this kernel tells no NUMA node, or takes none")


@has_nodes
@pytest.mark.parametrize("size", [1, 4096, 1_000_000])
def test_every_page_lies_on_the_node_that_was_asked_for(size: int) -> None:
    memory = given(size)
    assert (memory.nbytes, int(memory.sum())) == (size, 0)
    memory[:] = 7
    assert nodes_of(memory) == {HERE[-1]}


@has_nodes
def test_memory_whose_pages_lie_elsewhere_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    given(4096)
    monkeypatch.setattr(host_memory, "nodes_of", lambda memory: {HERE[-1], HERE[-1] + 1})
    with pytest.raises(UnsupportedError, match=f"pages are on {HERE[-1] + 1}\n") as caught:
        on_node(4096, HERE[-1])
    assert caught.value.reason.stored_code == "no_numa_node"


def given(size: int) -> Any:
    """Memory of the last node; skips where a sandbox forbids the call, and only there."""
    try:
        return on_node(size, HERE[-1])
    except UnsupportedError as error:
        if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in NOT_ALLOWED:
            raise
        pytest.skip(f"this process may not choose a node: {error.message}")


def test_a_node_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="no NUMA node 999") as caught:
        on_node(4096, 999)
    assert caught.value.reason.stored_code == "no_numa_node"


@pytest.mark.parametrize(("text", "nodes"), [("0\n", {0}), ("0-1,4\n", {0, 1, 4}), ("2,7-8", {2, 7, 8})])
def test_nodes_are_read_as_the_kernel_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, nodes: set[int]
) -> None:
    online = tmp_path / "online"
    online.write_text(text)
    monkeypatch.setattr(host_memory, "ONLINE", online)
    assert numa_nodes() == nodes
    monkeypatch.setattr(host_memory, "ONLINE", tmp_path / "absent")
    assert numa_nodes() == set()
