# SPDX-License-Identifier: Apache-2.0
"""Workers in containers of one image, each in one of its own.

The two pipes to a worker are FIFOs in a folder that is mounted into its container, since not every engine hands
descriptors on. Paths mean the same inside as outside, so requests and logs need no translation.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pybench.errors import InputError, UsageError
from pybench.launcher.engines import ANSWER_S, ContainerRequest, Engine, Mount, choose_engine
from pybench.launcher.gpus import PASSED_ON, wanted_gpus
from pybench.launcher.images import Image, look_into
from pybench.launcher.launch import Exit, FileAccess, Launched, Output, signal_name, worker_words
from pybench.onnx_file.facts import files_beside

# What the worker stores of where it ran (pybench.worker.environment), and where boards are locked (board_claim).
IMAGE_DIGEST, ENGINE_VERSION, BOARD_STATE = "PYBENCH_IMAGE_DIGEST", "PYBENCH_CONTAINER_ENGINE", "PYBENCH_BOARD_STATE"
DEFAULT_BOARD_STATE = "/run/pybench"
REMOVAL_PAUSES_S = (0.5, 2.0)  # between attempts to remove a container
GONE = b"no such container"  # what engines say of one that is removed, or never was
_SHELL_SIGNALS = range(129, 193)  # 128 + a signal's number, as tini and Apptainer report it


def open_container(given: str, engine: str | None, tell: Callable[[str], None]) -> Container:
    """The image that `--container` or a plan's environment names: looked into, taken in, ready to start workers in.

    `given`: see `look_into`. `engine`: its name, or None for the first that can run the image.

    Raises UsageError or PybenchError, each with what to do about it.
    """
    image = look_into(given)
    chosen = choose_engine(image, engine)
    tell(f"{chosen.name} runs {image.location}, {image.digest}")
    for remark in chosen.remarks():
        tell(f"note: {remark}")
    return Container(chosen, image, chosen.hold(image), chosen.version(), _stamp(image))


@dataclass(frozen=True, slots=True)
class Container:
    """Starts workers in containers.

    reference: what the engine calls the image
    stamp: of a SIF's file when its digest was computed; None for other images
    """

    engine: Engine
    image: Image
    reference: str
    engine_version: str
    stamp: tuple[int, ...] | None

    def start(
        self, arguments: Sequence[str], access: FileAccess, stdout: Output, stderr: Output, *, own_session: bool
    ) -> Launched:
        """Raises UsageError where the image's file has changed since it was looked into, and where the container's user
        may not read what it is given."""
        if _stamp(self.image) != self.stamp:
            raise UsageError(f"{self.image.location} has changed while it was in use", hint="run the command again")
        scratch = Path(tempfile.mkdtemp(prefix="pybench-worker-"))
        request = self._request(arguments, access, scratch)
        report = lifeline = -1
        try:
            _refuse_hidden(self.engine.user(), access, request.mounts)
            for name in ("report", "lifeline"):
                os.mkfifo(scratch / name, 0o600)
            _give(self.engine.user(), [scratch, *scratch.iterdir()])
            for folder in access.writes:
                _give(self.engine.user(), [folder, *folder.iterdir()])
            report = os.open(scratch / "report", os.O_RDONLY | os.O_NONBLOCK)
            lifeline = os.open(scratch / "lifeline", os.O_RDWR)  # with O_WRONLY it would wait for a reader
            process = subprocess.Popen(
                self.engine.run(self.reference, request),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=self.engine.client_environment(),
                start_new_session=own_session,
            )
        except BaseException:
            for descriptor in (report, lifeline):
                if descriptor >= 0:
                    os.close(descriptor)
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        return _Contained(process, report, lifeline, own_session, self.engine, request)

    def run_script(self, script: Path, arguments: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[bytes]:
        """Runs a file of this machine by the image's Python, and waits for its end. Raises InputError where it takes
        longer than `limit_s`."""
        with tempfile.TemporaryDirectory(prefix="pybench-script-") as folder:
            scratch = Path(folder)
            words = ["python", str(script), *arguments]
            request = ContainerRequest(scratch.name, scratch, [Mount(script, False)], {}, (), words)
            try:
                return subprocess.run(
                    self.engine.run(self.reference, request),
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    timeout=limit_s,
                    env=self.engine.client_environment(),
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                if (command := self.engine.kill(request.name)) is not None:
                    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
                raise InputError(f"{self.image.location} does not answer within {limit_s:.0f} s") from error

    def _request(self, arguments: Sequence[str], access: FileAccess, scratch: Path) -> ContainerRequest:
        gpus = wanted_gpus(os.environ)
        boards = Path(os.environ.get(BOARD_STATE) or DEFAULT_BOARD_STATE)  # as pybench.measure.board.claim reads it
        reads = [Mount(path, False) for path in (*access.reads, *_weights_of(access.onnx))]
        writes = [Mount(path, True) for path in (*access.writes, scratch)]
        writes += [Mount(boards, True)] if gpus and boards.is_dir() else []
        variables = {name: os.environ[name] for name in (*PASSED_ON, BOARD_STATE) if name in os.environ}
        variables |= {IMAGE_DIGEST: self.image.digest, ENGINE_VERSION: self.engine_version}
        words = [*_cpus(), "python", *worker_words(scratch / "report", scratch / "lifeline", arguments)]
        return ContainerRequest(scratch.name, scratch, [*reads, *writes], variables, gpus, words)


class _Contained(Launched):
    def __init__(
        self,
        process: subprocess.Popen[bytes],
        report: int,
        lifeline: int,
        own_session: bool,
        engine: Engine,
        request: ContainerRequest,
    ) -> None:
        super().__init__(process, report, lifeline, own_session)
        self.own_memory_counter = engine.own_memory_counter
        self._engine = engine
        self._request = request

    def kill(self) -> None:
        """Cutting the lifeline kills the worker wherever it is, and with it the container; then the engine is told."""
        self.cut_lifeline()
        if self._ended_by_itself():
            return
        if self._engine.kill(self._request.name) is None:
            self._signal(signal.SIGKILL)
        else:
            self._remove()

    def _remove(self, *, is_first: bool = False) -> bool:
        """Whether the engine says that it has no such container any more; True for an engine that keeps none.
        `is_first`: a container that the engine does not know may still be in the making."""
        command = self._engine.kill(self._request.name)
        if command is None:
            return True
        with contextlib.suppress(subprocess.TimeoutExpired):
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_S, check=False)
            return done.returncode == 0 or (GONE in done.stderr.lower() and not is_first)
        return False

    def _ended_by_itself(self) -> bool:
        """Whether the engine's program has ended, which it does after its container, and was not killed before."""
        if self.process.returncode is not None:
            return self.process.returncode >= 0
        ended = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return ended is not None and ended.si_code == os.CLD_EXITED

    def exit(self) -> Exit:
        code = self.process.returncode
        if code < 0 or code in _SHELL_SIGNALS:
            return Exit(None, signal_name(-code if code < 0 else code - 128))
        if code in self._engine.failures:
            return Exit(code, None, f"{self._engine.name} could not run the image (exit status {code})")
        return Exit(code, None)

    def end(self) -> None:
        """An engine's program that ends early, or that fails to remove its container, leaves it behind: it is asked
        again, as its own removal may be under way."""
        super().end()
        is_gone = self.process.returncode == 0 or self._remove(is_first=True)
        for pause_s in REMOVAL_PAUSES_S:
            if is_gone:
                break
            time.sleep(pause_s)
            is_gone = self._remove()
        shutil.rmtree(self._request.scratch, ignore_errors=True)


