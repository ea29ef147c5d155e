# SPDX-License-Identifier: Apache-2.0
"""Command lines of podman, docker and Apptainer, and what each can hold.

Everything that a container is given is named: mounts, variables, GPUs, user. It has no network, no capabilities, a
read-only root and the host's name. System calls are not filtered. On kernels before 5.16 a filter slows what is
measured down (speculation stays off). Also, perf's energy counters require one of the calls that filters refuse.
"""

from __future__ import annotations

import csv
import io
import os
import resource
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pybench.errors import PybenchError, UsageError
from pybench.launcher.gpus import cdi_names
from pybench.launcher.images import Image, Kind

ANSWER_S = 60.0  # a question to an engine; taking in an image has no limit
OF_THE_IMAGE = 1000  # the user that the image has of its own, for callers that are root


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of this machine that a container sees in the same place."""

    path: Path
    is_writable: bool


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """One container: its name, what it may see, and the command line in it. `scratch`: a folder of its own here."""

    name: str
    scratch: Path
    mounts: Sequence[Mount]
    variables: Mapping[str, str]
    gpus: Sequence[str]
    words: Sequence[str]


class Engine(ABC):
    """A container engine. `failures`: exit statuses that say that a container never began."""

    name: str
    holds: frozenset[Kind]
    failures: frozenset[int]
    own_memory_counter = False

    @abstractmethod
    def hold(self, image: Image) -> str:
        """Takes an image in, once, however often it is asked; returns what `run` calls it. PybenchError on failure."""

    @abstractmethod
    def run(self, reference: str, request: ContainerRequest) -> list[str]:
        """The command line that runs a container until it ends, and removes it."""

    def kill(self, name: str) -> list[str] | None:
        """The command line that ends and removes a container; None where it ends with its process."""
        return [*self.program(), "rm", "--force", name]

    def client_environment(self) -> dict[str, str]:
        """The environment of the engine's own program, which containers do not see."""
        return dict(os.environ)

    def remarks(self) -> list[str]:
        """What the user should know of how it is set up here."""
        return []

    def version(self) -> str:
        """Its name and version, as a run remembers them."""
        return " ".join(self.ask("--version").split()[:3]).rstrip(",").replace(" version", "")

    def user(self) -> tuple[int, int]:
        """Who the container's process is: the caller, never root."""
        return (os.getuid(), os.getgid()) if os.getuid() != 0 else (OF_THE_IMAGE, OF_THE_IMAGE)

    def program(self) -> list[str]:
        """The engine's own command line, before any of its commands."""
        return [self.name]

    def ask(self, *words: str) -> str:
        """What the engine answers to a command. Raises PybenchError with its last line where it fails."""
        answer = self._answer(*words, limit_s=ANSWER_S)
        if answer.returncode != 0:
            raise self._error(f"{self.name} does not answer", answer)
        return answer.stdout.strip()

    def _answer(
        self, *words: str, limit_s: float | None, stdin: int = subprocess.DEVNULL, folder: str | None = None
    ) -> _Answer:
        try:
            return subprocess.run(
                [*self.program(), *words],
                stdin=stdin,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=limit_s,
                check=False,
                cwd=folder,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PybenchError(f"{self.name} does not answer: {error}") from error

    def _error(self, what: str, answer: _Answer) -> PybenchError:
        last = answer.stderr.strip().splitlines()[-1:] or [f"exit status {answer.returncode}"]
        return PybenchError(f"{what}: {last[0]}", hint=_hint(last[0], self.name))


_Answer = subprocess.CompletedProcess[str]


class _OciEngine(Engine):
    """What podman and docker have in common."""

    holds = frozenset[Kind]({"archive", "layout", "registry"})
    failures = frozenset({125, 126, 127})  # the engine's own; tini, or by tini the worker's program, cannot be started

    def run(self, reference: str, request: ContainerRequest) -> list[str]:
        user, group = self.user()
        shared_memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2  # as Linux has it by itself
        options = [
            "--rm", "--name", request.name, "--pull", "never", "--log-driver", "none",
            "--network", "none", "--uts", "host", "--read-only", "--cap-drop", "all",
            "--security-opt", "no-new-privileges", "--security-opt", "seccomp=unconfined",
            "--security-opt", "label=disable",  # SELinux would have the campaign's files relabelled
            "--user", f"{user}:{group}", "--shm-size", str(shared_memory_bytes),
            "--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777",
        ]  # fmt: skip
        for name, value in request.variables.items():
            options += ["--env", f"{name}={value}"]
        for mount in request.mounts:
            options += ["--mount", _mount_words(mount, "readonly")]
        # tini as process 1: it hands on signals, and with its child everything in the container ends.
        command = ["--entrypoint", "tini", reference, "--", *request.words]
        return [*self.program(), "run", *options, *self._more(request), *command]

    @abstractmethod
    def _more(self, request: ContainerRequest) -> list[str]:
        """Options that only this engine has."""

    def _is_held(self, name: str) -> bool:
        return self._answer("image", "inspect", name, limit_s=ANSWER_S).returncode == 0


class Podman(_OciEngine):
    name = "podman"

    def hold(self, image: Image) -> str:
        reference = image.location if image.kind == "registry" else str(image.config).removeprefix("sha256:")
        if self._is_held(reference):
            return reference
        pulled = self._pull(image, reference)
        if pulled.returncode != 0:
            raise self._error(f"podman cannot take in {image.location}", pulled)
        if not self._is_held(reference):
            raise PybenchError(
                f"podman took in {image.location} as {pulled.stdout.strip()}, not as {reference}",
                hint="the content of the image does not match its manifest",
            )
        return reference

    def _pull(self, image: Image, reference: str) -> _Answer:
        """A file or folder by a link of another name.

        Podman takes what follows a colon in a path for a tag, and names a layout's image by its path. That path then
        may contain neither capital letters nor spaces."""
        if image.kind == "registry":
            return self._answer("pull", "--quiet", reference, limit_s=None)
        transport, link = {"archive": "oci-archive", "layout": "oci"}[image.kind], f"pybench-{reference[:12]}"
        with tempfile.TemporaryDirectory(prefix="pybench-image-") as folder:
            (Path(folder) / link).symlink_to(image.location)
            return self._answer("pull", "--quiet", f"{transport}:{link}", limit_s=None, folder=folder)

    def remarks(self) -> list[str]:
        if self.ask("info", "--format", "{{.Store.GraphDriverName}}") != "vfs":
            return []
        copies = "podman's storage driver is vfs here, which copies the whole image for each run"
        return [
            f'{copies}: set driver = "overlay" in storage.conf (containers-storage.conf(5)), then `podman system reset`'
        ]

    def kill(self, name: str) -> list[str]:
        return [*self.program(), "rm", "--force", "--time", "0", "--ignore", name]

    def program(self) -> list[str]:
        words = ["podman"]
        if shutil.which("crun") is None and shutil.which("runc") is not None:
            words += ["--runtime", "runc"]
        if not Path("/run/systemd/system").exists():  # virtual machines, batch jobs, containers
            words += ["--cgroup-manager", "cgroupfs", "--events-backend", "file"]
        return words

    def _more(self, request: ContainerRequest) -> list[str]:
        words = ["--read-only-tmpfs=false", "--http-proxy=false", *_limits()]
        if os.getuid() != 0:
            words += ["--userns", "keep-id"]
        for name in cdi_names(request.gpus):
            words += ["--device", name]
        return words


class Docker(_OciEngine):
    name = "docker"

    def hold(self, image: Image) -> str:
        if image.kind == "registry":
            if not self._is_held(image.location):
                pulled = self._answer("pull", "--quiet", image.location, limit_s=None)
                if pulled.returncode != 0:
                    raise self._error(f"docker cannot pull {image.location}", pulled)
            return image.location
        # Docker's older image store knows an image by its configuration's digest, the newer by its manifest's.
        names = [name for name in (image.config, image.digest) if name is not None]
        held = next((name for name in names if self._is_held(name)), None)
        if held is not None:
            return held
        self._load(image)
        held = next((name for name in names if self._is_held(name)), None)
        if held is None:
            raise PybenchError(f"docker loaded {image.location}, but lists another digest", hint=_USE_SKOPEO)
        return held

    def _load(self, image: Image) -> None:
        if image.kind == "layout":
            raise UsageError(f"docker loads archives, not the folder {image.location}", hint=_USE_SKOPEO)
        with open(image.location, "rb") as archive:
            loaded = self._answer("load", "--quiet", limit_s=None, stdin=archive.fileno())
        if loaded.returncode != 0:
            raise self._error(f"docker cannot load {image.location}", loaded)

    def _more(self, request: ContainerRequest) -> list[str]:
        return ["--gpus", f'"device={",".join(request.gpus)}"'] if request.gpus else []


class Apptainer(Engine):
    """Apptainer, or SingularityCE, which has the same options."""

    holds = frozenset[Kind]({"sif", "registry"})
    failures = frozenset({126, 127, 255})  # by `env` the worker's program cannot be started; Apptainer's own
    own_memory_counter = True  # its containers stay in the caller's cgroup

    def __init__(self, name: str = "apptainer") -> None:
        self.name = name

    def hold(self, image: Image) -> str:
        if os.getuid() == 0:
            raise UsageError(f"{self.name} would run as root", hint="run it as an ordinary user, or use podman")
        return f"docker://{image.location}" if image.kind == "registry" else image.location

    def run(self, reference: str, request: ContainerRequest) -> list[str]:
        (request.scratch / "work").mkdir(exist_ok=True)
        options = ["--containall", "--no-home", "--cleanenv", "--pwd", "/tmp"]
        # /tmp in memory would be limited to 64 MiB, whatever the machine has
        options += ["--workdir", str(request.scratch / "work")]
        for mount in request.mounts:
            options += ["--mount", _mount_words(mount, "ro")]
        if request.gpus:
            options.append("--nv")
        # Not --env: a comma would end a value there, HOME may not be set, and it counts on scripts in the image.
        variables = [f"{name}={value}" for name, value in request.variables.items()]
        return [self.name, "--silent", "exec", *options, reference, "env", "HOME=/tmp", *variables, *request.words]

    def kill(self, name: str) -> list[str] | None:
        return None

    def client_environment(self) -> dict[str, str]:
        """Its own variables can mount and set things: what only says where it stores is kept, the rest left out."""
        return {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("APPTAINER", "SINGULARITY"))
            or name.endswith(("_CACHEDIR", "_TMPDIR", "_CONFIGDIR"))
        }


