# SPDX-License-Identifier: Apache-2.0
"""How large the activations of an FP32 graph get on samples: the ranges that INT8 and FP8 scales are made of.

| method | range of a tensor | source |
| --- | --- | --- |
| minmax | the largest magnitude | |
| moving-average | the batches' largest magnitudes, averaged: m <- m + 0.1 (max - m) | Krishnamoorthi 2018 |
| percentile | the 99.999th percentile of magnitudes, zeros included | Wu et al. 2020, onnxruntime's default |
| entropy | where cutting loses least information: Kullback-Leibler, 2048 bins, 128 levels | Migacz 2017 (TensorRT) |

Runs the graph with onnxruntime on the CPU. Histograms need two passes: the first finds each tensor's largest
magnitude, so that bins never have to be widened. At most half a GiB of activations is held at a time. Own code,
because onnxruntime's calibrators keep the activations of all samples until the end, and know no moving average of
another constant (docs/decisions/012-quantisers.md). Does not choose samples.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from pybench.errors import InputError
from pybench.precision.execution import Feed, open_model
from pybench.precision.network import Network
from pybench.precision.placement import calibrated_tensors

AVERAGING = 0.1  # of a batch in the average; torch's 0.01 would be all first batch, at ten batches
PERCENTILE = 99.999
BINS = 2048
LEVELS = 128  # of magnitudes: what 8 bits with a sign can tell apart
HELD_BYTES = 512 * 2**20

Counts = npt.NDArray[np.int64]
Batch = dict[str, npt.NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Ranges:
    """`amax`: tensor -> the magnitude that becomes the largest code; `sha256`: of the samples, as they were fed."""

    method: str
    amax: dict[str, float]
    sha256: str


def find_ranges(network: Network, feeds: Sequence[Feed], method: str) -> Ranges:
    """Ranges of all `calibrated_tensors`. `feeds`: inputs of the calibration runs, each one batch; read once or twice.

    Raises InputError when a range is not finite, or the graph does not run.
    """
    tensors = TensorValues(network, calibrated_tensors(network), feeds)
    amax = _averages(tensors) if method == "moving-average" else _maxima(tensors)
    broken = [name for name, value in amax.items() if not np.isfinite(value)]
    if broken:
        raise InputError(f"{broken[0]} is not finite on the calibration samples", hint="it can have no scale")
    if method in ("percentile", "entropy"):
        cut = percentile_cut if method == "percentile" else entropy_cut
        amax = {name: cut(counts, amax[name]) for name, counts in _histograms(tensors, amax).items()}
    return Ranges(method, amax, digest(feeds))


def percentile_cut(counts: Counts, amax: float, percentile: float = PERCENTILE) -> float:
    """Magnitude below which a share of all values lies, on a line inside its bin. `counts`: bins of [0, amax]."""
    edges = np.linspace(0, amax, len(counts) + 1)
    below = np.concatenate([[0], np.cumsum(counts)])
    return float(np.interp(percentile / 100 * below[-1], below, edges))


def entropy_cut(counts: Counts, amax: float) -> float:
    """Magnitude at which cutting off, then keeping 128 levels, loses least information; `counts`: bins of [0, amax].

    P is the histogram up to the cut, with all that lies beyond in its last bin. Q is the same bins without that, merged
    to 128 levels and spread over the bins that are not empty. The cut with the least KL(P || Q) wins, of equals the
    largest. The first bin, where a ReLU's zeros are, counts as much as the second: zero is exact at any scale.
    """
    bins = counts.astype(np.float64)
    bins[0] = bins[1]
    if amax == 0 or bins.sum() == 0:
        return amax
    beyond = bins.sum() - np.cumsum(bins)
    best, best_loss = len(bins), np.inf
    for cut in range(LEVELS, len(bins) + 1):
        loss = _loss(bins[:cut], beyond[cut - 1])
        if loss <= best_loss:
            best, best_loss = cut, loss
    return amax * best / len(bins)


def digest(feeds: Sequence[Feed]) -> str:
    """The sha256 of samples: names, types, shapes and bytes, in their order."""
    total = hashlib.sha256()
    for feed in feeds:
        for name in sorted(feed):
            array = np.ascontiguousarray(feed[name])
            total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            total.update(array.tobytes())
    return total.hexdigest()


def _loss(kept: npt.NDArray[np.float64], beyond: float) -> float:
    """KL(P || Q) in nats; infinite where P has values and Q cannot."""
    starts = np.arange(LEVELS) * len(kept) // LEVELS
    filled = kept > 0
    members = np.add.reduceat(filled, starts, dtype=np.int64)
    level = np.add.reduceat(kept, starts) / np.maximum(members, 1)
    q = np.repeat(level, np.diff([*starts, len(kept)]))
    p = kept.copy()
    p[-1] += beyond
    if beyond > 0 and not filled[-1]:
        return float("inf")
    p, q = p[filled], q[filled]
    return float((p * np.log(p * q.sum() / (q * p.sum()))).sum() / p.sum())


def _maxima(tensors: TensorValues) -> dict[str, float]:
    amax: dict[str, float] = {}
    for name, value in tensors.values():
        largest = float(np.abs(value).max(initial=0.0))
        amax[name] = max(amax.get(name, 0.0), largest) if largest == largest else largest  # NaN stays
    return amax


def _averages(tensors: TensorValues) -> dict[str, float]:
    amax: dict[str, float] = {}
    for name, value in tensors.values():
        largest = float(np.abs(value).max(initial=0.0))
        amax[name] = amax[name] + AVERAGING * (largest - amax[name]) if name in amax else largest
    return amax


def _histograms(tensors: TensorValues, amax: Mapping[str, float]) -> dict[str, Counts]:
    counts = {name: np.zeros(BINS, np.int64) for name in amax}
    for name, value in tensors.values():
        factor = np.float32(BINS / amax[name]) if amax[name] > 0 else np.float32(0)
        bins = np.minimum((np.abs(value.ravel()) * factor).astype(np.int32), BINS - 1)
        counts[name] += np.bincount(bins, minlength=BINS)
    return counts


class TensorValues:
    """Values of a graph's tensors on samples, a batch at a time, in groups that fit into memory."""

    def __init__(self, network: Network, names: list[str], feeds: Sequence[Feed]) -> None:
        self._network, self._feeds = network, feeds
        inputs = {entry.name for entry in network.graph.input}
        self._fed = [name for name in names if name in inputs]
        self._groups = self._grouped([name for name in names if name not in inputs])

    def values(self) -> Iterator[tuple[str, npt.NDArray[np.float32]]]:
        """(name, value) for every tensor and batch; a tensor's batches come in their order."""
        for feed in self._feeds if self._fed else ():
            for name in self._fed:
                yield name, feed[name]
        for group in self._groups:
            session = open_model(self._with_outputs(group).SerializeToString())
            for feed in self._feeds:
                yield from zip(group, session.run(feed), strict=True)

    def _grouped(self, names: list[str]) -> list[list[str]]:
        sizes = self._sizes(names)
        groups: list[list[str]] = []
        held = HELD_BYTES
        for name in names:
            if held + sizes[name] > HELD_BYTES:
                groups.append([])
                held = 0
            groups[-1].append(name)
            held += sizes[name]
        return groups

    def _sizes(self, names: list[str]) -> dict[str, int]:
        """Bytes of each tensor on the first batch."""
        if not names:
            return {}
        model = self._with_outputs([])
        for name in names:
            model.graph.node.append(helper.make_node("Size", [name], [f"{name}__size"]))
            model.graph.output.append(helper.make_tensor_value_info(f"{name}__size", onnx.TensorProto.INT64, []))
        sizes = open_model(model.SerializeToString()).run(self._feeds[0])
        return {name: 4 * int(size) for name, size in zip(names, sizes, strict=True)}

    def _with_outputs(self, names: list[str]) -> onnx.ModelProto:
        """The model with these tensors for outputs instead of its own."""
        model = onnx.ModelProto()
        model.CopyFrom(self._network.model)
        del model.graph.output[:]
        model.graph.output.extend(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names)
        return model
