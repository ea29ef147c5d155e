# SPDX-License-Identifier: Apache-2.0
"""A SIF by our writer runs: its partition under Charliecloud, the whole under a real Apptainer, as a plain user."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import canonical_tar
import pytest
from debian_root import mirror_of_this_machine
from steps import EPOCH_S

import pybench
from pybench.measure import NATIVE_BUILD_ID
from tests.containers.sid import USER, make_root, run_in
from tests.containers.test_sif import DESCRIPTOR, GO, wrap, writer  # noqa: F401  the fixture
from tests.launcher.small_image import PROGRAMS, members
from tests.support.namespaces import has_namespaces

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif(GO is None, reason="SKIPPED: Go is not installed: run `make`"),
    pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="SKIPPED: squashfs-tools are not installed"),
    pytest.mark.skipif(
        any(shutil.which(name) is None for name in PROGRAMS), reason=f"SKIPPED: the small image needs {PROGRAMS}"
    ),
]

ENVIRONMENT = "export PATH=/opt/bin:/usr/bin:/bin PYTHONPATH=/opt/site LD_LIBRARY_PATH=/.singularity.d/libs\n"
RUNNER = """
import json, pathlib, sys
sys.path[:0] = ["/pybench"]
from pybench import runner
from pybench.campaign.directory import CampaignDirectory
from pybench.campaign.resolved_plan import parse_resolved_plan
from pybench.case import Case, case_to_json
from pybench.launcher import open_container
from tests.runner.listening import Quiet
from tests.runner.machines import WillingMachine
folder, idle_s, timeout_s = pathlib.Path(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
campaign = CampaignDirectory(folder)
cases = [case_to_json(Case(workload="noop", energy_window_s=idle_s))]
content = {"schema_version": 1, "name": "trial", "seed": 7, "repetitions": 1, "cases": cases, "criteria": [],
           "require": [], "files": {}}
runner.open_for_running(campaign, content, "")
machine = WillingMachine(launcher=open_container("/images/small: 1.sif", None, lambda text: None))
options = runner.Options(timeout_s=timeout_s)
runner.run_campaign(campaign, parse_resolved_plan(content), options, machine, Quiet())
run = next(campaign.runs())
print(json.dumps({"run": run.read_run(), "environment": run.read_environment()}))
"""


@pytest.fixture(scope="module")
def small_sif(writer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    """The small image as a SIF, in a folder that everybody may read."""
    folder = tmp_path_factory.mktemp("sif")
    folder.chmod(0o755)
    layer, squashfs = folder / "layer.tar", folder / "rootfs.squashfs"
    own = canonical_tar.file(".singularity.d/env/10-docker2singularity.sh", ENVIRONMENT, 0o755)
    canonical_tar.write(canonical_tar.with_parents({**members(), **own}), layer, EPOCH_S)
    with layer.open("rb") as content:
        pack = ["mksquashfs", "-", str(squashfs), "-tar", "-quiet", "-no-progress", "-Xcompression-level", "1"]
        subprocess.run(pack, stdin=content, check=True, capture_output=True)
    layer.unlink()
    assert wrap(writer, squashfs, folder / "small.sif").returncode == 0
    (folder / "small.sif").chmod(0o644)
    return folder / "small.sif"


@pytest.mark.skipif(shutil.which("ch-run") is None, reason="SKIPPED: charliecloud-runtime is not installed")
@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="SKIPPED: /dev/fuse may not be used")
@pytest.mark.skipif(not has_namespaces(), reason="SKIPPED: no user and mount namespaces may be made here")
def test_charliecloud_runs_the_partition(small_sif: Path, tmp_path: Path) -> None:
    content = small_sif.read_bytes()
    offset, size = DESCRIPTOR.unpack_from(content, 4096)[5:7]
    assert struct.unpack_from("<I", content, offset)[0] == 0x73717368  # squashfs's magic
    partition = tmp_path / "rootfs.sqfs"
    partition.write_bytes(content[offset : offset + size])
    command = ["ch-run", "--unset-env=*", "--set-env=PATH=/opt/bin", "--set-env=PYTHONPATH=/opt/site", str(partition),
               "--", "python", "-c", "import pybench.measure; print(pybench.measure.NATIVE_BUILD_ID)"]  # fmt: skip
    environment = {**os.environ, "USER": "user", "HOME": "/tmp"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{NATIVE_BUILD_ID}\n"


@pytest.mark.slow
@pytest.mark.timeout(1200)  # it installs a second Debian
@pytest.mark.skipif(
    os.environ.get("PYBENCH_TEST_APPTAINER") != "1",
    reason="SKIPPED: fetches 300 MB of Debian unstable, takes a minute: PYBENCH_TEST_APPTAINER=1, as in .ci/run",
)
@pytest.mark.skipif(not os.access("/dev/fuse", os.R_OK | os.W_OK), reason="SKIPPED: /dev/fuse may not be used")
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: making a Debian root needs root")
@pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="SKIPPED: mmdebstrap is not installed")
def test_apptainer_runs_inspects_and_verifies_it_and_a_campaign_runs_in_it(small_sif: Path, tmp_path: Path) -> None:
    root, results = tmp_path / "root", tmp_path / "results"
    try:
        make_root(root, mirror_of_this_machine().main)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"SKIPPED: Debian unstable cannot be installed today: {error.stderr.decode()[-500:]}")
    small_sif.with_name("small: 1.sif").hardlink_to(small_sif)  # a colon ends no path here
    results.mkdir()
    os.chown(results, USER, USER)
    repository = Path(__file__).resolve().parents[2]
    package = Path(pybench.__file__).parent
    binds = {small_sif.parent: "/images", results: "/results", package: "/pybench/pybench",
             repository / "tests": "/pybench/tests"}  # fmt: skip

    def apptainer(*words: str) -> subprocess.CompletedProcess[str]:
        return run_in(root, ["apptainer", *words], binds)

    assert apptainer("--version").stdout.startswith("apptainer version 1.")
    where = apptainer(
        "--silent", "exec", "--containall", "/images/small.sif", "python", "-c", "import os; print(os.getuid())"
    )
    assert where.stdout == f"{USER}\n", where.stderr
    # What pybench.launcher takes for a container that never began: Apptainer's own errors, and env's.
    assert apptainer("exec", "--containall", "/images/small.sif", "absent").returncode == 255
    assert apptainer("exec", "--containall", "/images/small.sif", "env", "A=1", "absent").returncode == 127
    assert "Squashfs" in apptainer("sif", "list", "/images/small.sif").stdout
    assert "signature not found" in apptainer("verify", "/images/small.sif").stderr  # unsigned, and otherwise whole

    def outcome(name: str, idle_s: float, timeout_s: float) -> dict[str, dict[str, object]]:
        done = run_in(root, ["python3", "-P", "-c", RUNNER, f"/results/{name}", str(idle_s), str(timeout_s)], binds)
        assert done.returncode == 0, done.stderr
        answer: dict[str, dict[str, object]] = json.loads(done.stdout)
        return answer

    plain = outcome("plain: 1", 0, 60)
    assert plain["run"]["outcome"] == "ok"
    assert plain["environment"]["image_digest"] == f"sha256:{canonical_tar.sha256_of(small_sif)}"
    assert str(plain["environment"]["container_engine"]).startswith("apptainer 1.")
    assert outcome("long", 60, 2.5)["run"]["outcome"] == "timeout"