ENGINES: Mapping[str, type[Engine]] = {"podman": Podman, "docker": Docker, "apptainer": Apptainer}
_USE_SKOPEO = "podman takes it as it is; for docker: skopeo copy oci-archive:FILE docker-daemon:pybench:NAME"


def choose_engine(image: Image, asked: str | None) -> Engine:
    """The engine asked for, or the first on PATH that can hold the image. Raises UsageError where there is none."""
    if asked is not None:
        engine = named_engine(asked)
        if image.kind not in engine.holds:
            able = " or ".join(name for name in ENGINES if image.kind in named_engine(name).holds)
            raise UsageError(
                f"{asked} cannot run {image.location}, which is {_WORDS[image.kind]}",
                hint=f"{able} can; `make container` makes both an OCI archive and a SIF",
            )
        require_installed(engine)
        return engine
    engines = [engine for engine in map(named_engine, (*ENGINES, "singularity")) if image.kind in engine.holds]
    found = next((engine for engine in engines if shutil.which(engine.name) is not None), None)
    if found is None:
        names = ", ".join(engine.name for engine in engines)
        raise UsageError(
            f"this machine cannot run {_WORDS[image.kind]}: none of {names} is installed",
            hint=_INSTALL[engines[0].name],
        )
    return found


def named_engine(name: str) -> Engine:
    """Raises UsageError for a name that no engine has."""
    if name == "singularity":
        return Apptainer("singularity")
    if name not in ENGINES:
        raise UsageError(f"--engine {name}: unknown engine", hint=f"one of {', '.join(ENGINES)}, singularity")
    return ENGINES[name]()


