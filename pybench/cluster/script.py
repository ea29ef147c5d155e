# SPDX-License-Identifier: Apache-2.0
"""The sbatch scripts of a submission as text: arrays of shards, the artefacts before them, the check after them.

They are meant to be read, and to be submitted by hand where pybench cannot. Facts behind them, each tried on Slurm
22.05, are in docs/decisions/025-slurm.md; the reasons that matter for a line stand beside it in the script itself.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pybench import __version__
from pybench.cluster.site import SiteImage, SlurmSite
from pybench.errors import EXIT_CHECKPOINTED

LOGS = "logs"
LONGEST_STOP_S = 60  # between the second request to stop and the end of the time that `checkpoint_s` leaves


@dataclass(frozen=True, slots=True)
class SubmissionWork:
    """What a submission does.

    campaign: its directory
    name: of the jobs
    folder: the submission's own, with its logs
    shards: how many jobs share the runs
    arguments: of every `pybench run`
    planned: a digest of the runs that the plan has
    """

    campaign: Path
    name: str
    folder: Path
    shards: int
    arguments: tuple[str, ...] = ()
    planned: str = ""

    @property
    def logs(self) -> Path:
        return self.folder / LOGS


@dataclass(frozen=True, slots=True)
class Chunk:
    """One array: Slurm bounds the index of a task, so task i of chunk n is shard i + (n - 1) * `array_max`."""

    number: int
    offset: int
    tasks: tuple[int, ...]

    def log(self, task: int | str) -> str:
        """The log of a task; `%a` stands for its index in a script."""
        return f"shards-{self.number}-{task}.out"


def chunks_of(shards: Sequence[int], array_max: int) -> list[Chunk]:
    """The shards as arrays whose indices stay within 1 and `array_max`, whatever else is asked for later."""
    found: dict[int, list[int]] = {}
    for shard in sorted(shards):
        found.setdefault((shard - 1) // array_max, []).append((shard - 1) % array_max + 1)
    return [Chunk(number + 1, number * array_max, tuple(tasks)) for number, tasks in found.items()]


def ranges(numbers: Sequence[int]) -> str:
    """`1-3,7` of 1, 2, 3, 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ",".join("-".join(str(end) for end in part) for part in parts)


def shards_script(work: SubmissionWork, chunk: Chunk, site: SlurmSite) -> str:
    """Each task runs the blocks of one shard, all of them on its node."""
    throttle = f"%{site.job.throttle}" if site.job.throttle else ""
    shard = "$SLURM_ARRAY_TASK_ID" if not chunk.offset else f"$((SLURM_ARRAY_TASK_ID + {chunk.offset}))"
    directives = [
        ("job-name", f"pb-{work.name}"),
        ("array", f"{ranges(chunk.tasks)}{throttle}"),
        ("output", f"{_pattern(work.logs)}/{chunk.log('%a')}"),
        *_resources(site),
    ]
    what = f"shards {ranges([task + chunk.offset for task in chunk.tasks])} of {work.shards}"
    task = _task(site, f'--shard "{shard}/{work.shards}" --whole-blocks', work)
    return _script(directives, f"{what} of {work.name}", task)


def artefacts_script(work: SubmissionWork, site: SlurmSite, makers: int) -> str:
    """Makes what the shards need, once, so that no shard waits for another that makes it. `makers`: so many tasks share
    the making, each on its node."""
    array, log = ([("array", f"1-{makers}")], "artefacts-%a.out") if makers > 1 else ([], "artefacts.out")
    directives = [
        ("job-name", f"pb-{work.name}-artefacts"),
        *array,
        ("output", f"{_pattern(work.logs)}/{log}"),
        *_resources(site),
    ]
    return _script(directives, f"what the runs of {work.name} need", _task(site, "--artefacts-only", work))


def check_script(work: SubmissionWork, site: SlurmSite) -> str:
    """Closes what jobs left open, checks, reports; ends as the check did."""
    check = site.check
    directives = [
        ("job-name", f"pb-{work.name}-check"),
        ("output", _pattern(work.logs / "check.out")),
        ("open-mode", "append"),
        ("nodes", "1"),
        ("ntasks", "1"),
        ("time", check.time),
        ("mem", check.mem),
        ("cpus-per-task", str(check.cpus_per_task)),
        *_given(("partition", check.partition or site.job.partition), ("account", site.job.account)),
        *_given(("qos", check.qos or (site.job.qos if check.partition is None else None))),
        ("export", site.job.export),
    ]
    command, campaign = command_of(site), shlex.quote(str(work.campaign))
    lines = [f"{command} {word} {campaign}" for word in ("settle", "check", "report")]
    body = [lines[0], lines[1], "code=$?", lines[2], 'exit "$code"']
    return _script(directives, f"the check of {work.name}", [*_opening(site), *body])


