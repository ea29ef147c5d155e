# SPDX-License-Identifier: Apache-2.0
"""Which NVIDIA GPUs a container is given, by UUID, and where their CDI description lies.

UUIDs come from the driver's files in /proc, so that no library has to be loaded. A caller's CUDA_VISIBLE_DEVICES is
respected: UUIDs in it choose; numbers count in CUDA's own order, which is not known here, so all are given and the
variable goes along.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pybench.errors import PybenchError

DRIVER = Path("/proc/driver/nvidia/gpus")
CDI_FOLDERS = (Path("/etc/cdi"), Path("/var/run/cdi"))
PASSED_ON = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
_UUID = re.compile(r"GPU UUID:\s*(GPU-[0-9a-f-]+)")


def wanted_gpus(environment: Mapping[str, str], driver: Path = DRIVER) -> tuple[str, ...]:
    """UUIDs of the GPUs to give, in the order of the PCI bus; none where there is no driver."""
    files = sorted(driver.glob("*/information"))
    there = [found[1] for file in files if (found := _UUID.search(file.read_text(errors="replace")))]
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return tuple(there)
    words = [word.strip() for word in chosen.split(",") if word.strip()]
    if not words or words[0] == "-1":
        return ()
    if all(word.startswith("GPU-") for word in words):
        return tuple(uuid for uuid in there if any(uuid.startswith(word) for word in words))
    return tuple(there)


def cdi_names(uuids: Sequence[str], folders: Sequence[Path] = CDI_FOLDERS) -> list[str]:
    """The names of these GPUs in this machine's CDI description. Raises PybenchError where it does not name them."""
    files = [file for folder in folders for file in sorted(folder.glob("*")) if file.suffix in (".yaml", ".json")]
    described = "\n".join(file.read_text(errors="replace") for file in files)
    missing = [uuid for uuid in uuids if uuid not in described]
    if missing:
        raise PybenchError(
            f"podman cannot be given {', '.join(missing)}: no CDI description in {folders[0]} or {folders[1]} names it",
            hint="sudo nvidia-ctk cdi generate --device-name-strategy=uuid --output=/etc/cdi/nvidia.yaml",
        )
    return [f"nvidia.com/gpu={uuid}" for uuid in uuids]
