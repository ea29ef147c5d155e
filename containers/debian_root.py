# SPDX-License-Identifier: Apache-2.0
"""Make Debian root file systems with mmdebstrap, and run commands in one with a fixed environment.

It follows mmdebstrap(1), section SOURCE_DATE_EPOCH. Packages come from the mirrors that this machine's apt already
uses; what they resolved to is compared with debs.lock. It needs root, because it mounts and changes root.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SUITE = "bookworm"  # Debian 12: Python 3.11, and a glibc (2.36) no newer than that of most sites' hosts
_PASSED_ON = re.compile(r"(?i)(https?_proxy|no_proxy|UV_(INDEX|DEFAULT_INDEX|INDEX_URL)|PIP_INDEX_URL|GOPROXY|GOSUMDB)")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"

# Documentation and translations take a third of a small root; licences stay.
_LEFT_OUT = (
    "path-exclude=/usr/share/man/*",
    "path-exclude=/usr/share/info/*",
    "path-exclude=/usr/share/locale/*",
    "path-exclude=/usr/share/doc/*",
    "path-include=/usr/share/doc/*/copyright",
)
# The archive's own index, still there when this hook runs, knows each installed package's sha256.
_LIST_PACKAGES = """
dpkg-query --admindir="$1/var/lib/dpkg" -W -f '${{Package}}=${{Version}}\\n' |
  APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" xargs apt-cache show --no-all-versions > {listing}
"""


class BuildError(Exception):
    """The build cannot go on: what failed, and a hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Mirror:
    """Where Debian's packages come from."""

    main: str
    security: str

    def lines(self) -> list[str]:
        """The lines of a sources.list."""
        return [
            f"deb {self.main} {SUITE} main",
            f"deb {self.main} {SUITE}-updates main",
            f"deb {self.security} {SUITE}-security main",
        ]


DEBIAN = Mirror("http://deb.debian.org/debian", "http://deb.debian.org/debian-security")


def mirror_of_this_machine(apt: Path = Path("/etc/apt")) -> Mirror:
    """The mirrors named in this machine's apt sources; Debian's own where there is none."""
    sources = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    text = "\n".join(path.read_text(errors="replace") for path in sources if path.is_file())
    active = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    uris = [uri.rstrip("/") for uri in re.findall(r"https?://\S+", active)]
    return Mirror(
        next((uri for uri in uris if uri.endswith("/debian")), DEBIAN.main),
        next((uri for uri in uris if uri.endswith("/debian-security")), DEBIAN.security),
    )


@dataclass(frozen=True)
class Package:
    """One Debian package as installed."""

    name: str
    version: str
    architecture: str
    sha256: str


def bootstrap(packages: Sequence[str], variant: str, target: Path, mirror: Mirror, epoch_s: int, log: IO[str]) -> None:
    """Install `packages` into `target`: a tar or, without that ending, a folder; write `target`.packages beside it."""
    listing = Path(f"{target}.packages")
    command = [
        "mmdebstrap",
        "--mode=root",
        f"--variant={variant}",
        f"--include={','.join(packages)}",
        '--aptopt=APT::Install-Recommends "false"',
        *(f"--dpkgopt={line}" for line in _LEFT_OUT),
        *(['--aptopt=Acquire::Check-Valid-Until "false"'] if _accepts_old_indexes() else []),
        # Packages installed with the same hook: whoever made this root can say what is in it.
        f"--customize-hook={_LIST_PACKAGES.format(listing=shlex.quote(str(listing)))}",
        SUITE,
        str(target),
        *mirror.lines(),
    ]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": str(epoch_s)}
    run(command, log, environment | passed_on(), f"mmdebstrap could not make {target.name}")


def packages_in(listing: Path) -> list[Package]:
    """The packages that `bootstrap` listed, sorted by name."""
    found = set()
    for stanza in listing.read_text().split("\n\n"):
        fields = dict(re.findall(r"(?m)^(Package|Version|Architecture|SHA256): (.+)$", stanza))
        if len(fields) == 4:
            found.add(Package(fields["Package"], fields["Version"], fields["Architecture"], fields["SHA256"]))
    return sorted(found, key=lambda package: (package.name, package.version))


@dataclass(frozen=True)
class Chroot:
    """A root file system, folders of the host mounted into it, and the only variables that commands in it see."""

    root: Path
    mounts: Mapping[Path, str]
    variables: Mapping[str, str]
    log: IO[str]
    shuffled: frozenset[str] = frozenset()  # mounts whose folders list their entries in random order
    wrapper: tuple[str, ...] = ()  # a program of the host around each command, and what it tells them
    told: tuple[str, ...] = ()

    def run(self, command: Sequence[str], folder: str = "/", **variables: str) -> None:
        """Run one command in `folder` of the root; its output goes to the log."""
        environment = {**self.variables, **passed_on(), **variables}
        enter = f"cd {shlex.quote(folder)} && exec {shlex.join(command)}"
        inside = shlex.join(["env", "-i", *(f"{name}={value}" for name, value in environment.items())])
        told = " ".join(f'{name}="${name}"' for name in self.told)
        script = "\n".join(
            [
                "set -e",
                *(self._mount(source, target) for source, target in self.mounts.items()),
                f"mount -t proc proc {self._inside('/proc')}",
                f"mount --rbind /dev {self._inside('/dev')}",
                f"mount -t tmpfs tmpfs {self._inside('/tmp')}",
                f"cp --dereference /etc/resolv.conf {self._inside('/etc/resolv.conf')}",
                # A site's own certificate authority, for its mirrors.
                f"test ! -e {CERTIFICATES} || mount --bind {CERTIFICATES} {self._inside(CERTIFICATES)}",
                "hostname builder",
                "umask 022",
                f"exec chroot {self._inside('')} {inside} {told} sh -c {shlex.quote(enter)}",
            ]
        )
        private = [*self.wrapper, "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c", script]
        run(private, self.log, dict(os.environ), f"{' '.join(command[:3])} failed in the builder", shown=command)

    def _mount(self, source: Path, target: str) -> str:
        inside, outside = self._inside(target), shlex.quote(str(source))
        bind = "disorderfs --multi-user=yes --shuffle-dirents=yes" if target in self.shuffled else "mount --bind"
        return f"mkdir -p {outside} {inside}\n{bind} {outside} {inside}"

    def _inside(self, path: str) -> str:
        return shlex.quote(f"{self.root}{path}")


def run(
    command: Sequence[str],
    log: IO[str],
    environment: Mapping[str, str],
    failure: str,
    shown: Sequence[str] | None = None,
) -> None:
    """Run a command with its output in the log; raise BuildError with the log's last lines when it fails."""
    log.write(f"$ {shlex.join(shown or command)}\n")
    log.flush()
    start = log.tell()
    finished = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, check=False)
    if finished.returncode != 0:
        written = Path(log.name).read_bytes()[start:].decode(errors="replace").strip().splitlines()
        raise BuildError(f"{failure} (exit {finished.returncode})", "\n".join(["its last lines:", *written[-12:]]))


def passed_on() -> dict[str, str]:
    """Where the network is: the only settings of the caller that reach a build."""
    return {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}


def _accepts_old_indexes() -> bool:
    """Whether this machine's apt is told to accept indexes past their date, as a frozen mirror needs."""
    answer = subprocess.run(
        ["apt-config", "dump", "Acquire::Check-Valid-Until"], capture_output=True, text=True, check=False
    )
    return '"false"' in answer.stdout.lower()
