# SPDX-License-Identifier: Apache-2.0
"""Recorded folders as read: what is missing, compressed, out of order or no number."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from pybench.errors import InputError
from pybench.measure.energy.trace import SampleChannel, StateChannel, Trace, read_columns, read_trace
from tests.measure.recordings import DATA, NAMES
from tests.measure.replay import TRACE


def test_every_channel_of_a_folder_is_read_with_its_unit() -> None:
    trace = read_trace(TRACE)
    assert trace.samples.time_ns.dtype == np.int64
    assert 10 < np.median(trace.samples.power_w) < 1000
    assert np.all(trace.counter.return_ns > trace.counter.call_ns)
    assert len(trace.polled.instant_w) == len(trace.polled.average_w) == len(trace.polled.time_ns)
    assert np.all(np.isnan(trace.states.process_count))  # a folder does not tell, and does not say none


@pytest.mark.parametrize("name", NAMES)
def test_a_compressed_channel_is_the_same_as_its_text(name: str, tmp_path: Path) -> None:
    for file in (DATA / name).glob("*.csv.gz"):
        (tmp_path / file.name.removesuffix(".gz")).write_bytes(gzip.decompress(file.read_bytes()))
    text, compressed = read_trace(tmp_path), read_trace(DATA / name)
    assert np.array_equal(text.samples.power_w, compressed.samples.power_w)
    assert np.array_equal(text.counter.call_ns, compressed.counter.call_ns)
    assert np.array_equal(text.polled.instant_w, compressed.polled.instant_w)


def test_an_absent_channel_is_empty_and_an_absent_record_an_error(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text("t_us,power_w\n0,100\n20000,101\n")
    trace = read_trace(tmp_path)
    assert (len(trace.samples.time_ns), len(trace.counter.call_ns), len(trace.polled.time_ns)) == (2, 0, 0)
    (tmp_path / "samples.csv").unlink()
    with pytest.raises(InputError, match="no power was recorded in this folder"):
        read_trace(tmp_path)
    with pytest.raises(InputError, match="no such folder"):
        read_trace(tmp_path / "nowhere")


def test_an_empty_cell_is_unknown_and_not_zero(tmp_path: Path) -> None:
    file = tmp_path / "counter.csv"
    file.write_text("t_call_us,t_return_us,energy_j\n0,3000,10\n5000,8000,\n10000,13000,11\n")
    columns = read_columns(file, ("t_call_us", "t_return_us", "energy_j"))
    assert columns is not None
    assert np.isnan(columns["energy_j"]).tolist() == [False, True, False]


def test_columns_are_found_by_name_past_others_and_a_byte_order_mark(tmp_path: Path) -> None:
    file = tmp_path / "windows.csv"
    file.write_text("\ufeffkernel, end_us ,start_us\nmemory,2,1\n\nresnet,4,3\n", encoding="utf-8")
    columns = read_columns(file, ("start_us", "end_us"))
    assert columns is not None
    assert columns["start_us"].tolist() == [1, 3]
    assert columns["end_us"].tolist() == [2, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t_us,watts\n0,1\n", "no column power_w"),
        ("", "no column t_us, power_w"),
        ("t_us,power_w\n0,1\n5,two\n", "samples.csv:3: could not convert string to float: 'two'"),
        ("t_us,power_w\n0,1\n5\n", "samples.csv:3: 1 cells under 2 columns"),
        ("t_us,power_w\n0,1\n\n,2\n", "samples.csv:4: t_us is no time"),
        ("t_us,power_w\n0,1\n1e300,2\n", "samples.csv:3: t_us is no time"),
        ("t_us,power_w\n0,1\n5,2\n4,2\n", "samples.csv:4: t_us goes back"),
    ],
)
def test_a_malformed_channel_names_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_trace(tmp_path)
    assert caught.value.hint


def test_a_truncated_archive_is_an_input_error(tmp_path: Path) -> None:
    whole = gzip.compress(b"t_us,power_w\n" + b"".join(b"%d,100.5\n" % (20_000 * row) for row in range(1000)))
    for content in (whole[: len(whole) // 2], b"no archive at all", whole[:40] + b"\0\0\0\0" + whole[44:]):
        (tmp_path / "samples.csv.gz").write_bytes(content)
        with pytest.raises(InputError, match=r"samples\.csv\.gz"):
            read_trace(tmp_path)


def test_a_counter_reading_without_its_return_is_refused(tmp_path: Path) -> None:
    (tmp_path / "counter.csv").write_text("t_call_us,t_return_us,energy_j\n0,,10\n")
    with pytest.raises(InputError, match=r"counter\.csv:2: t_return_us is no time"):
        read_trace(tmp_path)


def test_samples_are_put_in_order_and_repeated_ones_left_out() -> None:
    ms = 1_000_000
    channel = SampleChannel(
        np.array([40, 0, 20, 20, 60, 80], np.int64) * ms, np.array([3.0, 1.0, 2.0, 9.0, np.nan, 5.0])
    ).ordered()
    assert (channel.time_ns // ms).tolist() == [0, 20, 40, 80]
    assert channel.power_w.tolist() == [1.0, 2.0, 3.0, 5.0]


def test_a_dense_channel_is_thinned_to_a_millisecond_and_not_lost() -> None:
    time_ns = np.arange(0, 1_000_000_000, 300_000)
    thinned = SampleChannel(time_ns, np.arange(len(time_ns), dtype=float)).ordered()
    apart = np.diff(thinned.time_ns)
    assert np.all(apart >= 1_000_000)
    assert np.all(apart <= 1_200_000)
    assert thinned.time_ns[0] == 0


def test_no_samples_stay_no_samples() -> None:
    empty = SampleChannel(np.empty(0, np.int64), np.empty(0)).ordered()
    assert len(empty.time_ns) == len(empty.power_w) == 0


def test_states_seen_are_those_inside_a_window_and_one_reading_either_side() -> None:
    times_ns = np.arange(5, dtype=np.int64) * 100
    states = StateChannel(times_ns, np.array([0x01, 0x04, 0x40, np.nan, 0x08]), np.array([1, 3, np.nan, 2, 1.0]))
    begin_ns, end_ns = np.array([150, 350, 900, 10, -50]), np.array([250, 360, 950, 20, -10])
    seen = states.seen(begin_ns, end_ns)
    # Readings 1 to 3, 3 and 4, the last, 0 and 1, the first; 0x01 (idle) lowers nothing.
    assert seen.throttling.tolist() == [0x44, 0x08, 0x08, 0x04, 0]
    assert seen.most_processes.tolist() == [3, 2, 1, 3, 1]
    assert seen.throttle_words(0) == ["software power cap", "hardware thermal slowdown"]
    none = Trace().states.seen(begin_ns, end_ns)
    assert (none.throttling.tolist(), none.most_processes.tolist()) == ([0] * 5, [0] * 5)
