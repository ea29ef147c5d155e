# SPDX-License-Identifier: Apache-2.0
"""A campaign whose runs are in containers, by this process or by a runner of its own, and what of it is still there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.launcher import Container, Launcher
from tests.runner.listening import Quiet
from tests.runner.machines import WillingMachine

RUNNER = """
import json, sys, pathlib
sys.path.append(sys.argv[4])
from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.launcher import open_container
from tests.runner.listening import Quiet
from tests.runner.machines import WillingMachine
campaign = CampaignDirectory(pathlib.Path(sys.argv[1]))
content = json.loads(sys.argv[2])
runner.open_for_running(campaign, content, "")
machine = WillingMachine(launcher=open_container(sys.argv[3], sys.argv[5], print))
tally = runner.run_campaign(campaign, parse_resolved_plan(content), runner.Options(), machine, Quiet())
sys.exit(130 if tally.interrupted else 0 if tally.is_success else 1)
"""


def run_campaign(
    campaign: CampaignDirectory, content: dict[str, Any], launcher: Launcher, **options: Any
) -> runner.Tally:
    """Runs a new campaign to its end; `options` are the runner's, as `timeout_s`."""
    runner.open_for_running(campaign, content, "")
    plan = parse_resolved_plan(content)
    return runner.run_campaign(campaign, plan, runner.Options(**options), WillingMachine(launcher=launcher), Quiet())


def start_runner(
    archive: Path, campaign: CampaignDirectory, content: object, engine: str = "podman"
) -> subprocess.Popen[bytes]:
    """A process that does the same, and can be killed."""
    root = Path(__file__).parents[2]
    command = [sys.executable, "-P", "-c", RUNNER, campaign.path, json.dumps(content), archive, root, engine]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def workers_of(campaign: CampaignDirectory) -> list[int]:
    """Workers of a campaign in containers, by this machine's numbers: not the engine's programs, nor tini."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in pids if command_of(pid)[:1] == ["python"] and str(campaign.path) in command_of(pid)]


def command_of(pid: int) -> list[str]:
    """A process's command line; no words of one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def containers_of(container: Container) -> list[str]:
    """Names of the containers that the engine knows, running or not. podman lists one while it removes it."""
    return container.engine.ask("ps", "--all", "--format", "{{.Names}}").split()
