# SPDX-License-Identifier: Apache-2.0
"""Labelled samples for PP-OCR's classifier of text directions: lines of text, upright (0) or upside down (1).

    python bench/keep_fp32/text_lines.py CLASSIFIER FOLDER

writes lines.npz, 1000 samples that judge and 200 that choose ranges, and classifier.onnx: CLASSIFIER with the height
and width fixed that it is used with. Images are BGR from -1 to 1. CLASSIFIER is ch_ppocr_mobile_v2.0_cls_infer.onnx of
the package rapidocr-onnxruntime 1.4.4.
"""

from __future__ import annotations

import string
import sys
from pathlib import Path

import matplotlib
import numpy as np
import numpy.typing as npt
import onnx
from PIL import Image, ImageDraw, ImageFilter, ImageFont

HEIGHT, WIDTH = 48, 192
JUDGING, CHOOSING = 1000, 200
SEED = 7
LETTERS = list(string.ascii_letters + string.digits + "   .,-")
FONTS = sorted(
    path for path in (Path(matplotlib.get_data_path()) / "fonts/ttf").glob("DejaVuS*.ttf") if "Display" not in path.name
)


def draw_line(rng: np.random.Generator) -> tuple[npt.NDArray[np.float32], int]:
    """An image [3, 48, 192], padded with 0 on the right, and its class."""
    text = "".join(rng.choice(LETTERS, rng.integers(4, 16)))
    font = ImageFont.truetype(str(rng.choice([str(path) for path in FONTS])), int(rng.integers(24, 44)))
    _, _, right, bottom = font.getbbox(text)
    paper, ink = (tuple(int(value) for value in rng.integers(*span, 3)) for span in ((120, 256), (0, 110)))
    image = Image.new("RGB", (max(int(right) + 12, 20), int(bottom) + 10), paper)
    ImageDraw.Draw(image).text((6, 4), text, font=font, fill=ink)
    image = image.rotate(float(rng.normal(0, 2)), fillcolor=paper)
    image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, 1.5))))
    label = int(rng.integers(2))
    if label:
        image = image.rotate(180)
    width = min(WIDTH, max(1, round(HEIGHT * image.width / image.height)))
    clean = np.asarray(image.resize((width, HEIGHT), Image.Resampling.BILINEAR), np.float64)
    noisy = clean + rng.normal(0, rng.uniform(0, 25), clean.shape)
    drawn = np.zeros((3, HEIGHT, WIDTH), np.float32)
    drawn[:, :, :width] = (np.clip(noisy, 0, 255) / 127.5 - 1).transpose(2, 0, 1)[::-1]
    return drawn, label


def main(classifier: Path, folder: Path) -> None:
    rng = np.random.default_rng(SEED)
    choosing = [draw_line(rng)[0] for _ in range(CHOOSING)]
    images, labels = zip(*(draw_line(rng) for _ in range(JUDGING)), strict=True)
    np.savez(folder / "lines.npz", x=np.stack(images), labels=np.array(labels), train_x=np.stack(choosing))
    model = onnx.load(classifier)
    dimensions = model.graph.input[0].type.tensor_type.shape.dim
    dimensions[0].dim_param = "batch"
    dimensions[2].dim_value, dimensions[3].dim_value = HEIGHT, WIDTH
    onnx.save(model, folder / "classifier.onnx")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
