# SPDX-License-Identifier: Apache-2.0
"""The OCI archive is well-formed in skopeo's eyes, names everything by its digest, and is the same twice."""

import hashlib
import json
import shutil
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import canonical_tar
import oci_archive
import pytest
from steps import EPOCH_S

CONFIG = oci_archive.ImageConfig(
    reference="pybench:test",
    architecture="amd64",
    environment={"PATH": "/bin", "A": "1"},
    entrypoint=("tool",),
    command=("--help",),
    user="1000:1000",
    working_folder="/tmp",
    labels={"tier": "test"},
    epoch_s=EPOCH_S,
)


@pytest.fixture
def layer(tmp_path: Path) -> tuple[Path, str]:
    path = tmp_path / "rootfs.tar"
    members = canonical_tar.with_parents(canonical_tar.file("etc/motd", "hello\n" * 100_000))
    return path, canonical_tar.write(members, path, CONFIG.epoch_s)


def test_the_archive_is_the_same_twice_and_another_user_changes_it(tmp_path: Path, layer: tuple[Path, str]) -> None:
    digests = [oci_archive.write(*layer, CONFIG, tmp_path / f"{number}.tar") for number in range(2)]
    assert digests[0] == digests[1]
    assert (tmp_path / "0.tar").read_bytes() == (tmp_path / "1.tar").read_bytes()
    assert oci_archive.write(*layer, replace(CONFIG, user="0"), tmp_path / "2.tar") != digests[0]


def test_every_blob_is_named_by_its_own_digest(tmp_path: Path, layer: tuple[Path, str]) -> None:
    manifest_sha256 = oci_archive.write(*layer, CONFIG, tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as archive:
        contents = {member.name: archive.extractfile(member).read() for member in archive if member.isreg()}  # type: ignore[union-attr]
    blobs = {name: content for name, content in contents.items() if name.startswith("blobs/")}
    assert len(blobs) == 3
    assert all(name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}" for name, content in blobs.items())
    index = json.loads(contents["index.json"])
    assert index["manifests"][0]["digest"] == f"sha256:{manifest_sha256}"
    manifest = json.loads(blobs[f"blobs/sha256/{manifest_sha256}"])
    config = json.loads(blobs[f"blobs/sha256/{manifest['config']['digest'].removeprefix('sha256:')}"])
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]] == [f"sha256:{layer[1]}"]
    assert manifest["layers"][0]["size"] == layer[0].stat().st_size
    for_docker = json.loads(contents["manifest.json"])[0]
    assert [for_docker["Config"], *for_docker["Layers"]] == [
        f"blobs/{descriptor['digest'].replace(':', '/')}" for descriptor in (manifest["config"], *manifest["layers"])
    ]


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
def test_skopeo_reads_copies_and_agrees_on_the_digest(tmp_path: Path, layer: tuple[Path, str]) -> None:
    digest = oci_archive.write(*layer, CONFIG, tmp_path / "image.tar")
    source, target = f"oci-archive:{tmp_path}/image.tar", f"oci:{tmp_path}/copy:pybench"
    inspected = json.loads(subprocess.check_output(["skopeo", "inspect", source]))
    assert inspected["Digest"] == f"sha256:{digest}"
    assert inspected["Env"] == ["A=1", "PATH=/bin"]
    copy = ["skopeo", "--insecure-policy", "copy", "--quiet", "--preserve-digests", source, target]
    subprocess.run(copy, check=True, capture_output=True)
    assert (tmp_path / "copy" / "blobs" / "sha256" / layer[1]).read_bytes() == layer[0].read_bytes()
