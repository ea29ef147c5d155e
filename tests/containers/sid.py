# SPDX-License-Identifier: Apache-2.0
"""A root of Debian unstable with a real Apptainer, which Debian 12 does not have, and programs in it as a plain user.

pivot_root in a mount namespace of its own: Apptainer sets mount propagation, which a plain chroot refuses. FUSE has a
device node of its own, since the machine's may be root's alone.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path

USER = 1234
PACKAGES = "apptainer,squashfuse,fuse2fs,ca-certificates,mount,procps,python3-minimal,libpython3-stdlib"
ENTER = """
set -e
root={root}
mount --make-rprivate /
mount --bind $root $root
mkdir -p $root/old
{binds}
mount -t proc proc $root/proc
mount --rbind /dev $root/dev
mount --rbind /sys $root/sys
rm -f $root/fuse
mknod -m 666 $root/fuse c 10 229
mount --bind $root/fuse $root/dev/fuse
touch $root/etc/hosts $root/etc/localtime
cd $root
pivot_root . old
cd /
umount -l /old
exec setpriv --reuid {user} --regid {user} --clear-groups env -i HOME=/home/user USER=user PATH=/usr/bin:/bin \
  PYTHONDONTWRITEBYTECODE=1 {command}
"""


def make_root(root: Path, mirror: str) -> None:
    """Installs it from `mirror`; half a minute and 300 MB."""
    frozen = 'Acquire::Check-Valid-Until "false"'
    command = ["mmdebstrap", "--quiet", f"--aptopt={frozen}", '--aptopt=APT::Install-Recommends "false"',
               "--variant=apt", f"--include={PACKAGES}", "sid", str(root), mirror]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    with (root / "etc/passwd").open("a") as users:
        users.write(f"user:x:{USER}:{USER}::/home/user:/bin/sh\n")
    (root / "home/user").mkdir()
    subprocess.run(["chown", f"{USER}:{USER}", str(root / "home/user")], check=True)


def run_in(root: Path, command: list[str], binds: Mapping[Path, str]) -> subprocess.CompletedProcess[str]:
    """Runs a command there as a plain user; everything that it started ends with it."""
    lines = [
        f"mkdir -p $root{place}\nmount --bind {shlex.quote(str(path))} $root{place}" for path, place in binds.items()
    ]
    script = ENTER.format(root=shlex.quote(str(root)), binds="\n".join(lines), user=USER, command=shlex.join(command))
    enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
    return subprocess.run(enter, capture_output=True, text=True)
