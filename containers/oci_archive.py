# SPDX-License-Identifier: Apache-2.0
"""Write an OCI image archive with one uncompressed layer, without a container engine.

From the OCI image specification 1.1 (image-layout, manifest, config). The layer is not compressed, so that its
digest is its diff_id and no compressor's version enters the image's identity. It writes no image index over several
architectures, and pushes nowhere: `skopeo copy oci-archive:FILE docker://...` does.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import canonical_tar

_MEDIA = "application/vnd.oci.image"


@dataclass(frozen=True)
class ImageConfig:
    """What a container engine needs to start the image."""

    reference: str
    architecture: str
    environment: Mapping[str, str]
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    user: str
    working_folder: str
    labels: Mapping[str, str]
    epoch_s: int


def write(layer: Path, layer_sha256: str, image: ImageConfig, archive: Path) -> str:
    """Write `archive` from the layer's tar; return the sha256 of its manifest, which is the image's digest."""
    config = _json(_config(image, layer_sha256))
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_MEDIA}.manifest.v1+json",
            "config": _descriptor("config.v1+json", config),
            "layers": [
                {
                    "mediaType": f"{_MEDIA}.layer.v1.tar",
                    "digest": f"sha256:{layer_sha256}",
                    "size": layer.stat().st_size,
                }
            ],
        }
    )
    index = {
        "schemaVersion": 2,
        "manifests": [
            {
                **_descriptor("manifest.v1+json", manifest),
                "annotations": {"org.opencontainers.image.ref.name": image.reference},
            }
        ],
    }
    # What `docker load` reads before Docker 25; it names the same blobs, and the image's digest does not know of it.
    for_docker = [
        {
            "Config": f"blobs/sha256/{_sha256(config)}",
            "RepoTags": [image.reference],
            "Layers": [f"blobs/sha256/{layer_sha256}"],
        }
    ]
    members = {
        **canonical_tar.file("manifest.json", _json(for_docker)),
        **canonical_tar.file("oci-layout", _json({"imageLayoutVersion": "1.0.0"})),
        **canonical_tar.file("index.json", _json(index)),
        **_blob(config),
        **_blob(manifest),
        **_layer_blob(layer, layer_sha256),
    }
    canonical_tar.write(canonical_tar.with_parents(members), archive, image.epoch_s)
    return _sha256(manifest)


def _config(image: ImageConfig, layer_sha256: str) -> dict[str, Any]:
    created = datetime.fromtimestamp(image.epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "created": created,
        "architecture": image.architecture,
        "os": "linux",
        "config": {
            "User": image.user,
            "Env": [f"{name}={value}" for name, value in sorted(image.environment.items())],
            "Entrypoint": list(image.entrypoint),
            "Cmd": list(image.command),
            "WorkingDir": image.working_folder,
            "Labels": dict(image.labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_sha256}"]},
        "history": [{"created": created, "created_by": "containers/build.py"}],
    }


def _descriptor(kind: str, content: str) -> dict[str, Any]:
    return {
        "mediaType": f"{_MEDIA}.{kind}",
        "digest": f"sha256:{_sha256(content)}",
        "size": len(content.encode()),
    }


def _blob(content: str) -> canonical_tar.Members:
    return canonical_tar.file(f"blobs/sha256/{_sha256(content)}", content)


def _layer_blob(layer: Path, layer_sha256: str) -> canonical_tar.Members:
    header = tarfile.TarInfo(f"blobs/sha256/{layer_sha256}")
    header.size, header.mode = layer.stat().st_size, 0o644
    return {header.name: canonical_tar.Member(header, lambda: layer.open("rb"))}


def _sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
