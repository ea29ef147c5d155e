# SPDX-License-Identifier: Apache-2.0
"""A detached signature over SHA256SUMS, by OpenSSH (`ssh-keygen -Y`), as git signs commits.

Everybody who pushes code has such a key and the program; a hardware key or an agent works as it does for git. The
signature covers every file through its digest, and is the same file for the OCI artefact and the zip. Without pybench:

    ssh-keygen -Y verify -f allowed_signers -I publisher -n pybench-publication -s SHA256SUMS.sig < SHA256SUMS
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from pybench.errors import CorruptError, PybenchError, UsageError

NAMESPACE = "pybench-publication"  # a signature made for something else is not one for this
_SIGNER = "publisher"
_TIMEOUT_S = 120.0  # a person may have to type a passphrase or touch a key


def check_key(key: Path) -> None:
    """Whether there is one, before work is done that ends with signing."""
    if not key.is_file():
        raise UsageError(f"there is no key at {key}", hint="give an SSH key, such as ~/.ssh/id_ed25519")


def sign(sums: Path, signature: Path, key: Path) -> None:
    """Signs the file `sums` with an SSH key: a private one, or a public one whose other half an agent holds."""
    with tempfile.TemporaryDirectory(prefix="pybench-") as folder:
        copy = Path(folder) / sums.name
        copy.write_bytes(sums.read_bytes())
        done = _ssh_keygen("sign", "-f", str(key), "-n", NAMESPACE, str(copy))
        if done.returncode != 0:
            raise UsageError(
                f"{key} did not sign: {_said(done)}",
                hint="give an SSH private key, or a public key whose private key is in your SSH agent",
            )
        signature.write_bytes(copy.with_name(f"{copy.name}.sig").read_bytes())


def verify(content: bytes, signature: bytes, key: Path) -> None:
    """Raises `CorruptError` unless `signature` is of `content` and by `key`, a file with one SSH public key a line."""
    try:
        keys = [line for line in key.read_text(encoding="ascii").splitlines() if line.strip() and line[0] != "#"]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the public key {key}: {error}") from error
    with tempfile.TemporaryDirectory(prefix="pybench-") as folder:
        allowed, stored = Path(folder) / "allowed_signers", Path(folder) / "signature"
        allowed.write_text("".join(f'{_SIGNER} namespaces="{NAMESPACE}" {line}\n' for line in keys))
        stored.write_bytes(signature)
        arguments = ("-f", str(allowed), "-I", _SIGNER, "-n", NAMESPACE, "-s", str(stored))
        done = _ssh_keygen("verify", *arguments, content=content)
    if done.returncode != 0:
        raise CorruptError(
            f"the signature is not by {key}: {_said(done)}",
            hint="another person published this, or the list of files changed after signing",
        )


def _ssh_keygen(action: str, *arguments: str, content: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", action, *arguments],
            input=content,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise PybenchError(
            "ssh-keygen is not installed, so nothing can be signed or verified",
            hint="install OpenSSH's client (Debian: openssh-client)",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise PybenchError(f"ssh-keygen did not answer for {_TIMEOUT_S:.0f} s") from error


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or done.stdout).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"ssh-keygen exited with {done.returncode}"
