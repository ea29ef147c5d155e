# SPDX-License-Identifier: Apache-2.0
"""podman with a storage of its own and a small image in it: made once, removed at the end."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pybench.launcher import Container, open_container
from tests.launcher.small_image import PROGRAMS, write_small_image

VARIABLE = "CONTAINERS_STORAGE_CONF"
EMPTY_TAR = bytes(10240)  # the layer of an image that holds nothing
STORAGE = """[storage]
driver = "{driver}"
graphroot = "{folder}/root"
runroot = "{run}"
"""


@pytest.fixture(scope="session")
def small_archive(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An OCI archive that can run workers, and its digest."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        pytest.skip(f"SKIPPED: the small image needs {', '.join(missing)}")
    return write_small_image(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def podman_storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Whatever podman holds on this machine stays out of the tests, and they out of it."""
    if shutil.which("podman") is None:
        pytest.skip("SKIPPED: podman is not installed")
    folder = tmp_path_factory.mktemp("podman")
    # podman's clean-up after a container refuses a runroot of more than 50 characters, and then podman waits for 20 s.
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="podman-", ignore_cleanup_errors=True) as run:
        patch.setenv(VARIABLE, str(folder / "storage.conf"))  # tests of another folder have their own
        try:
            choose_driver(folder, Path(run))
            yield folder
        finally:
            subprocess.run(["podman", "rmi", "--all", "--force"], capture_output=True)
            if os.getuid() != 0:
                subprocess.run(["podman", "unshare", "rm", "-rf", str(folder)], capture_output=True)
            for mounted in (folder / "overlay/root/overlay", folder / "memory/root/overlay", folder / "memory"):
                subprocess.run(["umount", "--lazy", str(mounted)], capture_output=True)  # podman mounts the first two


def choose_driver(folder: Path, run: Path) -> None:
    """Writes a configuration with which podman works below both folders; skips where there is none.

    overlay where it can be: vfs copies the whole image for every container, 167 MB. overlay cannot be on another
    overlay, as a container's own root is, but on a file system in memory. Each try has a folder: podman remembers the
    driver that it saw first in one, and refuses others.
    """
    for name, driver in (("overlay", "overlay"), ("memory", "overlay"), ("vfs", "vfs")):
        place = folder / name
        place.mkdir()
        if name == "memory":
            mount = ["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", str(place)]
            if subprocess.run(mount, capture_output=True).returncode != 0:
                continue
        (folder / "storage.conf").write_text(STORAGE.format(driver=driver, folder=place, run=run / name))
        tried = subprocess.run(["podman", "import", "--quiet", "-"], input=EMPTY_TAR, capture_output=True)
        if tried.returncode == 0:
            subprocess.run(["podman", "rmi", tried.stdout.decode().strip()], capture_output=True, check=True)
            return
    pytest.skip(f"SKIPPED: podman takes in no image here: {tried.stderr.decode().strip().splitlines()[-1][-300:]}")


@pytest.fixture(scope="session")
def container(small_archive: tuple[Path, str], podman_storage: Path) -> Container:
    """The small image in podman; skips where this machine runs no container at all."""
    opened = open_container(str(small_archive[0]), "podman", lambda text: None)
    command = [*opened.engine.program(), "run", "--rm", "--network", "none", "--ulimit", "nofile=1024:1024",
               "--ulimit", "nproc=1024:1024", "--entrypoint", "true", opened.reference]  # fmt: skip
    tried = subprocess.run(command, capture_output=True, text=True)
    if tried.returncode != 0:
        pytest.skip(f"SKIPPED: podman runs no container here: {tried.stderr.strip()[-300:]}")
    return opened
