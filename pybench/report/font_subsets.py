# SPDX-License-Identifier: Apache-2.0
"""Cuts a font to the glyphs of a PDF once for all figures that use the same glyphs.

matplotlib cuts anew for each PDF, which takes 0.07 s; of 85 cuts in a large report, 18 differ. The bytes are the same.
Two private functions of matplotlib are replaced while figures are drawn. A version without them is left as it is.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple


class FontSubset(NamedTuple):
    """A font that was cut, with the fields of matplotlib's `SubsetResults`."""

    font: bytes
    """The font's file."""
    glyph_index_map: Mapping[int, int]
    """Index of a glyph in the whole font -> its index in this one."""


_kept: dict[tuple[str, int, frozenset[int]], FontSubset] = {}  # some 20 kB each, some 20 a report


@contextmanager
def cut_once() -> Iterator[None]:
    """Inside, a font is cut to the same glyphs only once in this process."""
    from matplotlib.backends import _backend_pdf_ps

    module: Any = _backend_pdf_ps
    if not hasattr(module, "SubsetResults"):
        yield
        return
    cut, save = module.get_glyphs_subset, module.font_as_file

    def cut_or_take(font_file: Any, glyphs: Iterable[int]) -> AbstractContextManager[FontSubset]:
        key = (str(font_file), font_file.face_index, frozenset(glyphs))
        if key not in _kept:
            with cut(font_file, set(key[2])) as subset:
                _kept[key] = FontSubset(save(subset.font).getvalue(), subset.glyph_index_map)
        return nullcontext(_kept[key])

    module.get_glyphs_subset, module.font_as_file = cut_or_take, io.BytesIO
    try:
        yield
    finally:
        module.get_glyphs_subset, module.font_as_file = cut, save
