# SPDX-License-Identifier: Apache-2.0
"""The order in which engines of parts are put on streams. Here a journal stands for the driver; engines: tests/gpu."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest

from pybench.case import Case
from pybench.errors import DeviceMemoryError, PybenchError, UnsupportedError
from pybench.measure.timing.head_log import NOT_RUN
from pybench.runtimes.session import TensorSpec
from pybench.runtimes.tensorrt import parts
from pybench.runtimes.tensorrt.parts import PartsSession

IMAGES = {"images": np.zeros((1, 2), np.float32)}


class Journal:
    """What was put where, in order. A time passes with each entry, so that events are in the order of their records."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self.replays: list[Callable[[], None]] = []
        self.capturing = False
        self.refuses: PybenchError | None = None
        self.clock_ms = count(1)

    def add(self, entry: str) -> None:
        self.entries.append(entry)

    def taken(self) -> list[str]:
        taken, self.entries = self.entries, []
        return taken


@dataclass
class Stream:
    name: str
    journal: Journal
    handle: int = 1

    def wait(self, event: Event) -> None:
        self.journal.add(f"{self.name} waits for {event.name}")

    def synchronize(self) -> None:
        self.journal.add(f"{self.name} ends")


class Event:
    """Named by the order in which they are made: the frame's begin, the fork, then two for each head."""

    journal: Journal
    names: Iterator[str]

    def __init__(self, *, timed: bool = False) -> None:
        self.timed, self.name = timed, next(self.names)
        self.at_ms = 0

    def record(self, stream: Stream) -> None:
        self.journal.add(f"{self.name} on {stream.name}")
        self.at_ms = next(self.journal.clock_ms)

    def record_in_replays(self, stream: Stream) -> None:
        assert self.journal.capturing
        self.journal.add(f"{self.name} on {stream.name}, in replays")

        def again() -> None:
            self.at_ms = next(self.journal.clock_ms)

        self.journal.replays.append(again)

    def elapsed_time(self, end: Event) -> float:
        assert self.timed
        assert end.timed
        return end.at_ms - self.at_ms


@dataclass
class Graph:
    journal: Journal
    replays: list[Callable[[], None]]

    def launch(self) -> None:
        self.journal.add(f"a graph of {len(self.replays) - 1}")
        for again in self.replays:
            again()


@dataclass
class Engine:
    """As a TensorRtSession, without an engine."""

    name: str
    journal: Journal
    model_bytes: int = 10
    device_uuid: str = "GPU-0"
    inputs: tuple[TensorSpec, ...] = (TensorSpec("images", np.dtype(np.float32), (1, 2)),)
    labels: dict[str, Any] = field(default_factory=lambda: {"launch": "enqueue", "scratch_bytes": 100})

    def __post_init__(self) -> None:
        self.stream = Stream(self.name, self.journal)

    def write(self, inputs: Any) -> None:
        self.journal.add("inputs")

    def enqueue(self) -> None:
        self.journal.add(f"work on {self.name}")

    def read(self) -> list[np.ndarray]:
        return [np.full((1, 2, 2), float(len(self.name)), np.float32)]


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> Journal:
    journal = Journal()
    Event.journal = journal

    def capture(work: Callable[[], bool], stream: Stream) -> Graph:
        if journal.refuses is not None:
            raise journal.refuses
        journal.capturing, journal.replays = True, []
        assert work()
        journal.capturing = False
        return Graph(journal, journal.replays)

    monkeypatch.setattr(parts.cuda, "StreamEvent", Event)
    monkeypatch.setattr(parts.cuda, "capture", capture)
    return journal


def session_of(journal: Journal, launch: str) -> PartsSession:
    case = Case(workload="infer", model="vit-heads", runtime="tensorrt", dispatch="streams", heads=2)
    assert case.parts is not None
    # Branches are made before the events of the frame.
    Event.names = iter(("depth ended", "depth joins", "boxes ended", "boxes joins", "begin", "fork"))
    trunk, *heads = (Engine(name, journal) for name in ("main", "depth", "boxes"))
    return PartsSession(case.parts, trunk, heads, launch)  # type: ignore[arg-type]


def test_heads_fork_behind_the_shared_engine_and_join_before_the_frame_ends(journal: Journal) -> None:
    session = session_of(journal, "enqueue")
    iterate = session.bind(IMAGES, transfers=False)
    journal.taken()
    iterate()
    assert journal.taken() == [
        "begin on main",
        "work on main",
        "fork on main",
        "depth waits for fork",
        "work on depth",
        "depth ended on depth",
        "depth joins on depth",
        "boxes waits for fork",
        "work on boxes",
        "boxes ended on boxes",
        "boxes joins on boxes",
        "main waits for depth joins",
        "main waits for boxes joins",
        "main ends",
    ]
    (ends,) = session.log.take()
    assert 0 < ends[0] < ends[1]


def test_a_head_that_is_not_due_is_not_put_on_its_stream(journal: Journal) -> None:
    session = session_of(journal, "enqueue")
    session.log.rates_hz = (2.0, 1.0)
    iterate = session.bind(IMAGES, transfers=False)
    journal.taken()
    iterate()
    assert not [entry for entry in journal.taken() if "boxes" in entry]
    iterate()
    assert "work on boxes" in journal.taken()
    assert (session.log.take() == NOT_RUN).tolist() == [[False, True], [False, False]]


def test_a_graph_is_captured_for_each_set_of_heads_and_its_replays_tell_their_ends(journal: Journal) -> None:
    session = session_of(journal, "graph")
    session.log.rates_hz = (2.0, 1.0)
    iterate = session.bind(IMAGES, transfers=False)
    assert session.labels["launch"] == "graph"
    journal.taken()
    iterate()
    iterate()
    assert journal.taken() == ["a graph of 1", "main ends", "a graph of 2", "main ends"]
    (first, second) = session.log.take()
    assert first[1] == NOT_RUN
    assert 0 < second[0] < second[1]


def test_what_cannot_be_captured_is_enqueued_and_labelled(journal: Journal) -> None:
    journal.refuses = PybenchError("no capture of this")
    session = session_of(journal, "graph")
    session.bind(IMAGES, transfers=False)()
    assert session.labels["launch"] == "enqueue, as no graph could be captured (no capture of this)"
    assert (session.log.take() > 0).all()
    journal.refuses = DeviceMemoryError("full", evidence="a test")
    with pytest.raises(DeviceMemoryError):
        session.bind(IMAGES, transfers=False)


def test_outputs_are_joined_as_one_graph_has_them(journal: Journal) -> None:
    (found,) = session_of(journal, "enqueue").run(IMAGES)
    assert found.shape == (1, 8)
    assert session_of(journal, "enqueue").model_bytes == 30
    assert session_of(journal, "enqueue").labels["scratch_bytes"] == 300


def test_each_engine_is_named_and_found(journal: Journal) -> None:
    session = session_of(journal, "enqueue")
    assert [(label, part) for label, part, _ in session.engines()] == [
        ("backbone", "backbone"),
        ("head1-depth", "depth"),
        ("head2-boxes", "boxes"),
    ]
    assert session.session_of("boxes") is session.branches[1].session


def test_copies_are_refused(journal: Journal) -> None:
    with pytest.raises(UnsupportedError) as caught:
        session_of(journal, "enqueue").bind(IMAGES, transfers=True)
    assert caught.value.reason.stored_code == "no_transfers_in_tensorrt"
