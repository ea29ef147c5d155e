# SPDX-License-Identifier: Apache-2.0
"""Trains a built-in image model on synthetic-100 for some minutes on one GPU, judges it and keeps its weights.

    python -P -m bench.tensorrt.train_synthetic --minutes 3 --out weights.pt [--model resnet50] [--batch 256] [--json]

Needs torch, numpy and pybench's extension. Printed: whether the GPU draws the same bytes as numpy, images a second, and
the loss on the way. Then Top-1 on the 5,000 validation images, and the bound that no classifier can pass. The weights
load into a plan by `checkpoint: weights.pt`; a plan with `checkpoint: synthetic-100` trains its own by the same code.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

from pybench.catalogue.models import MODELS
from pybench.models.building import build
from pybench.models.images.rendering import render
from pybench.models.images.synthetic import CLASSES, DIFFICULTY, VALIDATION_IMAGES, ceiling, draw_scenes
from pybench.models.training.synthetic import TrainingSettings, TrainingStep, judge, train
from pybench.runtimes.torch import allow_tf32

WITHOUT_BOUND = 1 << 40  # images: the time ends the training
TWINS = 64  # images drawn twice, to compare
SAID_EVERY_S = 10


def main() -> int:
    given = _parse(sys.argv[1:])
    device = torch.device(given.device)
    torch.backends.cudnn.benchmark = True
    allow_tf32(False)  # training multiplies in bfloat16; Top-1 is FP32's
    channels, height, width = MODELS[given.model].shape
    shape = channels, height, width
    differing = _differing_bytes(shape, device)
    _say(f"{differing} of {TWINS} images differ between numpy and {device}")
    _say(f"{_drawn_per_s(shape, device, given.batch):.0f} images/s drawn alone")
    course = TrainingSettings(
        given.images or WITHOUT_BOUND, given.batch, given.rate, limit_s=60 * given.minutes or None,
        difficulty=given.difficulty,
    )  # fmt: skip
    model = build(given.model, seed=given.seed, outputs=CLASSES)
    begin_s = time.monotonic()
    seen = train(model, shape, course, given.seed, device, _Talk())
    wall_s = time.monotonic() - begin_s
    model.to(memory_format=torch.contiguous_format)
    torch.save({name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}, given.out)
    top1_percent = judge(model, shape, device, given.judged, given.difficulty)
    found = {
        "model": given.model, "seed": given.seed, "batch": given.batch, "rate": given.rate, "images": seen,
        "wall_s": round(wall_s, 1), "images_per_s": round(seen / wall_s), "difficulty": given.difficulty,
        "top1_percent": round(top1_percent, 2), "judged": given.judged,
        "u_standard_pp": round((top1_percent * (100 - top1_percent) / given.judged) ** 0.5, 2),
        "ceiling_percent": round(100 * ceiling(given.difficulty), 2), "differing_images": differing,
        "torch": torch.__version__,
    }  # fmt: skip
    print(json.dumps(found) if given.json else "\n".join(f"{name:18} {value}" for name, value in found.items()))
    return 0 if differing == 0 else 1


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    image_models = [name for name, known in MODELS.items() if known.takes_images]
    parser.add_argument("--model", default="resnet50", choices=image_models)
    parser.add_argument("--minutes", type=float, default=3.0, help="of training; 0: until --images")
    parser.add_argument("--images", type=int, default=0, help="images to train on at most; 0: until --minutes")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rate", type=float, default=0.4, help="highest learning rate, of 256 images a step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--difficulty", type=float, default=DIFFICULTY)
    parser.add_argument("--judged", type=int, default=VALIDATION_IMAGES)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    if given.minutes <= 0 and given.images <= 0:
        parser.error("give --minutes or --images")
    return given


class _Talk:
    """Says the loss every few seconds."""

    def __init__(self) -> None:
        self._next_s = 0.0

    def __call__(self, step: TrainingStep) -> None:
        if step.elapsed_s >= self._next_s:
            _say(f"{step.elapsed_s:6.0f} s {step.images:9d} images, loss {float(step.loss):.3f}")
            self._next_s = step.elapsed_s + SAID_EVERY_S


def _differing_bytes(shape: tuple[int, int, int], device: torch.device) -> int:
    """Images whose bytes differ between numpy and torch on the device."""
    scenes = draw_scenes("validation", np.arange(TWINS))
    twin = render(scenes, *shape[1:], torch, lambda values: torch.from_numpy(np.ascontiguousarray(values)).to(device))
    return int((twin.cpu().numpy() != render(scenes, *shape[1:])).any(axis=(1, 2, 3)).sum())


def _drawn_per_s(shape: tuple[int, int, int], device: torch.device, batch: int) -> float:
    from pybench.models.training.synthetic import draw_batch

    rounds = 4 if device.type == "cuda" else 1
    draw_batch("train", np.arange(batch), shape, device)
    begin_s = time.monotonic()
    for _ in range(rounds):
        images, _ = draw_batch("train", np.arange(batch), shape, device)
    float(images.sum())  # waits
    return rounds * batch / (time.monotonic() - begin_s)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
