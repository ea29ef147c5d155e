# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

from pybench.precision import modelopt
from pybench.worker.probe import probe


def test_modelopt_needs_its_environment_or_uv_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    why = "modelopt needs an environment of its own, and there is no uv to make it"
    assert probe(["modelopt"]) == {"modelopt": {"available": False, "why": why}}
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    assert probe(["modelopt"]) == {"modelopt": {"available": True, "how": f"{uv} makes its environment at first use"}}
    uv.unlink()
    folder = modelopt.folder_of_environment()
    folder.mkdir(parents=True)
    (folder / modelopt.COMPLETE).touch()
    assert probe(["modelopt"]) == {"modelopt": {"available": True, "how": f"its environment is in {folder}"}}


def test_what_pybench_raises_on_purpose_is_told_without_its_class_and_its_hint_apart() -> None:
    asked = probe(["cuda"])["cuda"]
    if asked["available"]:
        pytest.skip("this machine has a GPU")
    assert "hint:" not in asked["why"]
    assert "Error:" not in asked["why"]
    asked = probe(["power_rails"])["power_rails"]
    assert asked["available"] or asked["hint"]


def test_a_module_that_only_a_plug_in_needs_is_imported_for_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "acme_probed.py").write_text("__version__ = '3.2'\n")
    found = probe(["module:acme_probed", "module:yaml", "module:acme_absent"])
    assert found["module:acme_probed"] == {"available": True, "version": "3.2"}
    assert found["module:yaml"] == {"available": True, "version": metadata.version("PyYAML")}
    assert found["module:acme_absent"]["available"] is False
    assert "No module named 'acme_absent'" in found["module:acme_absent"]["why"]


def test_a_package_that_is_not_installed_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", nothing)
    missing = {"available": False, "why": "it is not installed"}
    assert probe(["timm", "torch_tensorrt"]) == {"timm": missing, "torch_tensorrt": missing}
