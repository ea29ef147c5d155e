# SPDX-License-Identifier: Apache-2.0
"""What a submission leaves on the disk, with an sbatch that only counts."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.layout import SUBMISSION
from pybench.cluster.script import Chunk, SubmissionWork, chunks_of
from pybench.cluster.submission import Script, locked, log_of, submissions, submit, write_scripts
from pybench.errors import ClusterError, CorruptError


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Numbers jobs from 1, after a line of a site's plugin; writes down how it was called."""
    calls = tmp_path / "calls"
    (tmp_path / "sbatch").write_text(f'#!/bin/sh\necho "$*" >> {calls}\necho welcome\nwc -l < {calls}\n')
    (tmp_path / "scancel").write_text(f'#!/bin/sh\necho "scancel $*" >> {calls}\n')
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho 'ClusterName             = test'\n")
    for name in ("sbatch", "scancel", "scontrol"):
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return calls


def scripts() -> list[Script]:
    """Artefacts in an array of five, shards 4, 5 and 9 in arrays of four at most, and the check."""
    arrays = [Script(f"shards-{chunk.number}.sbatch", "shards", "", chunk) for chunk in chunks_of([4, 5, 9], 4)]
    makers = Chunk(1, 0, (1, 2, 3, 4, 5))
    return [Script("artefacts.sbatch", "artefacts", "", makers), *arrays, Script("check.sbatch", "check", "")]


@pytest.mark.parametrize(
    ("in_turn", "after"), [(False, ["", "1", "1", "1", "2:3:4"]), (True, ["", "1", "2", "3", "2:3:4"])]
)
def test_a_submission_is_read_back_as_it_was(tmp_path: Path, sbatch: Path, in_turn: bool, after: list[str]) -> None:
    campaign = CampaignDirectory(tmp_path / "campaign")
    work = SubmissionWork(campaign.path, "trial", campaign.submission(1), 9)
    write_scripts(work.folder, scripts(), "kind = 'slurm'\n")
    submitted = submit(1, work, scripts(), in_turn)
    assert submissions(campaign) == [submitted]
    assert list(submitted.jobs[0].tasks()) == ["1_1", "1_2", "1_3", "1_4", "1_5"]
    logs = [log_of(submitted, shard) for shard in (4, 5, 9, 1)]
    assert [log and log.name for log in logs] == ["shards-1-4.out", "shards-2-1.out", "shards-3-1.out", None]
    dependencies = [line.partition("afterany:")[2].partition(" ")[0] for line in sbatch.read_text().splitlines()]
    assert dependencies == after


def test_what_was_accepted_before_a_refusal_goes_again(tmp_path: Path, sbatch: Path) -> None:
    (tmp_path / "sbatch").write_text(
        f"#!/bin/sh\n[ $(wc -l < {sbatch}) -lt 2 ] || exit 1\necho >> {sbatch}\nwc -l < {sbatch}\n"
    )
    sbatch.touch()
    campaign = CampaignDirectory(tmp_path / "campaign")
    work = SubmissionWork(campaign.path, "trial", campaign.submission(1), 9)
    write_scripts(work.folder, scripts(), "")
    with pytest.raises(ClusterError, match=r"sbatch refused shards-2\.sbatch: it ended with exit code 1"):
        submit(1, work, scripts(), in_turn=False)
    assert sbatch.read_text().splitlines()[-2:] == ["scancel 2", "scancel 1"]
    assert campaign.submissions() == []


def test_what_could_not_be_cancelled_after_a_refusal_is_recorded(tmp_path: Path, sbatch: Path) -> None:
    """The controller goes down after it has accepted one job."""
    down = "echo 'Unable to contact slurm controller' >&2; exit 1"
    (tmp_path / "sbatch").write_text(f"#!/bin/sh\n[ ! -e {sbatch} ] || {{ {down}; }}\necho 1 | tee {sbatch}\n")
    (tmp_path / "scancel").write_text(f"#!/bin/sh\n{down}\n")
    campaign = CampaignDirectory(tmp_path / "campaign")
    work = SubmissionWork(campaign.path, "trial", campaign.submission(1), 9)
    write_scripts(work.folder, scripts(), "")
    with pytest.raises(ClusterError, match="Unable to contact") as raised:
        submit(1, work, scripts(), in_turn=False)
    assert raised.value.hint == "check that the cluster's controller is running"
    (left,) = submissions(campaign)
    assert [job.id for job in left.jobs] == ["1"]


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    campaign = CampaignDirectory(tmp_path)
    campaign.submission(1).mkdir(parents=True)
    (campaign.submission(1) / SUBMISSION).write_text('{"jobs": [{}]}')
    with pytest.raises(CorruptError, match=r"submission-01/submission\.json"):
        submissions(campaign)


def test_a_file_system_without_locks_does_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with locked(CampaignDirectory(tmp_path)):
        pass
