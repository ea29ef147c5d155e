# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's TensorRT for the tier `tensorrt`: wheels that the user fetches, taken in only by their sha256.

Its licence lets nobody publish an image that holds them, and its packages on PyPI are stubs that download while they
are installed, so the hashes that uv.lock could have would be the stubs'. tensorrt.lock has the wheels' own: in pip's
format, so that uv holds each file to it.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from debian_root import BuildError

LOCK = Path(__file__).resolve().parent / "tensorrt.lock"
_WHEEL = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)-.+\.whl")
_HEADER = """# SPDX-License-Identifier: Apache-2.0
# NVIDIA's TensorRT wheels that the tier `tensorrt` takes, by sha256. Generated: `containers/build.py --tier tensorrt
# --tensorrt FOLDER --update-lock` locks the wheels of a folder, as `pip download` leaves them (containers/README.md).
"""


def check(folder: Path | None) -> list[Path]:
    """The wheels of `folder`, each of which the lock names with its hash. Raises BuildError for anything else."""
    wheels = _wheels(folder)
    locked = LOCK.read_text().splitlines() if LOCK.exists() else []
    for wheel in wheels:
        if _line(wheel) not in locked:
            raise BuildError(
                f"tensorrt.lock does not have {wheel.name} with this content (sha256 {_sha256(wheel)})",
                "fetch the file again; or, if it is the one that you want from now on, --update-lock",
            )
    missing = {line.split()[0] for line in locked if "==" in line} - {_line(wheel).split()[0] for wheel in wheels}
    if missing:
        raise BuildError(f"{folder} lacks {', '.join(sorted(missing))}, which tensorrt.lock has", _HOW)
    return wheels


def update_lock(folder: Path | None) -> None:
    """Lock the wheels of a folder, whatever they are."""
    LOCK.write_text(_HEADER + "".join(f"{_line(wheel)}\n" for wheel in _wheels(folder)))


def _wheels(folder: Path | None) -> list[Path]:
    if folder is None:
        raise BuildError("the tier tensorrt needs a folder with NVIDIA's wheels: --tensorrt FOLDER", _HOW)
    wheels = sorted(folder.glob("*.whl"))
    names = {match["name"] for wheel in wheels if (match := _WHEEL.fullmatch(wheel.name))}
    for part in ("libs", "bindings"):
        if not any(re.fullmatch(rf"tensorrt(_cu\d+)?_{part}", name) for name in names):
            raise BuildError(f"{folder} has no wheel of TensorRT's {part}", _HOW)
    return wheels


_HOW = (
    "where the internet is: pip download --only-binary :all: --no-deps --dest FOLDER "
    "--extra-index-url https://pypi.nvidia.com tensorrt-cu13 tensorrt-cu13-libs tensorrt-cu13-bindings"
)


def _line(wheel: Path) -> str:
    match = _WHEEL.fullmatch(wheel.name)
    if match is None:
        raise BuildError(f"{wheel.name} is not named as a wheel", _HOW)
    return f"{match['name'].replace('_', '-').lower()}=={match['version']} --hash=sha256:{_sha256(wheel)}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
