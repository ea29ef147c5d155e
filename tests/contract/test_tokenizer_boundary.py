# SPDX-License-Identifier: Apache-2.0
"""The C boundary of the tokenizer: its header, what the object exports, and what bad calls get."""

from __future__ import annotations

import ctypes
import itertools
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import cffi
import numpy as np
import pybench_tokenizer
import pytest
from pybench_tokenizer import (
    ArgumentError,
    FileError,
    FormatError,
    IdError,
    Tokenizer,
    UnsupportedError,
    Utf8Error,
    shared_object,
)

from pybench.preprocess.vocabulary import find_tokenizer

VOCABULARY = find_tokenizer("tok32k")
ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "tokenizer-rs/include/pybench_tokenizer.h"


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(VOCABULARY)


def declarations() -> tuple[cffi.FFI, list[str]]:
    """The header without its preprocessor lines, and the names of its functions."""
    text = HEADER.read_text("utf-8")
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif", "", text, flags=re.S)
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    ffi = cffi.FFI()
    ffi.cdef(text)
    return ffi, sorted(set(re.findall(r"\b(pbt_\w+)\(", re.sub(r"/\*.*?\*/", "", text, flags=re.S))))


def test_the_header_declares_what_rust_exports() -> None:
    ffi, names = declarations()
    header = ffi.dlopen(str(pybench_tokenizer.object_path()))
    assert names == sorted(name for name in dir(shared_object.lib) if name.startswith("pbt_"))
    for name in names:
        generated = str(shared_object.ffi.typeof(getattr(shared_object.lib, name)))
        assert str(ffi.typeof(getattr(header, name))) == generated.replace("struct ", ""), name


def test_the_object_exports_nothing_else() -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    path = str(pybench_tokenizer.object_path())
    listed = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in listed.splitlines()}
    assert {name for name in exported if name.startswith("pbt_")} == set(declarations()[1])
    assert {name for name in exported if not name.startswith(("pbt_", "rust_eh_personality"))} == set()


