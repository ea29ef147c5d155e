# SPDX-License-Identifier: Apache-2.0
"""A font is cut once for figures with the same letters, and the PDF has the bytes that it had without that."""

from __future__ import annotations

import io
from contextlib import nullcontext
from typing import Any

import matplotlib.pyplot as plt
import pytest
from matplotlib.backends import _backend_pdf_ps

from pybench.report import font_subsets
from pybench.report.canvas import style


def pdf_of(text: str) -> bytes:
    figure, axes = plt.subplots()
    axes.set_title(text)
    file = io.BytesIO()
    figure.savefig(file, format="pdf", metadata={"CreationDate": None, "Creator": None, "Producer": None})
    plt.close(figure)
    return file.getvalue()


def test_equal_letters_are_cut_once_and_the_bytes_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, cut = _backend_pdf_ps.get_glyphs_subset, []

    def counting(font_file: Any, glyphs: Any) -> Any:
        cut.append(glyphs)
        return plain(font_file, glyphs)

    monkeypatch.setattr(_backend_pdf_ps, "get_glyphs_subset", counting)
    monkeypatch.setattr(font_subsets, "_kept", {})
    with style():
        once = [pdf_of(text) for text in ("energy", "greeny", "power")]
    assert _backend_pdf_ps.get_glyphs_subset is counting, "matplotlib is as before"
    assert len(cut) == 3, "the digits of the axes, and two sets of letters"
    monkeypatch.setattr("pybench.report.canvas.cut_once", nullcontext)
    with style():
        assert [pdf_of(text) for text in ("energy", "greeny", "power")] == once
