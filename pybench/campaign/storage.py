# SPDX-License-Identifier: Apache-2.0
"""Files written whole or not at all, and what a disk refuses as one error with place and hint."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pybench.errors import UsageError

TEMPORARY_SUFFIX = ".tmp"
FULL = {
    errno.ENOSPC: "free some disk space, then run the same command again",
    errno.EDQUOT: "your quota is used up: free some space, then run the same command again",
}
"""Where there is no room: what to do."""
_READ_BYTES = 1 << 16  # at once: most files of a run are smaller, and a larger buffer costs more than it saves
_SURROGATE = re.compile("[\ud800-\udfff]")


def write_bytes(path: Path, content: bytes, *, is_lasting: bool = True, option: str = "--out") -> None:
    """Writes a file whole or not at all: temporary name in the same folder, fsync, rename, fsync of the folder.

    `is_lasting`: whether the file must survive a power cut. Without that there is no fsync, which takes milliseconds:
    for files that can be made again, and whose content is checked before it is used again.
    `option`: of the command line, which names another folder.
    """
    with prepared(path, content, is_lasting=is_lasting, option=option):
        pass


@contextlib.contextmanager
def prepared(path: Path, content: bytes, *, is_lasting: bool = True, option: str = "--out") -> Iterator[None]:
    """`write_bytes` in two steps: the content is on the disk before the block, and gets its name after it. Where the
    block raises, the file stays as it was."""
    temporary = temporary_name(path)
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            if is_lasting:
                os.fsync(file.fileno())
        yield
        os.replace(temporary, path)
        if is_lasting:
            sync(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):  # on a read-only file system it is not there and cannot be removed
            temporary.unlink()
        if isinstance(error, OSError):
            raise storage_error(error, path, option) from error
        raise


def create_bytes(path: Path, content: bytes, *, is_lasting: bool = True) -> bool:
    """Writes a file whole where there is none; False where there is one, which stays. Of several processes one wins:
    `link(2)` fails when the name exists, on NFS too. `is_lasting`: as in `write_bytes`."""
    temporary = temporary_name(path)
    try:
        temporary.write_bytes(content)
        if is_lasting:
            sync(temporary)
        os.link(temporary, path)
        if is_lasting:
            sync(path.parent)
    except FileExistsError:
        return temporary.samefile(path)  # NFS: the link was made, its answer lost, and the client asked again
    except OSError as error:
        raise storage_error(error, path) from error
    finally:
        with contextlib.suppress(OSError):  # on a file system that has become read-only it cannot be removed
            temporary.unlink()
    return True


def relative(path: Path, folder: Path) -> str:
    """`path` from a folder that it was made from; `Path.relative_to` takes 30 times as long."""
    return str(path).removeprefix(f"{folder}/")


def temporary_name(path: Path) -> Path:
    """A hidden name beside `path`. Random: runners in containers often have the same process number."""
    return path.with_name(f".{path.name}.{os.urandom(6).hex()}{TEMPORARY_SUFFIX}")


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of UTF-8 text."""
    write_bytes(path, text.encode())


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """`write_bytes` of `json_bytes`."""
    write_bytes(path, json_bytes(content))


def json_bytes(content: Mapping[str, Any]) -> bytes:
    """Indented JSON. Raises ValueError on NaN or infinity: a missing number is null.

    File names need not be UTF-8: what such a name holds is written as an escape, which reads back as the same name.
    """
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def sha256_of(path: str | Path) -> str:
    """64 hexadecimal digits, of a file's content."""
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while content := file.read(_READ_BYTES):
            digest.update(content)
    return digest.hexdigest()


def make_folder(path: Path, *, exist_ok: bool = False, option: str = "--out") -> None:
    """Makes a folder and those above it; `storage_error` where that cannot be. `option`: as for `write_bytes`."""
    try:
        path.mkdir(parents=True, exist_ok=exist_ok)
    except OSError as error:
        raise storage_error(error, path, option) from error


def sync(path: Path) -> None:
    """fsync of a file or a folder; of a folder, so that a rename in it survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def storage_error(error: OSError, path: Path, option: str = "--out") -> UsageError:
    """A full disk, a read-only folder or a missing permission as one error with place and hint."""
    hints = {
        **FULL,
        errno.EROFS: f"this file system is read-only: choose another folder with {option}",
        errno.EEXIST: f"it is a file: choose a folder with {option}",
        errno.ENOTDIR: f"it is in a file, which can have no folder: choose another place with {option}",
        errno.EACCES: f"no permission to write there: choose another folder with {option}",
    }
    return UsageError(f"cannot write {path}: {error.strerror}", hint=hints.get(error.errno or 0))
