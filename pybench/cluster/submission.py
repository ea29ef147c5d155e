# SPDX-License-Identifier: Apache-2.0
"""A submission: which shards are still to be run, their scripts in a folder of the campaign, and the jobs they became.

All or nothing: where a script is refused, what was accepted before it is cancelled and the folder goes. Nothing is
remembered outside the campaign's directory.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pybench.campaign import layout, storage
from pybench.campaign.batch_job import SLURM
from pybench.campaign.claims import is_alive, this_process
from pybench.campaign.directory import CampaignDirectory, read_json
from pybench.campaign.recipe import Recipe, in_making_order, recipes_of
from pybench.campaign.resolved_plan import ResolvedPlan
from pybench.case import Case
from pybench.catalogue.kinds import KINDS
from pybench.cluster import slurm
from pybench.cluster.ending import open_attempts
from pybench.cluster.script import LOGS, Chunk, SubmissionWork, artefacts_script, check_script, chunks_of, shards_script
from pybench.cluster.site import SiteImage, SlurmSite
from pybench.errors import ClusterError, CorruptError, InputError, UsageError
from pybench.runner import Options, Shard, pending_runs
from pybench.words import counted

DRY_RUN = "dry-run"
SHARDS, ARTEFACTS, CHECK = "shards", "artefacts", "check"


@dataclass(frozen=True, slots=True)
class Script:
    """One script of a submission.

    name: of its file
    role: shards, artefacts or check
    text: of its file
    chunk: the tasks of an array: of shards, or of makers, which are numbered from 1; None: it is no array
    """

    name: str
    role: str
    text: str
    chunk: Chunk | None = None


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    """A script that a batch system accepted."""

    script: str
    role: str
    id: str
    chunk: Chunk | None

    def tasks(self) -> dict[str, int | None]:
        """Slurm's name of each task, or of the job that is no array -> its shard; None: it is of no shard."""
        if self.chunk is None:
            return {self.id: None}
        offset = self.chunk.offset
        return {f"{self.id}_{task}": task + offset if self.role == SHARDS else None for task in self.chunk.tasks}


@dataclass(frozen=True, slots=True)
class Submission:
    """What submission.json says.

    shards: into how many the campaign is cut
    arguments: of every `pybench run`; None: an older pybench did not store them
    planned: `planned_digest` of the plan as it was submitted; None likewise
    cluster: whose numbers the jobs have; None: an older pybench did not store it, or the cluster has no name
    """

    number: int
    folder: Path
    scheduler: str
    shards: int
    arguments: tuple[str, ...] | None
    planned: str | None
    jobs: tuple[SubmittedJob, ...]
    cluster: str | None = None

    def is_of(self, cluster: str | None) -> bool:
        """Whether that cluster may be asked about the jobs: another one has other jobs of the same numbers."""
        return self.cluster in (None, cluster)


@dataclass(frozen=True, slots=True)
class LiveShard:
    """A shard that a job of an earlier submission still runs, or waits to run.

    has_begun: whether its list of runs is that of the plan as it was then; what waits will read the plan of now
    """

    submission: Submission
    has_begun: bool

    def why_not(self, work: SubmissionWork) -> str | None:
        """Why it may not do all that `work` would; None: it does."""
        if self.submission.arguments != work.arguments:
            return "for a `run` with other options"
        return "begun before the plan changed" if self.has_begun and self.submission.planned != work.planned else None


# --- what is to be done ---------------------------------------------------------------------------------------------


def shard_count(plan: ResolvedPlan, asked: int | None, former: Sequence[Submission]) -> int:
    """As asked, else as before, else a shard a block. Raises UsageError where a shard would have no block."""
    count = asked or (former[-1].shards if former else plan.blocks)
    if count > plan.blocks:
        if asked is None:
            return plan.blocks
        raise UsageError(
            f"--shards {count}: the plan has {plan.blocks} blocks (one a repetition), and a block stays whole",
            hint=f"use at most {plan.blocks}",
        )
    return count


def missing_shards(campaign: CampaignDirectory, plan: ResolvedPlan, options: Options, count: int) -> list[int]:
    """The shards in which something is left to do."""
    blocks = {run.block for run in pending_runs(campaign, plan, options)}
    return [index for index in range(1, count + 1) if any(Shard(index, count).takes(block) for block in blocks)]


def planned_digest(plan: ResolvedPlan) -> str:
    """Of the runs that the plan has: the sha256 of its cases with their numbers of blocks."""
    runs = sorted(f"{case.id} {plan.repetitions.of(case)}\n" for case in plan.cases)
    return hashlib.sha256("".join(runs).encode()).hexdigest()


