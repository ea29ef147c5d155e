# SPDX-License-Identifier: Apache-2.0
"""What `--container` names is told from its content, and what is damaged, foreign or another image is refused."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from pybench.errors import InputError, UsageError
from pybench.launcher import images
from pybench.launcher.engines import Podman

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "containers"))
import canonical_tar
import oci_archive
from steps import EPOCH_S

CONFIG = oci_archive.ImageConfig(
    reference="pybench:test",
    architecture=images._ARCHITECTURES[os.uname().machine],
    environment={},
    entrypoint=(),
    command=(),
    user="1000:1000",
    working_folder="/",
    labels={},
    epoch_s=EPOCH_S,
)


@dataclass(frozen=True)
class Written:
    archive: Path
    layout: Path
    digest: str
    layer: str


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """A small image as an archive and as a folder."""
    layer = tmp_path / "layer.tar"
    sha256 = canonical_tar.write(canonical_tar.file("motd", "hello\n" * 10_000), layer, CONFIG.epoch_s)
    archive, layout = tmp_path / "image.tar", tmp_path / "layout"
    digest = oci_archive.write(layer, sha256, CONFIG, archive)
    layout.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", layout], check=True)
    return Written(archive, layout, f"sha256:{digest}", sha256)


def test_an_archive_and_a_layout_of_it_are_one_image(written: Written) -> None:
    archive, layout = images.look_into(str(written.archive)), images.look_into(str(written.layout))
    assert (archive.kind, layout.kind) == ("archive", "layout")
    assert archive.digest == layout.digest == written.digest
    assert archive.config == layout.config
    manifest = json.loads((written.layout / "blobs" / written.digest.replace(":", "/")).read_text())
    assert archive.config == manifest["config"]["digest"]


@pytest.mark.container
def test_podman_takes_in_an_archive_and_a_layout_whatever_their_paths(written: Written, podman_storage: Path) -> None:
    folder = written.archive.parent / "Of May: 2, 3"
    folder.mkdir()
    podman = Podman()
    for path in (written.archive, written.layout):
        image = images.look_into(str(path.rename(folder / f"{path.name}:1.0")))
        reference = podman.hold(image)
        assert f"sha256:{reference}" == image.config
        assert podman.ask("image", "inspect", "--format", "{{.Id}}", reference) == reference
        podman.ask("rmi", "--force", reference)


def test_the_digest_asked_for_must_be_the_images(written: Written) -> None:
    assert images.look_into(f"{written.archive}@{written.digest}").digest == written.digest
    with pytest.raises(UsageError, match=f"is {written.digest}, not sha256:0000"):
        images.look_into(f"{written.archive}@sha256:{'0' * 64}")


def test_a_registrys_image_is_named_by_digest_only() -> None:
    digest = f"sha256:{'a' * 64}"
    for name in ("127.0.0.1:5000/group/pybench", "docker://ghcr.io/group/pybench", "ghcr.io/group/pybench:1.0"):
        found = images.look_into(f"{name}@{digest}")
        assert (found.kind, found.digest) == ("registry", digest)
        assert found.location == f"{name.removeprefix('docker://')}@{digest}"
    with pytest.raises(UsageError, match="no reference by digest"):
        images.look_into("ghcr.io/group/pybench:1.0")
    with pytest.raises(UsageError, match="is no digest"):
        images.look_into("ghcr.io/group/pybench@sha256:abc")


@pytest.mark.parametrize("length", [100, 5000, 40_000])
def test_a_truncated_archive_is_refused_wherever_it_breaks_off(written: Written, length: int) -> None:
    content = written.archive.read_bytes()
    assert len(content) > 60_000
    written.archive.write_bytes(content[:length])
    with pytest.raises(InputError, match="is not a complete image"):
        images.look_into(str(written.archive))


def test_a_layer_that_is_cut_off_at_the_end_of_the_file_is_named(written: Written, tmp_path: Path) -> None:
    last = tmp_path / "reordered.tar"
    with tarfile.open(last, "w") as archive:
        for name in ("oci-layout", "index.json", "blobs"):
            archive.add(written.layout / name, name)
        archive.add(written.layout / "blobs" / "sha256" / written.layer, f"blobs/sha256/{written.layer}")
    assert images.look_into(str(last)).digest == written.digest
    last.write_bytes(last.read_bytes()[:-40_000])
    with pytest.raises(InputError, match=rf"blobs/sha256/{written.layer} is missing or cut off"):
        images.look_into(str(last))


def test_a_blob_that_is_not_what_its_name_says_is_refused(written: Written) -> None:
    blob = written.layout / "blobs" / written.digest.replace(":", "/")
    blob.write_text(blob.read_text().replace("layer", "lair"))
    with pytest.raises(InputError, match="does not match the digest in its name"):
        images.look_into(str(written.layout))


def test_a_digest_that_is_a_path_is_refused(written: Written) -> None:
    index = written.layout / "index.json"
    index.write_text(index.read_text().replace(written.digest, "sha256:../../../../etc/passwd"))
    with pytest.raises(InputError, match="is no sha256 digest"):
        images.look_into(str(written.layout))


def test_a_nested_index_leads_to_the_image_for_this_machine(written: Written) -> None:
    index = json.loads((written.layout / "index.json").read_text())
    foreign = {**index["manifests"][0], "platform": {"os": "linux", "architecture": "s390x"}}
    own = {**index["manifests"][0], "platform": {"os": "linux", "architecture": CONFIG.architecture}}
    attestation = {**index["manifests"][0], "platform": {"os": "unknown", "architecture": "unknown"}}
    inner = json.dumps({"manifests": [foreign, own, attestation]}).encode()
    digest = images.hashlib.sha256(inner).hexdigest()
    (written.layout / "blobs" / "sha256" / digest).write_bytes(inner)
    outer = {"manifests": [{"mediaType": images._INDEX_TYPE, "digest": f"sha256:{digest}", "size": len(inner)}]}
    (written.layout / "index.json").write_text(json.dumps(outer))
    assert images.look_into(str(written.layout)).digest == written.digest
    (written.layout / "index.json").write_text(json.dumps({"manifests": [foreign]}))
    with pytest.raises(InputError, match="it contains 0 images for linux"):
        images.look_into(str(written.layout))


def test_a_sif_is_known_by_its_header_and_digested_whole(tmp_path: Path) -> None:
    sif = tmp_path / "image.sif"
    header = images._SIF_HEADER.pack(b"#!/usr/bin/env run-singularity\n", b"SIF_MAGIC\0", b"01\0", b"02\0", b"u" * 16,
                                     0, 0, 0, 0, 4096, 0, 200, 100)  # fmt: skip
    assert struct.calcsize("<32s10s3s3s16s") + 64 == len(header) == 128
    sif.write_bytes(header.ljust(300, b"\0"))
    found = images.look_into(str(sif))
    assert (found.kind, found.config) == ("sif", None)
    assert found.digest == f"sha256:{images.hashlib.sha256(sif.read_bytes()).hexdigest()}"
    sif.write_bytes(header.ljust(299, b"\0"))
    with pytest.raises(InputError, match="it breaks off: 299 of 300 bytes"):
        images.look_into(str(sif))


def test_other_files_and_missing_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    shutil.make_archive(str(tmp_path / "other"), "tar", tmp_path, "text")
    (tmp_path / "folder").mkdir()
    for name in ("text", "empty", "other.tar", "folder"):
        with pytest.raises(InputError, match="is not a complete image"):
            images.look_into(str(tmp_path / name))
    with pytest.raises(UsageError, match="no such file"):
        images.look_into(str(tmp_path / "absent.sif"))
