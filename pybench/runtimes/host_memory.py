# SPDX-License-Identifier: Apache-2.0
"""Memory of the host on a chosen NUMA node, by Linux's own calls: mbind(2) asks for it, move_pages(2) tells.

glibc has no functions for these calls and libnuma is not everywhere, so they are made by number. Every page is touched
before the memory is handed out: it lies where it will stay, and no fault is left to a copy. Memory that the CUDA driver
allocates cannot be asked for its node; whoever wants it page-locked registers memory from here.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from pybench.catalogue.causes import Cause
from pybench.errors import UnsupportedError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ONLINE = Path("/sys/devices/system/node/online")
MPOL_BIND = 2  # linux/mempolicy.h: these nodes only
# Numbers of mbind and move_pages: asm/unistd_64.h, and asm-generic/unistd.h for arm64.
CALLS = {"x86_64": (237, 279), "aarch64": (235, 239)}
MOST_NODES = 1024  # bits of the mask; a kernel has at most as many nodes


def numa_nodes() -> set[int]:
    """The nodes of this machine whose memory can be chosen; none where the kernel does not tell or take them."""
    try:
        text = ONLINE.read_text(encoding="ascii").strip()
    except OSError:
        return set()
    spans = [span.partition("-") for span in text.split(",") if span]
    nodes = {node for first, _, last in spans for node in range(int(first), int(last or first) + 1)}
    return nodes if platform.machine() in CALLS else set()


def on_node(size: int, node: int) -> NDArray[np.uint8]:
    """`size` bytes of zeros whose pages all lie on `node`.

    Raises UnsupportedError (`no_numa_node`) for a node that is not there, and where the kernel refuses or puts a page
    elsewhere.
    """
    if node not in numa_nodes():
        raise UnsupportedError(
            f"there is no NUMA node {node} here", code=Cause.NO_NUMA_NODE, hint="leave numa_node out"
        )
    import numpy as np  # a probe of this machine only asks for the nodes

    memory = np.frombuffer(mmap.mmap(-1, size), np.uint8)
    _bind(memory, node)
    memory[:: mmap.PAGESIZE] = 0
    elsewhere = nodes_of(memory) - {node}
    if elsewhere:
        raise _refused(node, f"pages are on {', '.join(map(str, sorted(elsewhere)))}")
    return memory


def nodes_of(memory: NDArray[np.uint8]) -> set[int]:
    """On which nodes the pages of memory lie; a negative number is the errno of a page that has no place yet."""
    begin, end = memory.ctypes.data, memory.ctypes.data + memory.nbytes
    addresses = range(begin - begin % mmap.PAGESIZE, end, mmap.PAGESIZE)
    pages = (ctypes.c_void_p * len(addresses))(*addresses)
    places = (ctypes.c_int * len(addresses))()
    _call(1, 0, ctypes.c_ulong(len(addresses)), pages, None, places, 0)
    return set(places)


def _bind(memory: NDArray[np.uint8], node: int) -> None:
    bits = 8 * ctypes.sizeof(ctypes.c_ulong)
    mask = (ctypes.c_ulong * (MOST_NODES // bits))()
    mask[node // bits] = 1 << node % bits
    try:
        _call(
            0,
            memory.ctypes.data_as(ctypes.c_void_p),
            ctypes.c_ulong(memory.nbytes),
            MPOL_BIND,
            mask,
            ctypes.c_ulong(MOST_NODES),
            0,
        )
    except OSError as error:
        raise _refused(node, str(error)) from error


def _call(which: int, *arguments: object) -> None:
    """One of `CALLS`. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(CALLS[platform.machine()][which], *arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _refused(node: int, why: str) -> UnsupportedError:
    what = f"memory of NUMA node {node} is not given to this process: {why}"
    return UnsupportedError(
        what, code=Cause.NO_NUMA_NODE, hint="leave numa_node out, or allow the node (numactl, cpuset)"
    )