def require_installed(engine: Engine) -> None:
    """Raises UsageError where the engine's program is not on PATH."""
    if shutil.which(engine.name) is None:
        raise UsageError(f"{engine.name} is not installed", hint=_INSTALL.get(engine.name, f"install {engine.name}"))


_WORDS: Mapping[Kind, str] = {
    "archive": "an OCI archive",
    "layout": "an OCI layout",
    "sif": "a SIF",
    "registry": "an image in a registry",
}
_INSTALL = {
    "podman": "sudo apt-get install --no-install-recommends podman runc (or use the SIF with apptainer)",
    "apptainer": "install Apptainer (https://apptainer.org), or use the OCI archive with podman",
}


def _mount_words(mount: Mount, read_only: str) -> str:
    """One --mount: comma-separated, quoted as CSV, which all three engines read."""
    fields = ["type=bind", f"src={mount.path}", f"dst={mount.path}", *([] if mount.is_writable else [read_only])]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def _limits() -> list[str]:
    """This process's own limits. podman's defaults are higher than what it may set where CAP_SYS_RESOURCE is missing,
    and it lowers its own number of processes to the kernel's pid_max."""
    most_processes = int(Path("/proc/sys/kernel/pid_max").read_text())
    words = []
    for name, number, most in (
        ("nofile", resource.RLIMIT_NOFILE, 1 << 20),
        ("nproc", resource.RLIMIT_NPROC, most_processes),
    ):
        soft, hard = (
            most if value == resource.RLIM_INFINITY else min(value, most) for value in resource.getrlimit(number)
        )
        words += ["--ulimit", f"{name}={soft}:{hard}"]
    return words


def _hint(message: str, engine: str) -> str:
    """What to do about the commonest failures of an engine."""
    low = message.lower()
    found = next((hint for words, hint in _HINTS.items() if any(word in low for word in words)), _CHECK)
    return found.format(engine=engine)


_CHECK = "check {engine} with `{engine} info`"
_HINTS = {  # the first whose words a message has
    ("no space left", "disk quota"): "free some space where {engine} keeps its images, then run the same command again",
    ("permission denied", "cannot connect"): "check that you may use {engine}: `{engine} info` shows details",
    ("unauthorized", "authentication required", "denied"): "log in to the registry with `{engine} login HOST`",
    ("manifest unknown", "name unknown"): "the registry has no such image: check its name and its digest",
    ("server gave http response",): "the registry has no TLS: allow that for it in the settings of {engine}, or "
    "fetch the image beforehand, and give its file",
    ("connection refused", "timeout", "no such host", "i/o", "dial tcp"): "does the registry answer? fetch the image "
    "beforehand, and give its file",
}