def command_of(site: SlurmSite) -> str:
    """The command on the nodes. Python's own -P: the working directory must not shadow an installed module."""
    return site.pybench or f"{shlex.quote(sys.executable)} -P -m pybench.cli"


# --- the parts ------------------------------------------------------------------------------------------------------


def _script(directives: Sequence[tuple[str, str | None]], what: str, lines: Sequence[str]) -> str:
    head = ["#!/bin/bash -l"]  # a login shell: there `module` is defined although no environment is handed over
    head += [f"#SBATCH --{name}" + ("" if value is None else f"={_quoted(value)}") for name, value in directives]
    return "\n".join([*head, f"# {what}; written by pybench {__version__}, which does not read it back", *lines, ""])


def _resources(site: SlurmSite) -> list[tuple[str, str | None]]:
    job = site.job
    memory = job.mem or "0"  # 0: all that the node has, which an exclusive job gets
    words = {name: getattr(job, name) for name in ("partition", "account", "qos", "constraint", "reservation")}
    words |= {name: getattr(job, name) for name in ("nodelist", "exclude", "gres", "gpus")}
    cpus = str(job.cpus_per_task) if job.cpus_per_task else None
    return [
        ("open-mode", "append"),  # a task that is started again keeps its log
        ("requeue", None),
        ("signal", f"B:USR1@{job.checkpoint_s}"),
        ("nodes", "1"),
        ("ntasks", "1"),
        ("time", job.time),
        ("mem", memory),
        *_given(*words.items(), ("cpus-per-task", cpus)),
        *([("exclusive", None)] if job.exclusive else []),
        ("export", job.export),
        *[_option(text) for text in job.options],
    ]


def _given(*pairs: tuple[str, str | None]) -> list[tuple[str, str | None]]:
    return [(name, value) for name, value in pairs if value is not None]


def _option(text: str) -> tuple[str, str | None]:
    name, equals, value = text.removeprefix("--").partition("=")
    return name, value if equals else None


def _pattern(path: Path) -> str:
    """A path for --output, where % begins a replacement."""
    return str(path).replace("%", "%%")


def _quoted(value: str) -> str:
    """As sbatch reads its directives: double quotes, in which a backslash escapes."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if any(sign in value for sign in " \t#\"'\\") else value


def _opening(site: SlurmSite) -> list[str]:
    """What the site and this machine's user have to say."""
    exports = {"PYTHONNOUSERSITE": "1", **site.environment}
    return [
        "unset SLURM_EXPORT_ENV",
        *([site.prelude.strip("\n")] if site.prelude.strip() else []),
        *[f"export {name}={shlex.quote(value)}" for name, value in exports.items()],
    ]


def _task(site: SlurmSite, arguments: str, work: SubmissionWork) -> list[str]:
    """One `pybench run` that is told to checkpoint and queued again, with scratch and the image it asks for."""
    command = f"{command_of(site)} run {shlex.quote(str(work.campaign))} {arguments}"
    command += "".join(f" {shlex.quote(argument)}" for argument in work.arguments)
    return [
        f"insist_after_s={_insist_after_s(site.job.checkpoint_s)} max_requeues={site.job.max_requeues}",
        "",
        resources.files("pybench.cluster").joinpath("job.bash").read_text(encoding="utf-8"),
        *_opening(site),
        f'scratch=$(mktemp -d -p "{site.scratch.path}" "pybench-$job.XXXXXX") || exit 73',
        "trap 'rm -rf -- \"$scratch\"' EXIT",
        "export TMPDIR=$scratch",
        *(_image(site.image, site.scratch.stage_image) if site.image else []),
        '[ "$asked" = 0 ] || again',
        'say "on $SLURMD_NODENAME, start $((${SLURM_RESTART_COUNT:-0} + 1))"',
        f"run {command}" + (' --container "$image"' if site.image else ""),
        "case $ended$code in",
        f"0{EXIT_CHECKPOINTED} | 0138) again ;; # 138: SIGUSR1 came before pybench could take it; nothing had begun",
        "esac",
        'exit "$code"',
    ]


def _image(image: SiteImage, is_staged: bool) -> list[str]:
    """Nothing runs in an image whose bytes are not those that were submitted."""
    lines = [f"image={shlex.quote(image.path)}"]
    if is_staged:
        copy = '"$scratch/${image##*/}"'
        lines.append(f'cp -- "$image" {copy} && image={copy} || exit 73')
    check = f"printf '%s  %s\\n' {image.sha256} \"$image\" | sha256sum --check --quiet"
    return [*lines, f"{check} || {{ say 'the image is not the one that was submitted'; exit 78; }}"]


def _insist_after_s(checkpoint_s: int) -> int:
    """When a run that is still not finished is stopped: late, but with time left to write and to be queued again."""
    return max(checkpoint_s - LONGEST_STOP_S, 2 * checkpoint_s // 3)
