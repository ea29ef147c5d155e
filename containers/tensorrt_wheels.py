# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's TensorRT for the tier `tensorrt`: wheels that the user fetches, taken in only by their sha256.

Its licence lets nobody publish an image that holds them. Its packages on PyPI are stubs that download while they are
installed, so the hashes that uv.lock could have would be the stubs'. tensorrt.lock has the wheels' own: in pip's
format, so that uv holds each file to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import canonical_tar
from debian_root import BuildError

LOCK = Path(__file__).resolve().parent / "tensorrt.lock"
_WHEEL = re.compile(r"(?P<name>[A-Za-z0-9_.]+)-(?P<version>[^-]+)-.+\.whl")
_HEADER = """# SPDX-License-Identifier: Apache-2.0
# NVIDIA's TensorRT wheels that the tier `tensorrt` takes, by sha256. Generated: `containers/build.py --tier tensorrt
# --tensorrt FOLDER --update-lock` locks the wheels of a folder, as `pip download` leaves them (containers/README.md).
"""


def find(folder: Path | None) -> list[Path]:
    """The wheels of a folder, by their names. Raises BuildError where TensorRT is not among them."""
    if folder is None:
        raise BuildError("the tier tensorrt needs a folder with NVIDIA's wheels: --tensorrt FOLDER", _HOW)
    wheels = sorted(folder.glob("*.whl"))
    names = {match["name"] for wheel in wheels if (match := _WHEEL.fullmatch(wheel.name))}
    for part in ("libs", "bindings"):
        if not any(re.fullmatch(rf"tensorrt(_cu\d+)?_{part}", name) for name in names):
            raise BuildError(f"{folder} has no wheel of TensorRT's {part}", _HOW)
    return wheels


def lock_lines(wheels: Iterable[Path]) -> dict[Path, str]:
    """Each wheel's line in a lock that has it. Reads gigabytes to the end: once a build."""
    return {wheel: _line(wheel) for wheel in wheels}


def check(lines: Mapping[Path, str]) -> None:
    """Raises BuildError unless the lock has these wheels and no others."""
    locked = LOCK.read_text().splitlines() if LOCK.exists() else []
    for wheel, line in lines.items():
        if line not in locked:
            raise BuildError(
                f"tensorrt.lock does not have {wheel.name} with this content ({line.partition('--hash=')[2]})",
                "fetch the file again; or, if it is the one that you want from now on, --update-lock",
            )
    missing = {line.split()[0] for line in locked if "==" in line} - {line.split()[0] for line in lines.values()}
    if missing:
        raise BuildError(f"the folder of --tensorrt lacks {', '.join(sorted(missing))}, which tensorrt.lock has", _HOW)


def update_lock(lines: Mapping[Path, str]) -> None:
    """Lock these wheels, whatever they are."""
    LOCK.write_text(_HEADER + "".join(f"{line}\n" for line in lines.values()))


_HOW = (
    "where the internet is: pip download --only-binary :all: --no-deps --dest FOLDER "
    "--extra-index-url https://pypi.nvidia.com tensorrt-cu13 tensorrt-cu13-libs tensorrt-cu13-bindings"
)


def _line(wheel: Path) -> str:
    match = _WHEEL.fullmatch(wheel.name)
    if match is None:
        raise BuildError(f"{wheel.name} is not named as a wheel", _HOW)
    return (
        f"{match['name'].replace('_', '-').lower()}=={match['version']} --hash=sha256:{canonical_tar.sha256_of(wheel)}"
    )
