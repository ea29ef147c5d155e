# SPDX-License-Identifier: Apache-2.0
"""A campaign's directory: created for a plan, or continued with one that may have changed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pybench.campaign import storage
from pybench.campaign.directory import CampaignDirectory, not_a_campaign
from pybench.campaign.resolved_plan import (
    ResolvedPlan,
    is_stored,
    parse_resolved_plan,
    read_planned,
    store_planned,
    store_stop,
)
from pybench.case import Case
from pybench.catalogue.plugins import Plugin, refuse_change
from pybench.errors import UsageError
from pybench.words import is_utf_8


def open_for_running(
    campaign: CampaignDirectory, content: Mapping[str, Any], plan_text: str
) -> tuple[list[Case], list[Case]]:
    """Creates the directory or continues it with a plan that may have changed.

    Returns the cases that the plan adds and those it orphans (their runs stay and no longer count). Raises UsageError
    where the directory is of a plan with another name, or has runs of another seed. So it does where a package that
    adds rows has changed since the campaign began: its runs are others of the same cases.
    """
    plan = parse_resolved_plan(content)
    known = planned_before(campaign, plan)
    storage.make_folder(campaign.path, exist_ok=True)
    with storage.prepared(campaign.plan, plan_text.encode()):  # a full disk leaves the former plan and its digest
        if known is not None and not is_stored(campaign, content):
            store_stop(campaign, None)  # it was one by the former plan
        store_planned(campaign, content)
    storage.make_folder(campaign.artefacts, exist_ok=True)
    return changed_cases(known, plan)


@contextmanager
def opened_for_running(
    campaign: CampaignDirectory, content: Mapping[str, Any], plan_text: str
) -> Iterator[tuple[list[Case], list[Case]]]:
    """`open_for_running` of a campaign that exists, for a block: where the block raises, its files are as before."""
    files = (campaign.plan_resolved, campaign.plan, campaign.stopped)
    former = {path: path.read_bytes() for path in files if path.exists()}
    changes = open_for_running(campaign, content, plan_text)
    try:
        yield changes
    except BaseException:
        for path in files:
            if path not in former:
                path.unlink(missing_ok=True)
            elif not path.exists() or path.read_bytes() != former[path]:
                storage.write_bytes(path, former[path])
        raise


def changed_cases(known: ResolvedPlan | None, plan: ResolvedPlan) -> tuple[list[Case], list[Case]]:
    """The cases that `plan` adds to the plan of a campaign, and those that it orphans. `known`: as of
    `planned_before`."""
    if known is None:
        return [], []
    old, new = {case.id for case in known.cases}, {case.id for case in plan.cases}
    return [case for case in plan.cases if case.id not in old], [case for case in known.cases if case.id not in new]


def planned_before(campaign: CampaignDirectory, plan: ResolvedPlan) -> ResolvedPlan | None:
    """The plan of a campaign that `plan` would continue, None where there is no campaign yet. Changes nothing.

    Raises UsageError where

    - the folder is a file, holds files and is no campaign, or has a path that libraries do not open,
    - it is of a plan with another name, or has runs of another seed,
    - a package that adds rows has changed since the campaign began.
    """
    if not is_utf_8(campaign.path):
        raise UsageError(f"{campaign.path}: its path is not UTF-8", hint="choose another folder with --out")
    # os.path takes what may not be looked at for absent; making the folder then tells the permission that lacks.
    there = next(path for path in (campaign.path, *campaign.path.absolute().parents) if os.path.exists(path))  # noqa: PTH110
    if not there.is_dir():
        code = errno.EEXIST if there == campaign.path else errno.ENOTDIR
        raise storage.storage_error(OSError(code, os.strerror(code)), campaign.path)
    if there != campaign.path:
        return None
    # Looked at before the plan is looked for, which a runner that starts beside this one writes before all else.
    holds_files = any(not entry.name.endswith(storage.TEMPORARY_SUFFIX) for entry in campaign.path.iterdir())
    known = read_planned(campaign) if campaign.plan_resolved.exists() else None
    if holds_files and known is None:
        raise not_a_campaign(campaign)
    if known is not None and known.name != plan.name:
        raise UsageError(
            f"{campaign.path} is the campaign `{known.name}`, and this plan is `{plan.name}`",
            hint=f"give another folder with --out, or name the plan `{known.name}` to change that campaign",
        )
    if known is not None:
        _refuse_another_seed(campaign, known.seed, plan.seed)
        refuse_change(_plugins(known.cases), _plugins(plan.cases))
    return known


def _refuse_another_seed(campaign: CampaignDirectory, former: int, seed: int) -> None:
    """Runs of one block would have inputs of two seeds, and the plan would tell of one.

    Runs of cases that are no longer planned count, too: a later plan may have these cases again.
    """
    if seed != former and any(True for _ in campaign.started()):
        raise UsageError(
            f"{campaign.path} has runs of the seed {former}, and this plan has the seed {seed}",
            hint=f"put `seed: {former}` back, or give another folder with --out",
        )


def _plugins(cases: Iterable[Case]) -> list[Plugin]:
    return list(dict.fromkeys(plugin for case in cases for plugin in case.plugins()))
