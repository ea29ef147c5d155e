# SPDX-License-Identifier: Apache-2.0
"""The SIF writer gives the same bytes twice, with a header and a partition that other tools find.

The header is read here by hand, after the format's description (github.com/sylabs/sif, pkg/sif/sif.go).
"""

import os
import shutil
import struct
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from steps import EPOCH_S

IDENTITY = "sha256:" + "a" * 64
DESCRIPTOR = struct.Struct("<i?IIIqqqqqqq128s384s")  # little-endian, packed: 585 bytes
PARTITION, GENERIC_JSON = 0x4004, 0x4006

# The toolchain is a wheel in the environment that runs the tests; pytest may have been started without its PATH.
GO = shutil.which("go", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
pytestmark = [
    pytest.mark.skipif(GO is None, reason="Go is not installed: run `make`"),
    pytest.mark.skipif(shutil.which("mksquashfs") is None, reason="Debian's squashfs-tools are not installed"),
]


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory, containers: Path) -> Path:
    binary = tmp_path_factory.mktemp("bin") / "sif"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    command = [str(GO), "build", "-trimpath", "-buildvcs=false", "-o", str(binary), "."]
    built = subprocess.run(command, cwd=containers / "sif", env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return binary


@pytest.fixture
def squashfs(tmp_path: Path) -> Path:
    tree, image = tmp_path / "tree", tmp_path / "rootfs.squashfs"
    tree.mkdir()
    (tree / "hello").write_text("hello\n" * 10_000)
    pack = ["mksquashfs", str(tree), str(image), "-quiet", "-no-progress", "-all-root"]
    subprocess.run(pack, check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH_S)})
    return image


def wrap(writer: Path, squashfs: Path, output: Path, identity: str = IDENTITY) -> subprocess.CompletedProcess[str]:
    metadata = squashfs.with_name("inspect.json")
    metadata.write_text('{"type":"container"}')
    return subprocess.run(
        [writer, "-squashfs", squashfs, "-metadata", metadata, "-identity", identity, "-epoch", str(EPOCH_S),
         "-output", output],
        capture_output=True, text=True,
    )  # fmt: skip


def test_the_same_input_gives_the_same_bytes_and_another_identity_does_not(
    writer: Path, squashfs: Path, tmp_path: Path
) -> None:
    for name, identity in (("one", IDENTITY), ("two", IDENTITY), ("three", "sha256:" + "b" * 64)):
        assert wrap(writer, squashfs, tmp_path / name, identity).returncode == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (tmp_path / "one").read_bytes() != (tmp_path / "three").read_bytes()


def test_the_header_names_the_format_the_architecture_and_the_fixed_time(
    writer: Path, squashfs: Path, tmp_path: Path
) -> None:
    assert wrap(writer, squashfs, tmp_path / "image.sif").returncode == 0
    header = (tmp_path / "image.sif").read_bytes()[:128]
    launch, magic, version, architecture, identity, created, modified = struct.unpack_from("<32s10s3s3s16sqq", header)
    assert launch.rstrip(b"\0") == b"#!/usr/bin/env run-singularity\n"
    assert (magic, version, architecture) == (b"SIF_MAGIC\0", b"01\0", b"02\0")
    assert uuid.UUID(bytes=identity) == uuid.uuid5(uuid.NAMESPACE_OID, IDENTITY)
    assert (created, modified) == (EPOCH_S, EPOCH_S)


def test_the_partition_lies_at_its_offset_and_is_the_squashfs_itself(
    writer: Path, squashfs: Path, tmp_path: Path
) -> None:
    assert wrap(writer, squashfs, tmp_path / "image.sif").returncode == 0
    content = (tmp_path / "image.sif").read_bytes()
    descriptors = [DESCRIPTOR.unpack_from(content, 4096 + number * DESCRIPTOR.size) for number in range(2)]
    assert [descriptor[0] for descriptor in descriptors] == [PARTITION, GENERIC_JSON]
    offset, size = descriptors[0][5:7]
    assert offset % 4096 == 0
    assert content[offset : offset + size] == squashfs.read_bytes()
    assert struct.unpack_from("<ii", descriptors[0][13]) == (1, 2)  # squashfs, the primary system partition
    listed = subprocess.check_output(["unsquashfs", "-l", "-o", str(offset), tmp_path / "image.sif"], text=True)
    assert "squashfs-root/hello" in listed


def test_a_missing_squashfs_is_one_error_and_leaves_nothing(writer: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    failed = wrap(writer, tmp_path / "absent.squashfs", folder / "image.sif")
    assert failed.returncode == 1
    assert "absent.squashfs" in failed.stderr
    assert list(folder.iterdir()) == []