def _give(user: tuple[int, int], paths: Sequence[Path]) -> None:
    """A caller that is root lets the container's user have what it has to write."""
    if os.getuid() == 0:
        for path in paths:
            os.chown(path, *user, follow_symlinks=False)


def _refuse_hidden(user: tuple[int, int], access: FileAccess, mounts: Sequence[Mount]) -> None:
    """Raises UsageError for what a caller that is root may read, and the container's user may not. What is above a
    mount does not matter: engines make these folders anew."""
    if os.getuid() != 0:
        return
    reads = [mount.path for mount in mounts if not mount.is_writable]
    above = [folder for path in access.writes for folder in path.parents if any(map(folder.is_relative_to, reads))]
    for path in (*reads, *above):
        if path.exists() and not _may_read(user, path):
            raise UsageError(
                f"user {user[0]}, who runs root's containers, may not read {path}",
                hint=f"`chmod -R o+rX '{path}'` lets others read it, and `umask 022` what root makes from then on; "
                "or run pybench as an ordinary user",
            )


def _may_read(user: tuple[int, int], path: Path) -> bool:
    status = path.stat()
    shift = 6 if status.st_uid == user[0] else 3 if status.st_gid == user[1] else 0
    needed = 0o5 if stat.S_ISDIR(status.st_mode) else 0o4
    return status.st_mode >> shift & needed == needed


def _weights_of(onnx: Path | None) -> list[Path]:
    """The files in which an ONNX file has its weights; none of a file that is something else."""
    try:
        return [] if onnx is None else files_beside(onnx)
    except InputError:
        return []


def _stamp(image: Image) -> tuple[int, ...] | None:
    """What changes when a SIF's file does. The other kinds lie in an engine's storage by their digests."""
    if image.kind != "sif":
        return None
    status = Path(image.location).stat()
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _cpus() -> list[str]:
    """The CPUs that a batch system or taskset allowed this process: an engine's cgroup would forget them."""
    allowed = os.sched_getaffinity(0)
    return (
        ["taskset", "--cpu-list", ",".join(map(str, sorted(allowed)))] if len(allowed) < (os.cpu_count() or 0) else []
    )