def live_shards(former: Sequence[Submission], count: int) -> dict[int, LiveShard]:
    """Shards that jobs of earlier submissions to this cluster still run or wait to run.

    Raises UsageError where those are cut in another way: two jobs would tear a block apart between them.
    """
    former = of_this_cluster(former)
    jobs = [job for submission in former for job in submission.jobs if job.role == SHARDS]
    states = slurm.queue(job.id for job in jobs)
    found: dict[int, LiveShard] = {}
    for submission in former:
        tasks = {name: shard for job in submission.jobs if job.role == SHARDS for name, shard in job.tasks().items()}
        alive = {
            shard: LiveShard(submission, states[name].has_begun)
            for name, shard in tasks.items()
            if shard is not None and name in states and not states[name].has_ended
        }
        if alive and submission.shards != count:
            raise UsageError(
                f"submission {submission.number:02d} has {len(alive)} of {submission.shards} shards in the queue",
                hint=f"give --shards {submission.shards}, or `pybench cancel` the campaign first",
            )
        found |= alive
    return found


def refuse_elsewhere(campaign: CampaignDirectory, plan: ResolvedPlan, missing: Iterable[int], count: int) -> None:
    """Raises UsageError where a job of another cluster may be at work in one of the missing shards."""
    found, claimant, here = list(missing), this_process(), None
    for attempt, job in open_attempts(campaign, plan).items():
        is_missing = any(Shard(index, count).takes(attempt.block) for index in found)
        if not is_missing or job.cluster is None or not is_alive(attempt.claim, claimant):
            continue
        here = here or slurm.cluster_name()
        if job.cluster != here:
            raise UsageError(
                f"block {attempt.block} is being run by job {job.id} of the cluster {job.cluster}, and this is {here}",
                hint=f"submit again when it has ended, or `pybench cancel` the campaign on {job.cluster} first",
            )


def left_to(live: Mapping[int, LiveShard], missing: Iterable[int], work: SubmissionWork) -> list[int]:
    """The shards with missing runs that jobs in the queue do.

    Raises UsageError where such a job may leave some of them out: a second job would tear a block apart.
    """
    left = [shard for shard in missing if shard in live]
    whys = Counter(why for shard in left if (why := live[shard].why_not(work)) is not None)
    if whys:
        said = "; ".join(f"{counted(count, 'shard')} {why}" for why, count in whys.items())
        raise UsageError(
            f"jobs in the queue may leave out some of the missing runs: {said}",
            hint="submit again when they have ended, or `pybench cancel` the campaign first",
        )
    return left


def scripts_of(
    work: SubmissionWork, site: SlurmSite, shards: Sequence[int], cases: Sequence[Case], *, again: bool
) -> list[Script]:
    """In the order in which they are submitted.

    cases: those that are run
    again: whether the campaign was submitted before: then most artefacts are there, and one task makes the rest
    """
    found = []
    recipes = {made.digest: made for case in cases for made in in_making_order(recipes_of(case))}
    if len(shards) > 1 and recipes:
        makers = 1 if again else _makers(recipes.values(), len(shards), site)
        tasks = Chunk(1, 0, tuple(range(1, makers + 1))) if makers > 1 else None
        found.append(Script("artefacts.sbatch", ARTEFACTS, artefacts_script(work, site, makers), tasks))
    for chunk in chunks_of(shards, site.job.array_max):
        found.append(Script(f"shards-{chunk.number}.sbatch", SHARDS, shards_script(work, chunk, site), chunk))
    return [*found, Script("check.sbatch", CHECK, check_script(work, site))]


def _makers(recipes: Iterable[Recipe], shards: int, site: SlurmSite) -> int:
    """How many tasks share the making: one for each artefact that takes long and that no other such one waits for."""
    long = [recipe for recipe in recipes if KINDS[recipe.kind].takes_long]
    needed = {need.digest for recipe in long for _, each in recipe.needs for need in in_making_order({"need": each})}
    at_once = sum(recipe.digest not in needed for recipe in long)
    return max(1, min(at_once, shards, site.job.throttle or at_once, site.job.array_max))


def check_image(image: SiteImage) -> None:
    """Refuses an image whose bytes are not the site file's, before anything waits in a queue for it."""
    try:
        found = storage.sha256_of(Path(image.path))
    except OSError as error:
        raise InputError(
            f"the image {image.path} cannot be read: {error.strerror}", hint="correct `path` in `image`"
        ) from error
    if found != image.sha256:
        raise InputError(
            f"the image {image.path} has sha256 {found}, the site file says {image.sha256}",
            hint="use the image with that digest, or correct `sha256` in `image`",
        )


# --- the folder -----------------------------------------------------------------------------------------------------


