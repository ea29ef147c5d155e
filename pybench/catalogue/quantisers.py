# SPDX-License-Identifier: Apache-2.0
"""What puts the rounding to int8, int4 or fp8 into a graph: a row for each quantiser.

The first works for every runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pybench.catalogue.rows import Rows

Scheme = Literal["symmetric", "asymmetric"]
Granularity = Literal["channel", "tensor"]
Extent = Literal["restricted", "full"]
PairPlacement = Literal["fused", "naive"]

SCHEMES: tuple[Scheme, ...] = ("symmetric", "asymmetric")
GRANULARITIES: tuple[Granularity, ...] = ("channel", "tensor")
EXTENTS: tuple[Extent, ...] = ("restricted", "full")
PLACEMENTS: tuple[PairPlacement, ...] = ("fused", "naive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiser:
    """One quantiser.

    name: as plans name it
    make: `module:name` of what writes the quantised file
    calibrations: how it chooses ranges: a plan's word -> its own word, or what that does
    types: what it rounds to
    why_not: why it rounds to no other type
    schemes: the ranges that it makes: `asymmetric` ones have a zero point
    granularities: the scales of a weight: one for each output channel, or one for the tensor
    extents: int8's codes that symmetric ranges use: -127 to 127, or -128, too
    placements: where its pairs of Q/DQ stand, beyond those in front of convolutions and products
    needs: packages besides those that every quantised file needs
    from_ranges: it works from ranges that were found before; else it finds them by itself
    trains: it finds them while it trains the weights on, so that a plan chooses no calibration
    at_run: each run finds the ranges of its activations, so that a plan chooses no calibration, either
    keeps_nodes: whether it takes `keep_fp32`
    searches_kept: whether it takes `keep_error_max`: it writes a file in seconds, so that a search can try many
    rounds_others: whether it rounds a tensor for all that read it: also what operators read that do not multiply, and
        a weight that nodes share
    weights_alone: it rounds weights and nothing else, so that it finds no ranges of activations
    drops_weights: it writes codes of weights alone, unless it is told to keep the weights in front of a pair
    search: how thoroughly it measures engines of TensorRT to place its pairs: its file is then for one kind of GPU, one
        version of TensorRT and one shape of inputs. None: it places them by rules
    """

    name: str
    make: str
    calibrations: Mapping[str, str]
    types: tuple[str, ...] = ("int8", "fp8")
    why_not: str = ""
    schemes: tuple[Scheme, ...] = ("symmetric",)
    granularities: tuple[Granularity, ...] = ("channel",)
    extents: tuple[Extent, ...] = ("restricted",)
    placements: tuple[PairPlacement, ...] = ("fused",)
    needs: tuple[str, ...] = ()
    from_ranges: bool = False
    trains: bool = False
    at_run: bool = False
    keeps_nodes: bool = True
    searches_kept: bool = False
    rounds_others: bool = False
    weights_alone: bool = False
    drops_weights: bool = False
    search: str | None = None

    @property
    def is_calibrated(self) -> bool:
        """Whether a plan chooses how its ranges are found."""
        return not (self.trains or self.at_run or self.weights_alone)

    @property
    def writes_pairs(self) -> bool:
        """Whether its files have pairs of Q/DQ."""
        return not (self.at_run or self.weights_alone)

    @property
    def places_pairs(self) -> bool:
        """Whether a plan chooses where its pairs stand: training rounds where it trains, in front of products."""
        return self.writes_pairs and not self.trains

    def offers(self, factor: str) -> tuple[str, ...]:
        """The values of `scheme`, `range`, `granularity` or `placement` that it makes."""
        offered: dict[str, tuple[str, ...]] = {
            "scheme": self.schemes,
            "range": self.extents,
            "granularity": self.granularities,
            "placement": self.placements,
        }
        return offered[factor]


_ROWS = (
    Quantiser(
        name="pybench",
        make="pybench.artefacts.quantised:by_pybench",
        calibrations={
            "minmax": "largest magnitude",
            "entropy": "Kullback-Leibler divergence, 2048 bins, 128 levels",
            "percentile": "99.999th percentile of magnitudes, 2048 bins",
            "moving-average": "moving average of the batches' largest magnitudes, constant 0.1",
        },
        granularities=GRANULARITIES,
        extents=EXTENTS,
        placements=PLACEMENTS,
        from_ranges=True,
        searches_kept=True,
    ),
    Quantiser(
        name="onnxruntime",
        make="pybench.artefacts.quantised:by_onnxruntime",
        calibrations={"minmax": "MinMax", "percentile": "Percentile"},
        types=("int8",),
        why_not="it has one scale for all channels of an fp8 weight",
        schemes=SCHEMES,
        granularities=GRANULARITIES,
        searches_kept=True,
        rounds_others=True,
        drops_weights=True,
    ),
    Quantiser(
        name="modelopt",
        make="pybench.artefacts.quantised:by_modelopt",
        calibrations={"minmax": "max", "entropy": "entropy"},
        needs=("modelopt",),
    ),
    Quantiser(
        name="modelopt-autotune",
        make="pybench.artefacts.quantised:by_modelopt",
        calibrations={"minmax": "max", "entropy": "entropy"},
        needs=("modelopt", "tensorrt", "cuda_python"),
        search="default",
    ),
    Quantiser(
        name="dynamic",
        make="pybench.artefacts.quantised:at_run",
        calibrations={},
        types=("int8",),
        why_not="ONNX has operators that find ranges of int8 alone",
        schemes=("asymmetric",),
        granularities=GRANULARITIES,
        at_run=True,
    ),
    Quantiser(
        name="weight-only",
        make="pybench.artefacts.quantised:of_weights",
        calibrations={},
        types=("int8", "int4"),
        why_not="ONNX Runtime multiplies with weights that are stored as integers of 8 or 4 bits",
        schemes=SCHEMES,
        needs=("onnxscript",),  # whose onnx_ir the tool of onnxruntime imports
        weights_alone=True,
    ),
    Quantiser(
        name="qat",
        make="pybench.artefacts.quantised:by_training",
        calibrations={},
        types=("int8",),
        why_not="it trains with the rounding of int8",
        needs=("torch", "onnxscript"),
        trains=True,
        keeps_nodes=False,
    ),
)

QUANTISERS = Rows("quantiser", _ROWS)
USUAL = _ROWS[0]
CALIBRATIONS = tuple(USUAL.calibrations)


def quantisers_to(kind: str, scheme: Scheme = "symmetric") -> tuple[str, ...]:
    """Names of the quantisers to a type that can quantise any model for any runtime, with ranges of this scheme alone.

    Where none of these makes the type, the names of all that make it."""
    makers = [row for row in _ROWS if kind in row.types and not row.trains and row.search is None]
    return tuple(row.name for row in makers if row.schemes == (scheme,)) or tuple(row.name for row in makers)


def searching(kind: str) -> tuple[str, ...]:
    """Names of the quantisers to a type that take `keep_error_max`; there may be none."""
    return tuple(row.name for row in _ROWS if row.searches_kept and kind in row.types)
