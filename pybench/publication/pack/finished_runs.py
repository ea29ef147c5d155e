# SPDX-License-Identifier: Apache-2.0
"""The digests of finished runs, on their way into a publication and out of one.

Publishing replaces personal data in some files and leaves others out, so the digests that a run finished with cannot be
those of its published files. `list_published` writes a new `complete` and says in it what was done.
"""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from pybench.campaign import digests, storage
from pybench.campaign.digests import Digests
from pybench.campaign.directory import CampaignDirectory
from pybench.errors import CorruptError


def list_published(source: Path, staged: Path, name: str, rewritten: Set[str]) -> None:
    """Writes `staged / name`, the `complete` of one published run, from the campaign's own, `source`.

    Files named in `rewritten` get the digest of their published bytes, all others keep the stored digest.
    A digest of the original text is left out, because it would confirm a guess of what was replaced.
    A run without digests stays so, because publishing cannot vouch for its files.
    """
    content = source.read_bytes()
    if not content:
        return
    stored = digests.parse(content, source)
    target = staged / name
    published = {file: path for file, path in digests.files_of(target.parent) if file in stored.files}
    new = {file for file, path in published.items() if path.relative_to(staged).as_posix() in rewritten}
    listed = Digests(
        files={
            file: storage.sha256_of(path) if file in new else stored.files[file] for file, path in published.items()
        },
        rewritten=tuple({*stored.rewritten, *new} & set(published)),
        left_out=stored.left_out + len(stored.files) - len(published),
    )
    target.write_bytes(digests.render(listed))


def check_fetched(folder: Path, where: str) -> None:
    """Raises `CorruptError` for a finished run whose files are not those that it was published with.

    `where`: what the publication was fetched from, for the error.
    """
    for run in CampaignDirectory(folder).finished():
        try:
            digests.check(run.path)
        except CorruptError as error:
            raise CorruptError(f"{where}: {error.message.replace(f'{folder}/', '')}") from error
