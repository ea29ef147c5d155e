# SPDX-License-Identifier: Apache-2.0
"""Makes the corpora of side_by_side.py from text that a Debian machine has, the same from the same files.

    python bench/tokenizer/corpora.py FOLDER

mix    prose and code: licences, /usr/share/doc, the Python standard library, man pages, vim's and Perl's documentation.
       In documents of at most 16 KiB, cut behind a line, without duplicates, shuffled; 64 MiB at most
multi  man pages and vim tutors in other languages, where more than 3 % of the bytes are outside ASCII; 16 MiB at most
zipf   words out of 50,000 random ones, as often as Zipf's law has it; 64 MiB
rand   every word fresh random letters: no cache helps; 64 MiB

NAME.bin holds the text end to end, NAME.off where each document begins and the last ends (64-bit, little-endian).
"""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

DOCUMENT_BYTES_MAX = 16 << 10
DOCUMENT_BYTES_MIN = 256
CORPUS_BYTES = 64 << 20
MULTI_BYTES = 16 << 20
DOC_SUFFIXES = {".txt", ".md", ".rst", "", ".tex"}


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    seen: set[bytes] = set()
    write(folder / "mix", shuffled(mixed_documents(seen), 1), CORPUS_BYTES)
    write(folder / "multi", shuffled(foreign_documents(seen), 2), MULTI_BYTES)
    generator = np.random.default_rng(7)
    write(folder / "zipf", synthetic_documents(generator, vocabulary_size=50_000), CORPUS_BYTES)
    write(folder / "rand", synthetic_documents(generator, vocabulary_size=None), CORPUS_BYTES)


def mixed_documents(seen: set[bytes]) -> Iterator[bytes]:
    share = Path("/usr/share")
    library = Path(sysconfig.get_path("stdlib"))
    return chain(
        documents(files(share / "common-licenses"), seen),
        documents(files(share / "doc", DOC_SUFFIXES), seen, 20 << 20),
        documents(files(library, {".py", ".txt", ".rst"}), seen, 24 << 20),
        *(documents(files(share / "man" / section), seen, 8 << 20) for section in ("man1", "man3", "man7", "man8")),
        documents(files(share / "vim", {".txt"}), seen, 6 << 20),
        documents(files(share / "perl", {".pod", ".pm"}), seen, 8 << 20),
    )


def foreign_documents(seen: set[bytes]) -> Iterator[bytes]:
    manuals = (folder for folder in sorted(Path("/usr/share/man").glob("*")) if not folder.name.startswith("man"))
    tutors = sorted(Path("/usr/share/vim").glob("vim*/tutor"))
    for document in chain.from_iterable(documents(files(folder), seen) for folder in (*manuals, *tutors)):
        if sum(byte > 127 for byte in document) > len(document) * 0.03:
            yield document


def files(folder: Path, suffixes: set[str] | None = None) -> Iterator[Path]:
    """Plain files in a fixed order; the suffix counts without `.gz`."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            is_wanted = suffixes is None or Path(name.removesuffix(".gz")).suffix.lower() in suffixes
            if is_wanted and path.is_file() and not path.is_symlink():
                yield path


def documents(paths: Iterable[Path], seen: set[bytes], limit: int | None = None) -> Iterator[bytes]:
    """What is UTF-8 of these files, cut and without what was `seen` before; `limit` bytes and a document at most."""
    total = 0
    for path in paths:
        for document in cut(read_text(path)):
            digest = hashlib.blake2b(document, digest_size=12).digest()
            if len(document) < DOCUMENT_BYTES_MIN or digest in seen:
                continue
            seen.add(digest)
            yield document
            total += len(document)
            if limit is not None and total >= limit:
                return


def read_text(path: Path) -> bytes:
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        data.decode()
    except (OSError, EOFError, UnicodeDecodeError):
        return b""
    return b"" if b"\0" in data[:4096] else data


def cut(text: bytes) -> Iterator[bytes]:
    begin = 0
    while begin < len(text):
        end = min(len(text), begin + DOCUMENT_BYTES_MAX)
        if end < len(text):
            line_end = text.rfind(b"\n", begin, end)
            end = line_end + 1 if line_end > begin else end
            while text[end] & 0xC0 == 0x80:  # not within a character
                end -= 1
        yield text[begin:end]
        begin = end


def shuffled(found: Iterator[bytes], seed: int) -> list[bytes]:
    every = list(found)
    random.Random(seed).shuffle(every)
    return every


def synthetic_documents(generator: np.random.Generator, vocabulary_size: int | None) -> Iterator[bytes]:
    """Documents of 300 to 1,200 words; without a vocabulary every word is a new one."""
    vocabulary = words(generator, vocabulary_size) if vocabulary_size else None
    weights = 1 / (np.arange(vocabulary_size or 1) + 1.0)
    while True:
        count = 200_000
        if vocabulary:
            drawn = [vocabulary[index] for index in generator.choice(len(vocabulary), count, p=weights / weights.sum())]
        else:
            drawn = words(generator, count)
        begin = 0
        while begin < count:
            length = int(generator.integers(300, 1200))
            yield b" ".join(drawn[begin : begin + length]) + b".\n"
            begin += length


def words(generator: np.random.Generator, count: int) -> list[bytes]:
    """Random words of 2 to 12 letters, with lengths and letters about as frequent as in English."""
    lengths = np.arange(2, 13)
    shares = np.array([0.06, 0.12, 0.16, 0.16, 0.13, 0.11, 0.09, 0.07, 0.05, 0.03, 0.02])
    letters = np.frombuffer(b"etaoinshrdlcumwfgypbvkjxqz", np.uint8)
    letter_weights = 1 / (np.arange(26) + 3.0)
    ends = np.cumsum(generator.choice(lengths, count, p=shares / shares.sum()))
    text = letters[generator.choice(26, int(ends[-1]), p=letter_weights / letter_weights.sum())].tobytes()
    bounds = [0, *ends.tolist()]
    return [text[begin:end] for begin, end in pairwise(bounds)]


def write(path: Path, found: Iterable[bytes], limit: int) -> None:
    offsets, digest = [0], hashlib.sha256()
    with path.with_suffix(".bin").open("wb") as file:
        for document in found:
            file.write(document)
            digest.update(document)
            offsets.append(offsets[-1] + len(document))
            if offsets[-1] >= limit:
                break
    np.array(offsets, "<u8").tofile(path.with_suffix(".off"))
    print(f"{path.name}: {len(offsets) - 1} documents, {offsets[-1] / 1e6:.1f} MB, sha256 {digest.hexdigest()}")


if __name__ == "__main__":
    main()
