# SPDX-License-Identifier: Apache-2.0
"""The store of sensor profiles: one board under one driver, whole or not at all."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pybench.errors import InputError
from pybench.machine import profiles
from pybench.measure import ASSUMED

MEASURED = replace(ASSUMED, uuid="GPU-1", driver="580.1", name="A board", origin="measured", steps=60).as_json()


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(profiles.FOLDER_VARIABLE, str(tmp_path / "sensors"))
    return tmp_path / "sensors"


def test_a_profile_is_found_again_by_board_and_driver() -> None:
    assert profiles.find("GPU-1", "580.1") is None
    path = profiles.store(MEASURED)
    assert path == profiles.file_of("GPU-1", "580.1")
    assert profiles.find("GPU-1", "580.1") == MEASURED
    assert profiles.find("GPU-2", "580.1") is None
    profiles.store({**MEASURED, "steps": 40})
    assert profiles.find("GPU-1", "580.1") == {**MEASURED, "steps": 40}
    assert [entry.name for entry in path.parent.iterdir()] == [path.name], "nothing temporary stays"


def test_a_profile_of_another_driver_does_not_count_and_is_named() -> None:
    profiles.store(MEASURED)
    assert profiles.find("GPU-1", "590.2") is None
    assert profiles.of_other_drivers("GPU-1", "590.2") == ["580.1"]
    assert profiles.of_other_drivers("GPU-1", "580.1") == profiles.of_other_drivers("GPU-2", "590.2") == []


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema_version": 99, "sample_delay_s": 1}', '{"schema_version": 1, "sample_delay_s": 0.003}'],
)
def test_an_unreadable_profile_is_an_error_that_names_its_file(text: str) -> None:
    path = profiles.store(MEASURED)
    path.write_text(text)
    with pytest.raises(InputError, match=path.name) as caught:
        profiles.find("GPU-1", "580.1")
    assert "pybench sensor" in str(caught.value)
    assert isinstance(profiles.stored()[path], InputError)
    assert profiles.of_other_drivers("GPU-1", "590.2") == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sample_delay_s": "abc"}, 'sample_delay_s is "abc" (it must be a number of at least 0)'),
        ({"counter_tick_s": 0}, "counter_tick_s is 0 (it must be a number above 0)"),
        ({"counter_delay_s": True}, "counter_delay_s is true (it must be a number of at least 0)"),
        ({"state_ratio": None}, "state_ratio is null (it must be a number of at least 0)"),
        ({"origin": "bogus"}, 'origin is "bogus" (it must be one of measured, trace, assumed)'),
        ({"reasons": "one"}, 'reasons is "one" (it must be a list of texts)'),
    ],
)
def test_a_profile_that_no_sensor_can_have_is_refused(change: dict[str, object], said: str) -> None:
    path = profiles.store(MEASURED)
    path.write_text(json.dumps({**MEASURED, **change}))
    with pytest.raises(InputError) as caught:
        profiles.read(path)
    assert f"{caught.value.message} ({caught.value.hint})" == f"{path}: {said}"


def test_a_profile_under_anothers_name_is_refused() -> None:
    path = profiles.store(MEASURED)
    path.rename(profiles.file_of("GPU-2", "580.1"))
    with pytest.raises(InputError, match="this is the profile of GPU-1 under 580"):
        profiles.find("GPU-2", "580.1")


def test_the_folder_is_the_variables_or_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    assert profiles.folder() == store
    monkeypatch.delenv(profiles.FOLDER_VARIABLE)
    monkeypatch.setenv("XDG_DATA_HOME", "/somewhere")
    assert profiles.folder() == Path("/somewhere/pybench/sensors")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert profiles.folder() == Path("/home/someone/.local/share/pybench/sensors")


def test_names_of_files_hold_no_separator(store: Path) -> None:
    assert profiles.file_of("../../GPU", "58/0").parent == store