def write_scripts(folder: Path, scripts: Sequence[Script], site_text: str) -> None:
    """A fresh folder with scripts, the site file and a place for logs; nothing of it stays where that fails."""
    storage.make_folder(folder.parent, exist_ok=True)
    storage.make_folder(folder)
    try:
        storage.make_folder(folder / LOGS)
        storage.write_text(folder / "site.yaml", site_text)
        for script in scripts:
            storage.write_text(folder / script.name, script.text)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def submit(
    number: int, work: SubmissionWork, scripts: Sequence[Script], in_turn: bool, came: Collection[int] = ()
) -> Submission:
    """Hands the written scripts to Slurm and records each job as it is accepted. All or nothing.

    in_turn: whether an array waits for the one before, because a throttle counts by array
    came: as of `held_signals`; after one, KeyboardInterrupt is raised, and nothing is submitted
    """
    jobs: list[SubmittedJob] = []
    try:
        cluster = slurm.cluster_name()
        for script in scripts:
            accepted = slurm.submit(work.folder / script.name, _predecessors(script, jobs, in_turn))
            jobs.append(SubmittedJob(script.name, script.role, accepted, script.chunk))
            storage.write_json(work.folder / layout.SUBMISSION, _to_json(work, cluster, jobs))
            if came:
                raise KeyboardInterrupt
    except BaseException:
        left = [job for job in reversed(jobs) if not _cancel(job)]
        if not left:  # else `cancel` and `status` have to know of them
            shutil.rmtree(work.folder, ignore_errors=True)
        raise
    return Submission(number, work.folder, SLURM, work.shards, work.arguments, work.planned, tuple(jobs), cluster)


def _cancel(job: SubmittedJob) -> bool:
    """Whether Slurm did it. Its error is not raised: the one before is to be shown."""
    try:
        slurm.cancel(job.id)
    except ClusterError:
        return False
    return True


def submissions(campaign: CampaignDirectory) -> list[Submission]:
    """Every recorded submission, oldest first."""
    return [
        _read(campaign.submission(number), number)
        for number in campaign.submissions()
        if (campaign.submission(number) / layout.SUBMISSION).exists()
    ]


def of_this_cluster(found: Sequence[Submission]) -> list[Submission]:
    """Those whose jobs have numbers of the cluster that Slurm's commands speak to. ClusterError where it does not
    answer."""
    here = slurm.cluster_name() if any(submission.cluster for submission in found) else None
    return [submission for submission in found if submission.is_of(here)]


def next_number(campaign: CampaignDirectory) -> int:
    return max(campaign.submissions(), default=0) + 1


def log_of(submission: Submission, shard: int) -> Path | None:
    """Where a shard of a submission writes; None where it was not submitted then."""
    for job in submission.jobs:
        if job.role == SHARDS and job.chunk and shard - job.chunk.offset in job.chunk.tasks:
            return submission.folder / LOGS / job.chunk.log(shard - job.chunk.offset)
    return None


@contextlib.contextmanager
def locked(campaign: CampaignDirectory) -> Iterator[None]:
    """One `submit` at a time in a campaign, as each looks at what the others have in the queue.

    A file system without locks (Lustre may be mounted so) does without: claims still keep runs from being done twice.
    """
    storage.make_folder(campaign.cluster, exist_ok=True)
    path = campaign.cluster / ".lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise storage.storage_error(error, path) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"another `pybench submit` is running in {campaign.path}", hint="wait until it has ended"
            ) from error
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
                raise storage.storage_error(error, path) from error
        yield
    finally:
        os.close(descriptor)


def _predecessors(script: Script, jobs: Sequence[SubmittedJob], in_turn: bool) -> list[str]:
    """The check comes after all arrays, an array after the artefacts or after the array before it."""
    arrays = [job.id for job in jobs if job.role == SHARDS]
    if script.role == CHECK:
        return arrays
    return arrays[-1:] if arrays and in_turn else [job.id for job in jobs if job.role == ARTEFACTS]


def _to_json(work: SubmissionWork, cluster: str | None, jobs: Sequence[SubmittedJob]) -> dict[str, Any]:
    return {
        "schema_version": layout.SCHEMA_VERSION,
        "scheduler": SLURM,
        "cluster": cluster,
        "submitted_utc": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "shards": work.shards,
        "arguments": list(work.arguments),
        "planned": work.planned,
        "jobs": [
            {
                "script": job.script,
                "role": job.role,
                "id": job.id,
                "chunk": asdict(job.chunk) if job.chunk else None,
            }
            for job in jobs
        ],
    }


def _read(folder: Path, number: int) -> Submission:
    path = folder / layout.SUBMISSION
    content = read_json(path)
    try:
        jobs = tuple(_job(stored) for stored in content["jobs"])
        arguments = None if "arguments" not in content else tuple(content["arguments"])
        planned, cluster, shards = content.get("planned"), content.get("cluster"), int(content["shards"])
        return Submission(number, folder, content["scheduler"], shards, arguments, planned, jobs, cluster)
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptError(f"{path}: {error!r}", hint=f"restore it, or remove {folder}") from error


def _job(stored: Mapping[str, Any]) -> SubmittedJob:
    chunk = stored["chunk"] and Chunk(**{**stored["chunk"], "tasks": tuple(stored["chunk"]["tasks"])})
    return SubmittedJob(stored["script"], stored["role"], stored["id"], chunk)
