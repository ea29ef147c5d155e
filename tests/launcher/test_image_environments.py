# SPDX-License-Identifier: Apache-2.0
"""Images as environments of a plan, in real containers of podman: side by side in each block, and refused with a place
where they are not what the plan says."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pybench.analysis import analyse
from pybench.analysis.comparability import Comparability
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.environments import PlannedEnvironment, read_environments
from pybench.case import Case
from pybench.cli import main
from pybench.dataset import load
from pybench.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, RefusedValuesError
from pybench.launcher import Container
from pybench.machine import Machine
from tests.launcher.contained_campaign import containers_of, workers_of
from tests.launcher.small_image import canonical_tar, members, stack_members, write_small_image
from tests.runner.test_campaign import interrupt_twice
from tests.support.waiting import wait_for

pytestmark = pytest.mark.container

Captured = pytest.CaptureFixture[str]
PLAN = """\
schema_version: 1
name: stacks
repetitions: 2
environments:
  old: {{image: old.oci.tar@{old}}}
  new: {{image: new.oci.tar@{new}}}
matrix:
  - {{workload: noop, environment: [old, new, null], iterations: 3}}
criteria:
  name: the new stack
  baseline: {{environment: old}}
"""


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory, container: Container) -> Path:
    """A folder with two images and a plan that names them. `container`: this machine runs containers."""
    folder = tmp_path_factory.mktemp("stacks")
    versions = {"old": "1.0", "new": "2.0"}
    made = {name: write_small_image(folder, name, stack_members(version)) for name, version in versions.items()}
    (folder / "plan.yaml").write_text(PLAN.format(**{name: digest for name, (_, digest) in made.items()}))
    return folder


@pytest.fixture
def own_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYBENCH_ENGINE", "podman")


def image_of(folder: Path, name: str) -> str:
    """What the plan says of it, with its whole path."""
    (line,) = [line for line in (folder / "plan.yaml").read_text().splitlines() if f"{name}.oci.tar@" in line]
    return f"{folder}/{line.partition('{image: ')[2].rstrip('}')}"


def refusal(planned: str) -> tuple[str, str | None]:
    """What is said of an image in which a case cannot run, and the hint."""
    case = Case(workload="noop", environment="stack")
    with pytest.raises(RefusedValuesError) as raised:
        Machine.ask([case], planned={"stack": PlannedEnvironment(image=planned)})
    (refused,) = raised.value.values
    assert (refused.factor, refused.value) == ("environment", "stack")
    return refused.what, refused.hint


def table(campaign: Path, name: str) -> list[dict[str, str]]:
    with open(campaign / "report" / "tables" / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.usefixtures("own_engine")
def test_two_images_and_this_machine_from_the_plan_to_the_replay(
    stacks: Path, tmp_path: Path, capsys: Captured
) -> None:
    out, digests = tmp_path / "campaign", {name: image_of(stacks, name).split("@")[1] for name in ("old", "new")}
    assert main(["run", str(stacks / "plan.yaml"), "--out", str(out), "--dry-run"]) == EXIT_OK
    assert f"packages, image {digests['old']}" in capsys.readouterr().out.replace("1 package,", "packages,")
    assert main(["run", str(stacks / "plan.yaml"), "--out", str(out)]) == EXIT_OK
    campaign = CampaignDirectory(out)
    found = [(run.read_case().environment, run.read_environment()) for run in campaign.runs()]
    assert sorted((str(name), one["image_digest"]) for name, one in found) == sorted(
        [("None", None), *digests.items()] * 2, key=str
    )
    assert {(name, one["packages"].get("acme_marker")) for name, one in found} == {
        (None, None),
        ("old", "1.0"),
        ("new", "2.0"),
    }
    known = read_environments(campaign)
    assert {name: (one.image, one.packages["acme-marker"]) for name, one in known.items()} == {
        "old": (digests["old"], "1.0"),
        "new": (digests["new"], "2.0"),
    }
    for pair in analyse(load(out)).contrasts[0].pairs:
        assert pair.comparability.status is Comparability.COMPARABLE
        assert "image" in {one.name for one in pair.comparability.brought}
    assert main(["report", str(out)]) == EXIT_OK
    rows = {row["package"]: row for row in table(out, "environments")}
    assert {name: rows["image"][f"environment={name}"] for name in digests} == digests
    assert rows["image"]["environment=null"] == "no image"
    archive, fetched = tmp_path / "published.zip", tmp_path / "fetched"
    assert main(["publish", str(out), "--archive", str(archive), "--license", "CC-BY-4.0"]) == EXIT_OK
    assert main(["fetch", str(archive), "--out", str(fetched)]) == EXIT_OK
    stored = json.loads((fetched / "plan.resolved.json").read_text())["environments"]
    assert stored["old"] == {"image": f"old.oci.tar@{digests['old']}"}
    assert main(["replay", str(fetched), "--out", str(tmp_path / "page")]) == EXIT_OK


@pytest.mark.usefixtures("own_engine")
def test_a_campaign_does_not_continue_in_another_image(stacks: Path, tmp_path: Path, capsys: Captured) -> None:
    plan, out = tmp_path / "plan.yaml", str(tmp_path / "campaign")
    text = (stacks / "plan.yaml").read_text().replace("image: ", f"image: {stacks}/")
    plan.write_text(text)
    select = ["--out", out, "--filter", "environment=old"]
    assert main(["run", str(plan), "--repetitions", "1", *select]) == EXIT_OK
    old, new = (image_of(stacks, name) for name in ("old", "new"))
    plan.write_text(text.replace(old, new))
    before = sorted(Path(out).rglob("*"))
    assert main(["run", str(plan), *select]) == EXIT_USAGE
    said = f"environment old has changed since {out} began: its image {old.split('@')[1]} is {new.split('@')[1]} now"
    assert said in capsys.readouterr().err
    assert sorted(Path(out).rglob("*")) == before


def test_an_image_that_is_not_what_the_plan_names_is_refused(stacks: Path, tmp_path: Path) -> None:
    image, digest = image_of(stacks, "old"), image_of(stacks, "new").split("@")[1]
    file, own = image.split("@")
    assert refusal(f"{file}@{digest}") == (
        f"stack: {file} is {own}, not {digest}",
        "use the image with this digest, or give its own digest",
    )
    what, _ = refusal(f"{tmp_path}/none.oci.tar@{digest}")
    assert what == f"stack: the image {tmp_path}/none.oci.tar@{digest}: no such file"


def test_an_image_in_which_workers_would_differ_or_fail_is_refused(stacks: Path, tmp_path: Path) -> None:
    def written(name: str, content: canonical_tar.Members) -> str:
        return "@".join(map(str, write_small_image(tmp_path, name, content)))

    what, hint = refusal(written("bare", stack_members("1.0", left_out="zstandard")))
    assert what == f"stack: {tmp_path}/bare.oci.tar lacks zstandard, which every run needs"
    assert hint == "install it into the image"
    edited = members() | canonical_tar.file("opt/site/pybench/words.py", "edited = True\n")
    what, _ = refusal(written("edited", edited))
    assert what == f"stack: the pybench in {tmp_path}/edited.oci.tar has other code than this one"
    without = {name: one for name, one in members().items() if not name.startswith("opt/site/pybench")}
    what, hint = refusal(written("without", without))
    assert what == f"stack: {tmp_path}/without.oci.tar has no pybench"
    assert hint is not None
    assert "`make container` makes one" in hint
    no_python = {name: one for name, one in members().items() if name != "opt/bin/python"}
    what, _ = refusal(written("no-python", no_python))
    assert what.startswith(f"stack: the Python in {tmp_path}/no-python.oci.tar cannot say what it is: ")


def test_interrupted_twice_its_container_is_gone_and_the_campaign_goes_on(
    stacks: Path, tmp_path: Path, container: Container
) -> None:
    plan, campaign = tmp_path / "plan.yaml", CampaignDirectory(tmp_path / "campaign")
    text = (stacks / "plan.yaml").read_text().replace("image: ", f"image: {stacks}/")
    plan.write_text(text.replace("iterations: 3", "energy_window_s: 100"))
    begin = "import sys; from pybench.cli import main; sys.exit(main())"
    select = ["--out", str(campaign.path), "--filter", "environment=old", "--repetitions", "1", "--engine", "podman"]
    process = subprocess.Popen([sys.executable, "-P", "-c", begin, "run", str(plan), *select])
    (worker,) = wait_for(lambda: workers_of(campaign))
    assert os.readlink(f"/proc/{worker}/ns/pid") != os.readlink("/proc/self/ns/pid")
    interrupt_twice(process)
    assert process.wait(timeout=120) == EXIT_INTERRUPTED
    wait_for(lambda: not containers_of(container))
    assert workers_of(campaign) == []
    assert main(["run", str(plan), *select, "--timeout", "2.5"]) == EXIT_FAILED
    assert [run.read_run()["outcome"] for run in campaign.runs()] == ["timeout"]
    wait_for(lambda: not containers_of(container))


def test_what_the_cases_need_is_asked_for_in_the_image(stacks: Path) -> None:
    case = Case(workload="infer", model="mlp", runtime="onnxruntime", environment="old")
    with pytest.raises(RefusedValuesError) as raised:
        Machine.ask([case], planned={"old": PlannedEnvironment(image=image_of(stacks, "old"))})
    (refused,) = raised.value.values
    assert "onnxruntime cannot be used" in refused.what
    assert refused.hint is not None
    assert "onnxruntime" in refused.hint
    assert refused.hint.endswith("into the image")


@pytest.mark.usefixtures("podman_storage", "own_engine")
def test_a_registry_that_does_not_answer_is_named_with_the_place_in_the_plan(tmp_path: Path, capsys: Captured) -> None:
    image = f"docker://127.0.0.1:9/stack@sha256:{'a' * 64}"
    environments = f"environments:\n  old: {{image: {image}}}\n"
    cases = "matrix:\n  - {workload: noop, environment: [null, old]}\n"
    (tmp_path / "plan.yaml").write_text("schema_version: 1\nname: far\n" + environments + cases)
    campaign = tmp_path / "campaign"
    assert main(["run", str(tmp_path / "plan.yaml"), "--engine", "podman", "--out", str(campaign)]) == EXIT_USAGE
    *_, said = capsys.readouterr().err.splitlines()
    assert said.startswith(f"{tmp_path}/plan.yaml:4:16: `environment`: old: podman cannot take in 127.0.0.1:9/stack@")
    assert "(does the registry answer?" in said
    assert not campaign.exists()
