# SPDX-License-Identifier: Apache-2.0
"""SHA256SUMS: read back as it was written, understood by sha256sum, and no way out of the folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pybench.errors import CorruptError
from pybench.publication.pack import sums
from tests.publication.conftest import Published

ONE = "0" * 64


def test_the_list_reads_back() -> None:
    digests = {"runs/b/x.json": "a" * 64, "plan.yaml": "b" * 64}
    assert sums.parse(sums.render(digests), "here") == digests


def test_the_digest_of_the_contents_is_gos_hash1_in_hexadecimal() -> None:
    # sha256 over "<hex of the file>  <name>\n", sorted by name, as golang.org/x/mod/sumdb/dirhash documents it.
    listed = f"{'b' * 64}  plan.yaml\n{'a' * 64}  runs/x\n".encode()
    assert sums.digest_of({"runs/x": "a" * 64, "plan.yaml": "b" * 64}) == sums.hash_bytes(listed)


@pytest.mark.parametrize(
    "name",
    [
        "../plan.yaml", "/etc/passwd", "runs/../../x", "runs//x", "runs/./x", ".ssh/authorized_keys", "runs/.hidden",
        "runs/x/", "report/a b", "report/\\x", "elsewhere/x", "anything.txt", "runs/\u00e4", "-rf", "runs/-rf",
        "runs/" + "x" * 240, "~/x", "SHA256SUMS",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_or_is_odd_is_refused(name: str) -> None:
    with pytest.raises(CorruptError):
        sums.parse(f"{ONE}  {name}\n".encode(), "the list")


@pytest.mark.parametrize(
    "listed",
    [
        f"{ONE}  plan.yaml\n{ONE}  plan.yaml\n",
        f"{ONE}  runs/a\n{ONE}  runs/a/b\n",
        f"{ONE}  runs/b\n{ONE}  runs/a\n",
        f"{ONE} plan.yaml\n",
        f"{ONE[:-1]}  plan.yaml\n",
        f"{ONE}  plan.yaml",
        f"{ONE}  plan.yaml\r\n",
        "\n",
    ],
)
def test_a_list_that_pybench_would_not_write_is_refused(listed: str) -> None:
    with pytest.raises(CorruptError):
        sums.parse(listed.encode(), "the list")


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum is not installed")
def test_sha256sum_agrees(published: Published) -> None:
    folder: Path = published.package.folder
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", sums.SUMS], cwd=folder, check=True)
