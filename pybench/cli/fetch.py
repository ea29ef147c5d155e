# SPDX-License-Identifier: Apache-2.0
"""`pybench fetch`: a published campaign, with every byte checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from pybench.cli.options import JsonOption, PlainHttpOption, RegistryTimeoutOption
from pybench.cli.show import print_json
from pybench.errors import UsageError

if TYPE_CHECKING:
    from pybench.publication import FetchResult


def fetch(
    reference: Annotated[
        str, typer.Argument(metavar="REF", help="HOST/NAME:TAG or HOST/NAME@sha256:..., an OCI layout, or an archive.")
    ],
    out: Annotated[
        Optional[Path], typer.Option("--out", "-o", metavar="DIR", help="Folder to write to [default: results/<name>].")
    ] = None,
    expect: Annotated[
        Optional[str],
        typer.Option(
            "--expect", metavar="SHA256", help="Required sha256 of the contents, as `pybench publish` printed."
        ),
    ] = None,
    key: Annotated[
        Optional[Path],
        typer.Option("--key", metavar="FILE", help="File of SSH public keys; one of them must have signed."),
    ] = None,
    max_gb: Annotated[
        float, typer.Option("--max-gb", metavar="GB", min=0.001, help="Largest size after unpacking, in GB.")
    ] = 20.0,
    plain_http: PlainHttpOption = None,
    timeout: RegistryTimeoutOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Fetch a published campaign and check every byte.

    Nothing of it is executed, and nothing is written before all of it is checked. The last line printed is its folder.
    """
    from pybench.publication import FetchChecks, Limits, RegistryAccess, parse
    from pybench.publication import fetch as bring

    checks = FetchChecks(_digest(expect), key, Limits(bytes=int(max_gb * 1e9)))
    fetched = bring(parse(reference), out, RegistryAccess(plain_http, timeout), checks)
    if as_json:
        print_json(_fetched_json(fetched))
        return
    print(f"contents sha256:{fetched.contents_sha256}: {fetched.files} files, signature: {fetched.signed}")
    if fetched.digest:
        print(f"artefact {fetched.digest}")
    print(fetched.folder)


def _digest(text: str | None) -> str | None:
    plain = (text or "").removeprefix("sha256:")
    if text is not None and (len(plain) != 64 or set(plain) - set("0123456789abcdef")):
        raise UsageError(
            f"--expect {text} is not a sha256", hint="give 64 hexadecimal digits, as printed by `pybench publish`"
        )
    return plain or None


def _fetched_json(fetched: FetchResult) -> dict[str, Any]:
    return {
        "directory": str(fetched.folder),
        "contents": f"sha256:{fetched.contents_sha256}",
        "artefact": fetched.digest,
        "files": fetched.files,
        "signature": fetched.signed,
    }