def test_the_header_is_good_c_and_good_cpp() -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    for language, standard in (("c", "c11"), ("c++", "c++17")):
        command = [compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-"]
        subprocess.run(command, input=f'#include "{HEADER}"\n', text=True, check=True)


def test_header_object_and_package_agree_on_the_abi_version() -> None:
    (version,) = re.findall(r"#define PBT_ABI_VERSION (\d+)u", HEADER.read_text("utf-8"))
    another_loader = ctypes.CDLL(str(pybench_tokenizer.object_path()))
    assert int(version) == shared_object.ABI_VERSION == another_loader.pbt_abi_version()


def test_statuses_have_the_numbers_of_the_header() -> None:
    defined = dict(re.findall(r"#define PBT_(ERROR_\w+) (\d)", HEADER.read_text("utf-8")))
    python = {name: str(value) for name, value in vars(shared_object).items() if name.startswith("ERROR_")}
    assert python.items() <= defined.items()
    rust = (ROOT / "tokenizer-rs/src/ffi/crossing.rs").read_text("utf-8")
    numbers = {f"ERROR_{name.upper()}": number for name, number in re.findall(r"^    (\w+) = (\d),$", rust, flags=re.M)}
    assert numbers == defined
    go = (ROOT / "orchestrator-go/internal/tokenizer/tokenizer.go").read_text("utf-8")
    statuses = re.findall(r"^\tstatus(\w+) += (\d)$", go, flags=re.M)
    numbers = {f"ERROR_{name.upper()}": number for name, number in statuses if name != "OK"}
    assert len(numbers) >= 7
    assert numbers.items() <= defined.items()


def test_the_version_is_that_of_the_package() -> None:
    assert pybench_tokenizer.build_id() == "pybench-tokenizer 0.1.0"


def test_the_object_needs_no_python_symbol() -> None:
    code = f"import ctypes, sys; ctypes.CDLL({str(pybench_tokenizer.object_path())!r}, ctypes.RTLD_LOCAL | 2)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert b"PyObject" not in pybench_tokenizer.object_path().read_bytes()


@pytest.mark.parametrize("offsets", [[0, 3, 2], [4, 1, 5], [0, 6], [-1, 3], [], [[0, 1]], [0.0, 1.0], [2**64 - 1, 5]])
def test_bad_offsets_are_an_error(tokenizer: Tokenizer, offsets: list[int]) -> None:
    array = np.array(offsets, np.uint64) if offsets == [2**64 - 1, 5] else np.array(offsets)
    with pytest.raises(ArgumentError):
        tokenizer.encode_batch(b"hello", array)


def test_offsets_of_any_integer_type_and_any_beginning_work(tokenizer: Tokenizer) -> None:
    text = "dröp this".encode()
    for dtype in (np.int32, np.int64, np.uint32, np.uint64):
        ids, id_offsets = tokenizer.encode_batch(text, np.array([6, 6, 10], dtype))
        assert (tokenizer.decode(ids), id_offsets.tolist()) == (b"this", [0, 0, len(ids)])
    assert [len(part) for part in tokenizer.encode_batch(b"", np.array([0]))] == [0, 1]


@pytest.mark.parametrize("text", [bytearray(b"one two"), memoryview(b"one two"), np.frombuffer(b"one two", np.uint8)])
def test_any_contiguous_buffer_is_text(tokenizer: Tokenizer, text: bytearray) -> None:
    assert tokenizer.encode(text).tolist() == tokenizer.encode("one two").tolist()


def test_a_buffer_with_gaps_is_an_error(tokenizer: Tokenizer) -> None:
    with pytest.raises(ArgumentError):
        tokenizer.encode_batch(memoryview(b"one two")[::2], np.array([0, 4]))
    with pytest.raises(ArgumentError):
        tokenizer.encode(memoryview(b"one two")[::2])


@pytest.mark.parametrize(
    ("text", "position"),
    [(b"\xff", 0), (b"abc\x80", 3), ("é".encode()[:1], 0), (b"ok " * 100 + b"\xed\xa0\x80", 300), (b"a\xc0\x80", 1)],
)
def test_text_that_is_not_utf8_is_named_by_its_first_bad_byte(tokenizer: Tokenizer, text: bytes, position: int) -> None:
    with pytest.raises(Utf8Error) as caught:
        tokenizer.encode(text)
    assert caught.value.position == position
    with pytest.raises(UnicodeDecodeError) as judge:
        text.decode()
    assert judge.value.start == position


def test_the_position_counts_from_the_beginning_of_the_batch(tokenizer: Tokenizer) -> None:
    with pytest.raises(Utf8Error) as caught:
        tokenizer.encode_batch("né".encode() + b"o\xff", np.array([0, 3, 5]))
    assert caught.value.position == 4
    with pytest.raises(Utf8Error) as caught:
        tokenizer.encode_batch("né".encode(), np.array([0, 2, 3]))
    assert caught.value.position == 1


def test_an_encoder_goes_on_after_an_error(tokenizer: Tokenizer) -> None:
    expected = tokenizer.encode("it works").tolist()
    with pytest.raises(Utf8Error):
        tokenizer.encode(b"it works\xff")
    assert tokenizer.encode("it works").tolist() == expected


def test_ids_outside_the_vocabulary_are_named_by_their_index(tokenizer: Tokenizer) -> None:
    for bad in (32_000, 65_536, -1, 2**40):
        with pytest.raises(IdError) as caught:
            tokenizer.decode([5, 6, bad])
        assert caught.value.position == 2
    with pytest.raises(ArgumentError):
        tokenizer.decode(np.array([0.5]))
    assert tokenizer.decode([]) == b""


def test_the_object_itself_checks_ids_too(tokenizer: Tokenizer) -> None:
    ffi, lib = shared_object.ffi, shared_object.lib
    ids, count, position = ffi.new("uint16_t[]", [5, 40_000]), ffi.new("size_t *"), ffi.new("size_t *")
    status = lib.pbt_decode(tokenizer._model, ids, 2, ffi.NULL, 0, count, position)
    assert (status, position[0]) == (shared_object.ERROR_ID, 1)


def test_null_pointers_are_refused() -> None:
    ffi, lib = shared_object.ffi, shared_object.lib
    null = ffi.NULL
    assert lib.pbt_model_load(null, 5, null, null, 0, null) == shared_object.ERROR_ARGUMENT
    assert lib.pbt_encode_batch(null, null, null, 0, null, 0, null, null, null) == shared_object.ERROR_ARGUMENT
    assert lib.pbt_worker_new(null, 0, null) == shared_object.ERROR_ARGUMENT
    assert lib.pbt_decode(null, null, 0, null, 0, null, null) == shared_object.ERROR_ARGUMENT
    assert lib.pbt_model_token_to_id(null, null, 0, null) == shared_object.ERROR_ARGUMENT
    assert (lib.pbt_model_vocab_size(null), lib.pbt_model_id_bytes(null), lib.pbt_worker_bytes(null)) == (0, 0, 0)
    assert lib.pbt_model_bytes(null) == 0
    lib.pbt_model_free(null)
    lib.pbt_worker_free(null)


def test_a_message_is_cut_to_the_room_there_is() -> None:
    ffi, lib = shared_object.ffi, shared_object.lib
    for capacity in (0, 1, 10):
        model, message_bytes = ffi.new("pbt_model **"), ffi.new("size_t *")
        message = ffi.new("char[]", 16)
        status = lib.pbt_model_load(b"nonsense", 8, model, message, capacity, message_bytes)
        assert (status, message_bytes[0], model[0]) == (shared_object.ERROR_FORMAT, capacity, ffi.NULL)
        assert bytes(ffi.buffer(message))[capacity:] == bytes(16 - capacity)


def test_a_small_buffer_is_told_what_it_needs_at_most(tokenizer: Tokenizer) -> None:
    ffi, lib = shared_object.ffi, shared_object.lib
    text, worker = b"the quick brown fox", tokenizer._take_worker()
    needed = len(tokenizer.encode(text))
    offsets, id_offsets = ffi.new("uint64_t[]", [0, len(text)]), ffi.new("uint64_t[]", 2)
    count, position = ffi.new("size_t *"), ffi.new("size_t *")
    for capacity in range(needed + 1):
        ids = ffi.new("uint16_t[]", [0xFFFF] * (needed + 8))
        status = lib.pbt_encode_batch(worker, text, offsets, 1, ids, capacity, id_offsets, count, position)
        assert list(ids)[capacity:] == [0xFFFF] * (needed + 8 - capacity)
        if capacity < needed:
            assert (status, count[0]) == (shared_object.ERROR_CAPACITY, len(text))
        else:
            assert (status, count[0]) == (shared_object.OK, needed)


@pytest.mark.parametrize("entries", [-1, 3, 100, 1 << 25])
def test_an_impossible_cache_size_is_an_error(entries: int) -> None:
    with pytest.raises(ArgumentError):
        Tokenizer.from_file(VOCABULARY, cache_entries=entries)
    if entries > 0:
        model = Tokenizer.from_file(VOCABULARY, cache_entries=0)._model
        place = shared_object.ffi.new("pbt_worker **")
        assert shared_object.lib.pbt_worker_new(model, entries, place) == shared_object.ERROR_ARGUMENT


def test_a_worker_says_what_it_holds() -> None:
    sizes = [Tokenizer.from_file(VOCABULARY, cache_entries=entries).worker_bytes() for entries in (0, 2, 1 << 10)]
    # 32 bytes for each entry; for each 32 of them one of 128 for longer words, for each 512 one of 320, two at least.
    assert sizes[1] - sizes[0] == 64 + 256 + 640
    assert sizes[2] - sizes[0] == (32 << 10) + (4 << 10) + 640
    # A table larger than the first is grown into: meanwhile the one that is a quarter of it is there, too.
    largest = Tokenizer.from_file(VOCABULARY, cache_entries=1 << 19).worker_bytes()
    assert largest - sizes[0] == ((18 << 20) + 1024 * 320) * 5 // 4


def test_worker_and_model_may_be_freed_in_any_order() -> None:
    tokenizer = Tokenizer.from_file(VOCABULARY)
    expected = tokenizer.encode("still here").tolist()
    shared_object.ffi.release(tokenizer._model)
    assert tokenizer.encode("still here").tolist() == expected
    shared_object.ffi.release(tokenizer._take_worker())


def test_there_are_as_many_workers_as_calls_at_one_time(tokenizer: Tokenizer) -> None:
    """Threads that come one after the other share one, and what it has learned; so do calls that failed."""
    one = Tokenizer.from_file(VOCABULARY)
    for _ in range(5):
        thread = threading.Thread(target=one.encode, args=("some text",))
        thread.start()
        thread.join()
    with pytest.raises(Utf8Error):
        one.encode(b"\xff")
    assert (one.worker_bytes(), len(one._idle)) == (tokenizer.worker_bytes(), 1)


def test_threads_share_one_tokenizer(tokenizer: Tokenizer) -> None:
    text = (ROOT / "tokenizer-rs/src/model.rs").read_bytes() * 20
    expected, found = tokenizer.encode(text).tolist(), []
    threads = [threading.Thread(target=lambda: found.append(tokenizer.encode(text).tolist())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_the_gil_is_free_while_rust_works(tokenizer: Tokenizer) -> None:
    text = b"some words to encode, " * 1_000_000
    worker = threading.Thread(target=tokenizer.encode, args=(text,))
    worker.start()
    steps = 0
    while worker.is_alive():
        steps += 1
    assert steps > 1000  # with the GIL held it would be a handful


def test_tokens_are_found_by_their_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.token_to_id("<|endoftext|>") == 0
    assert tokenizer.token_to_id("Ġ") == tokenizer.encode(" ")[0]
    with pytest.raises(IdError):
        tokenizer.token_to_id("no such token")


def test_a_tokenizer_file_cut_anywhere_is_an_error_and_nothing_worse() -> None:
    json = VOCABULARY.read_bytes()
    edges = itertools.chain(range(0, 2_000, 7), range(2_000, len(json), 40_009), range(len(json) - 60, len(json) - 2))
    for end in edges:
        with pytest.raises(FormatError):
            Tokenizer(json[:end])


def test_a_tokenizer_file_with_changed_bytes_never_crashes() -> None:
    json = VOCABULARY.read_bytes()
    chance = np.random.default_rng(1)
    refused = 0
    for _ in range(100):
        changed = bytearray(json)
        changed[int(chance.integers(0, 3_000))] = int(chance.integers(0, 256))
        try:
            Tokenizer(bytes(changed), cache_entries=0).encode("some text")
        except (FormatError, UnsupportedError):
            refused += 1
    assert refused > 20


def test_a_missing_a_huge_and_an_unreadable_file_are_errors_that_name_it(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"absent\.json"):
        Tokenizer.from_file(tmp_path / "absent.json")
    with pytest.raises(FileError, match="directory"):
        Tokenizer.from_file(tmp_path)
    huge = tmp_path / "huge.json"
    with huge.open("wb") as file:
        file.truncate(1 << 29)
    with pytest.raises(FileError, match=r"huge\.json: 536870912 bytes"):
        Tokenizer.from_file(huge)


def test_a_refused_file_is_named_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(VOCABULARY.read_text("utf-8").replace('"normalizer": null', '"normalizer": {"type": "NFC"}'))
    with pytest.raises(UnsupportedError, match=r'mine\.json: normalizer "NFC"'):
        Tokenizer.from_file(path)


def test_a_list_of_documents_is_a_buffer_with_offsets(tokenizer: Tokenizer) -> None:
    documents = ["dröp", b"", bytearray(b"this"), memoryview(b" word"), ""]
    text = "dröpthis word".encode()
    listed, buffered = tokenizer.encode_batch(documents), tokenizer.encode_batch(text, np.array([0, 5, 5, 9, 14, 14]))
    assert [part.tolist() for part in listed] == [part.tolist() for part in buffered]
    for bad in ("one text", b"one text", ["a", 1], [np.array([1, 2])], ["\ud800"], 5):
        with pytest.raises(ArgumentError):
            tokenizer.encode_batch(bad)
    with pytest.raises(ArgumentError, match="document 1 is of type int"):
        tokenizer.encode_batch(["a", 1])
    with pytest.raises(ArgumentError, match="half a surrogate pair"):
        tokenizer.encode("\ud800")


@pytest.mark.parametrize("chunk_bytes", [1, 7, 1 << 20])
def test_a_stream_gives_the_ids_of_each_document_in_order(tokenizer: Tokenizer, chunk_bytes: int) -> None:
    documents = ["it's", b"", "a stream", b"of documents"] * 5
    found = tokenizer.encode_stream(iter(documents), chunk_bytes=chunk_bytes)
    assert [ids.tolist() for ids in found] == [tokenizer.encode(one).tolist() for one in documents]


def test_a_stream_of_anything_else_is_refused_when_its_turn_comes(tokenizer: Tokenizer) -> None:
    found = tokenizer.encode_stream(["fine", 1], chunk_bytes=1)
    assert next(found).tolist() == tokenizer.encode("fine").tolist()
    with pytest.raises(ArgumentError, match="document 1 is of type int"):
        next(found)
    with pytest.raises(ArgumentError, match="documents is one text"):
        next(tokenizer.encode_stream("letters"))


@pytest.mark.parametrize("chunk_bytes", [1, 1 << 20])
def test_bad_text_of_a_stream_is_named_by_its_document(tokenizer: Tokenizer, chunk_bytes: int) -> None:
    found = tokenizer.encode_stream(["né", "", b"x\xff", "fine"], chunk_bytes=chunk_bytes)
    with pytest.raises(Utf8Error, match="document 2 is not UTF-8 at byte 1") as caught:
        list(found)
    assert (caught.value.position, caught.value.document) == (1, 2)
    with pytest.raises(Utf8Error) as caught:
        tokenizer.encode_batch([b"fine", b"\xff"])
    assert (caught.value.position, caught.value.document) == (4, None)


def test_a_model_says_what_it_holds(tokenizer: Tokenizer) -> None:
    assert 1 << 20 < tokenizer.model_bytes() < 4 << 20
