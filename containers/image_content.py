# SPDX-License-Identifier: Apache-2.0
"""What the image holds beside Debian's files and /opt/pybench: user, environment, start scripts, mount points.

The `.singularity.d` files follow what Apptainer makes of an OCI image (its base_environment.go and action scripts);
without env/99-base.sh the driver's libraries that `--nv` mounts are not found. No file here names the building
machine: host name, resolver and package mirror are left to whoever runs the image.
"""

from __future__ import annotations

import json

import canonical_tar
from canonical_tar import Members

PREFIX = "/opt/pybench"
USER_ID = 1000
ENVIRONMENT = {
    "PATH": f"{PREFIX}/.venv/bin:{PREFIX}/bin:/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    # The root is read-only and the user may be any number: what must be written goes to the one writable folder.
    "HOME": "/tmp",
    "USER": "pybench",
    "LOGNAME": "pybench",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",  # Apptainer mounts the caller's home: its ~/.local must not enter a measurement
    "PYBENCH_IMAGE": "1",
    # What NVIDIA's container toolkit mounts: the driver's compute libraries and NVML, for every GPU it is given.
    "NVIDIA_VISIBLE_DEVICES": "all",
    "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
}
ENTRYPOINT = ("/usr/bin/tini", "--", "pybench")

_HOST_FILES = {"etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/machine-id"}
# Without apt in the image its settings and lists only tell which mirror was used; logs and old copies tell the time.
_LEFT_OUT = ("dev/", "proc/", "sys/", "run/", "tmp/", "etc/apt/", "var/cache/", "var/lib/apt/", "var/log/")
_MOUNT_POINTS = ("dev", "proc", "sys", "run", "home", "root", "mnt", "results", "data", "scratch")


def keep(name: str) -> bool:
    """Whether a file of the Debian root belongs into the image."""
    return name not in _HOST_FILES and not f"{name}/".startswith(_LEFT_OUT) and not name.endswith((".dpkg-old", "-old"))


def own_files(passwd: str, group: str, tier: str) -> Members:
    """The files that pybench adds to Debian's, given Debian's own user and group tables."""
    members: Members = {}
    for name in _MOUNT_POINTS:
        members |= canonical_tar.directory(name)
    for name in ("tmp", "var/tmp"):
        members |= canonical_tar.directory(name, 0o1777)
    for name in ("var/cache", "var/log"):
        members |= canonical_tar.directory(name)
    for name in sorted(_HOST_FILES):
        members |= canonical_tar.file(name, "")
    members |= canonical_tar.file("etc/passwd", f"{passwd}pybench:x:{USER_ID}:{USER_ID}::/tmp:/usr/sbin/nologin\n")
    members |= canonical_tar.file("etc/group", f"{group}pybench:x:{USER_ID}:\n")
    return members | _singularity(tier)


def labels(tier: str) -> dict[str, str]:
    """The image's labels; no version of the source, whose commit would change the digest of an unchanged image."""
    return {
        "org.opencontainers.image.title": "pybench",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "pybench.tier": tier,
    }


def inspect_metadata(tier: str) -> str:
    """What `apptainer inspect` shows."""
    attributes = {
        "labels": labels(tier),
        "runscript": _runscript(),
        "environment": {"10-docker2singularity.sh": _env()},
    }
    return json.dumps({"data": {"attributes": attributes}, "type": "container"}, sort_keys=True)


def _singularity(tier: str) -> Members:
    folder = ".singularity.d"
    libraries = f'export LD_LIBRARY_PATH="${{LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}}/{folder}/libs"\n'
    return {
        **canonical_tar.directory(folder),
        **canonical_tar.directory(f"{folder}/env"),
        **canonical_tar.directory(f"{folder}/libs"),
        **canonical_tar.file(f"{folder}/env/10-docker2singularity.sh", _env(), 0o755),
        **canonical_tar.file(f"{folder}/env/99-base.sh", f"#!/bin/sh\n{libraries}", 0o755),
        **canonical_tar.file(f"{folder}/labels.json", json.dumps(labels(tier), sort_keys=True)),
        **canonical_tar.file(f"{folder}/runscript", _runscript(), 0o755),
    }


def _runscript() -> str:
    return '#!/bin/sh\nexec pybench "$@"\n'


def _env() -> str:
    # PATH is set whatever it was; the rest only where the caller left it unset, as Apptainer does for OCI images.
    lines = [
        f'export {name}="{value}"' if name == "PATH" else f'export {name}="${{{name}:-"{value}"}}"'
        for name, value in sorted(ENVIRONMENT.items())
    ]
    return "\n".join(["#!/bin/sh", *lines, ""])
