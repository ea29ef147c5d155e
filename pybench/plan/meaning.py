# SPDX-License-Identifier: Apache-2.0
"""Where a factor means something: the rules over workloads and models, and the sentences that say so."""

from __future__ import annotations

from collections.abc import Mapping

from pybench.case import Case
from pybench.case.factor import Factor
from pybench.case.factors import factors_of, is_idle
from pybench.catalogue.catalogue import Catalogue
from pybench.catalogue.models import Model
from pybench.catalogue.workloads import FactorGroup
from pybench.catalogue.zoo import library_of
from pybench.plan.values import PSEUDO_FACTORS

# Groups of factors that mean nothing for some models.
_OF_TOKENS: tuple[FactorGroup, ...] = ("tokens", "text", "feeding")
_OF_TEXT: tuple[FactorGroup, ...] = ("text", "feeding")
_OF_IMAGES: tuple[FactorGroup, ...] = ("images", "sizing", "layout", "loading")
_OF_BLOCKS: tuple[FactorGroup, ...] = ("blocks",)
_OF_BUILT_IN: tuple[FactorGroup, ...] = ("sizing",)
_OF_FILES: tuple[FactorGroup, ...] = ("file",)
_OF_SHAPED: tuple[FactorGroup, ...] = ("shaping",)


def applies(name: str, case: Case) -> bool:
    """Whether a factor changes anything about a case."""
    if is_idle(name, case):
        return False
    return misplaced(name, case.workload, case.model, case.catalogue) is None


def _settable(catalogue: Catalogue) -> Mapping[str, Factor]:
    return {**factors_of(catalogue), **PSEUDO_FACTORS}


def misplaced(name: str, workload: str | None, model: str | None, catalogue: Catalogue) -> str | None:
    """Why a factor means nothing for a workload and a model, or None."""
    group = _settable(catalogue)[name].group
    if workload is not None and not catalogue.workloads[workload].uses(group):
        return f"`{name}` has no meaning for workload {workload}"
    if model is None:
        return None
    row = catalogue.models.get(model)
    library = library_of(model)
    if group in _OF_FILES and (row is not None or library is not None):
        return f"`{name}` has no meaning for {model}: its inputs have fixed sizes"
    if group in _OF_TOKENS and row is not None and not row.takes_ids:
        return f"`{name}` has no meaning for {model}, which takes no tokens"
    if group in (*_OF_TEXT, *_OF_BUILT_IN) and library is not None:
        return f"`{name}` has no meaning for {model}: {library.name} says what it takes, and its input is synthetic"
    if group in _OF_TEXT and row is None:
        return f"`{name}` has no meaning for an ONNX file of your own: its input is synthetic"
    if group in _OF_TEXT and row is not None and not row.takes_text:
        return f"`{name}` has no meaning for {model}: its ids are synthetic"
    if group in _OF_IMAGES and row is not None and not row.takes_images:
        return f"`{name}` has no meaning for {model}, which takes no images"
    if group in _OF_BUILT_IN and row is None:
        return f"`{name}` has no meaning for an ONNX file of your own: its inputs have the sizes of the file"
    if group in _OF_SHAPED and (row is None or name not in row.shaped_by):
        return f"`{name}` has no meaning for {model}: it shapes the layers of {', '.join(_shaped_by(name, catalogue))}"
    if group in _OF_BLOCKS and row is not None and not row.takes_text:
        return f"`{name}` has no meaning for {model}: its blocks keep what they compute"
    return None


def where_it_applies(name: str, catalogue: Catalogue) -> str:
    """For a hint: the workloads, and the models where not all, for which a factor means something."""
    factor = _settable(catalogue)[name]
    of = " of language models" if factor.group in _OF_TOKENS else ""
    of = " of language models" if factor.group in _OF_BLOCKS else of
    of = " of image models" if factor.group in _OF_IMAGES else of
    workloads = factor.workloads(catalogue)
    if factor.group in _OF_SHAPED:
        shaped, of = _shaped_by(name, catalogue), f" of {', '.join(_shaped_by(name, catalogue))}"
        workloads = tuple(each for each in workloads if any(map(catalogue.workloads[each].accepts, shaped.values())))
    return f"it applies to {', '.join(workloads) or 'no workload'}{of}"


def _shaped_by(name: str, catalogue: Catalogue) -> dict[str, Model]:
    """The models whose layers follow a factor."""
    return {model.name: model for model in catalogue.models.values() if name in model.shaped_by}
