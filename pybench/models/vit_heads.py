# SPDX-License-Identifier: Apache-2.0
"""ViT-S/16 with several heads: images -> the outputs of all heads, flattened and joined.

Source of the backbone: Dosovitskiy et al. 2020 (arXiv 2010.11929), pre-norm, without a class token. Heads are small
and made for this: depth (a 3x3 convolution, then a depth for each pixel), boxes (two linear layers for each patch),
classes (of the mean patch). Weights are random: it is there to be timed.

`dispatch` says how heads share the backbone (catalogue/heads.py). Called from Python it notes when each head ends; a
compiler or an exporter sees one plain graph without notes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pybench.catalogue.code import named_code
from pybench.catalogue.heads import BOX, CLASSES, LAYERS, PATCH, TRUNK, WIDTH, heads_of
from pybench.measure.timing.head_log import HeadLog
from pybench.models.export import ModulePart

Mark = Callable[[int], None]  # notes the end of a head by its number

SIDE = 224  # pixels
FEATURES = "features"  # between the backbone and a head
CHANNELS_A_HEAD = 64  # of attention


class Layer(nn.Module):
    """One layer of the transformer: [N, positions, width] -> the same shape."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, positions, width = x.shape
        split = self.qkv(self.norm1(x)).reshape(batch, positions, 3, -1, CHANNELS_A_HEAD).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(split[0], split[1], split[2])
        x = x + self.project(mixed.transpose(1, 2).reshape(batch, positions, width))
        y: Tensor = x + self.narrow(functional.gelu(self.widen(self.norm2(x))))
        return y


class Backbone(nn.Module):
    """[N, 3, 224, 224] -> [N, 196, width]."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, PATCH, stride=PATCH)
        self.positions = nn.Parameter(0.02 * torch.randn(1, (SIDE // PATCH) ** 2, width))
        self.layers = nn.Sequential(*(Layer(width) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, images: Tensor) -> Tensor:
        x: Tensor = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        features: Tensor = self.norm(self.layers(x))
        return features


class DepthHead(nn.Module):
    """[N, positions, width] -> a depth for each pixel."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width // 4, 3, padding=1)
        self.depth = nn.Linear(width // 4, PATCH**2)

    def forward(self, features: Tensor) -> Tensor:
        side = SIDE // PATCH
        x = functional.relu(self.conv(features.transpose(1, 2).reshape(features.shape[0], -1, side, side)))
        depth: Tensor = self.depth(x.flatten(2).transpose(1, 2))
        return depth


class BoxHead(nn.Module):
    """[N, positions, width] -> four coordinates and a score for each patch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden, self.boxes = nn.Linear(width, width), nn.Linear(width, BOX)

    def forward(self, features: Tensor) -> Tensor:
        boxes: Tensor = self.boxes(functional.relu(self.hidden(features)))
        return boxes


class ClassHead(nn.Module):
    """[N, positions, width] -> a score for each class."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.classes = nn.Linear(width, CLASSES)

    def forward(self, features: Tensor) -> Tensor:
        scores: Tensor = self.classes(features.mean(1))
        return scores


class VitHeads(nn.Module):
    """`outputs` has no meaning: each head knows its own. `log`: when heads ended, where Python calls it."""

    def __init__(self, outputs: int, heads: int, dispatch: str, *, width: int = WIDTH, layers: int = LAYERS) -> None:
        super().__init__()
        own = heads if dispatch == "sequential" else 1
        self.backbones = nn.ModuleList(Backbone(width, layers) for _ in range(own))
        self.heads = nn.ModuleList(named_code(kind.build)(width) for kind in heads_of(heads))
        self.dispatch, self.width = dispatch, width
        self.log = HeadLog(heads)

    def forward(self, images: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return _joined(self._one_after_another(images))
        event = _event if images.is_cuda else None
        due = self.log.begin(None if event is None else event())

        def mark(number: int) -> None:
            self.log.end(number, None if event is None else event())

        dispatched = self._at_once if self.dispatch == "streams" else self._one_after_another
        return _joined(dispatched(images, due, mark))

    def part(self, name: str) -> ModulePart:
        """The backbone, or the first head of a kind, to be exported by itself."""
        backbone = self.backbones[0]
        if name == TRUNK:
            return ModulePart(backbone, "images", (3, SIDE, SIDE), FEATURES)
        kinds = [kind.name for kind in heads_of(len(self.heads))]
        return ModulePart(self.heads[kinds.index(name)], FEATURES, ((SIDE // PATCH) ** 2, self.width), name)

    def _one_after_another(
        self, images: Tensor, due: Sequence[int] | None = None, mark: Mark | None = None
    ) -> list[Tensor]:
        """`due`: the heads that run, None: all; `mark`: notes the end of a head, where that is asked for."""
        due = range(len(self.heads)) if due is None else due
        shared = None if self.dispatch == "sequential" else self.backbones[0](images)
        found = []
        for number in due:
            features = self.backbones[number](images) if shared is None else shared
            found.append(self.heads[number](features))
            if mark is not None and self.dispatch == "sequential":
                mark(number)
        if mark is not None and self.dispatch != "sequential":  # one graph hands over all outputs together
            for number in due:
                mark(number)
        return found

    def _at_once(self, images: Tensor, due: Sequence[int], mark: Mark) -> list[Tensor]:
        run = self._on_stream if images.is_cuda else self._in_thread
        return run(self.backbones[0](images), due, mark)

    def _in_thread(self, features: Tensor, due: Sequence[int], mark: Mark) -> list[Tensor]:
        """Each head in its thread; the threads share the CPUs of the backbone."""
        inference = torch.is_inference_mode_enabled()

        def run(number: int) -> Tensor:
            with torch.inference_mode(inference):
                found: Tensor = self.heads[number](features)
            mark(number)
            return found

        return list(self._threads.map(run, due))

    def _on_stream(self, features: Tensor, due: Sequence[int], mark: Mark) -> list[Tensor]:
        """Each head on its stream, behind the event that ends the backbone."""
        main, found = torch.cuda.current_stream(), []
        ended = main.record_event()
        for number in due:
            stream = self._streams[number]
            stream.wait_event(ended)
            with torch.cuda.stream(stream):
                found.append(self.heads[number](features))
                mark(number)
            features.record_stream(stream)
        for number, output in zip(due, found, strict=True):
            main.wait_stream(self._streams[number])
            output.record_stream(main)
        return found

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        share = max(torch.get_num_threads() // len(self.heads), 1)
        return ThreadPoolExecutor(len(self.heads), "pybench-head", partial(torch.set_num_threads, share))

    @cached_property
    def _streams(self) -> list[Any]:
        return [torch.cuda.Stream() for _ in self.heads]  # type: ignore[no-untyped-call]


def _event() -> Any:
    """An event that is recorded now, on the current stream."""
    made = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    made.record()
    return made


def _joined(outputs: list[Tensor]) -> Tensor:
    return torch.cat([output.flatten(1) for output in outputs], dim=1)
