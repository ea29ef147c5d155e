# SPDX-License-Identifier: Apache-2.0
"""`pybench logs`."""

from __future__ import annotations

import sys
from typing import Annotated, Optional

import typer

from pybench.campaign.directory import open_campaign
from pybench.cli.options import DirectoryArgument
from pybench.errors import UsageError


def logs(
    directory: DirectoryArgument,
    shard: Annotated[Optional[int], typer.Argument(metavar="SHARD", min=1, help="Print this shard's log.")] = None,
) -> None:
    """List the logs of the latest submission, or print one.

    The log of the check that follows the runs is check.out.
    """
    from pybench.cluster.script import LOGS
    from pybench.cluster.submission import log_of, submissions

    campaign = open_campaign(directory)
    found = submissions(campaign)
    if not found:
        raise UsageError(f"{directory} has no submission", hint="`pybench submit` creates one")
    if shard is None:
        for path in sorted((found[-1].folder / LOGS).iterdir()):
            print(f"{path}  {path.stat().st_size} bytes")
        return
    paths = [path for submission in found for path in [log_of(submission, shard)] if path is not None and path.exists()]
    if not paths:
        raise UsageError(f"shard {shard} has no log", hint=f"`pybench logs {directory}` lists the logs there are")
    for path in paths:  # of every submission: a shard that was submitted again begins in an earlier log
        sys.stdout.write(path.read_text(encoding="utf-8", errors="replace"))
