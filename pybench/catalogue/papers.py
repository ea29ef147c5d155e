# SPDX-License-Identifier: Apache-2.0
"""Papers that published values come from. A `source` of a plan begins with the name of one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper.

    name: the beginning of a `source` in plans
    page: the file of its page in docs/results
    title: as printed, in its language
    authors: as printed
    """

    name: str
    page: str
    title: str
    authors: str


_PELOTAS = "Murilo Salem, Daniel Pontes, Luísa Bohm, Henrique dos Reis, Gerson Geraldo H. Cavalheiro"

PAPERS = (
    Paper(
        "Precision trade-offs with TensorRT",
        "precision-trade-offs.md",
        "Avaliação Experimental dos Trade-offs entre Precisão Numérica, Desempenho e Eficiência Energética em "
        "Inferência com TensorRT",
        _PELOTAS,
    ),
    Paper(
        "GC-Bench",
        "gc-bench.md",
        "Avaliação Energética Sensível ao Regime de Execução em GPU: PyTorch e Pré-processamento Externo em Go/Rust",
        _PELOTAS,
    ),
    Paper(
        "Shafique 2023",
        "amp-and-quantisation.md",
        "Deep Learning Performance Characterization on GPUs for Various Quantization Frameworks",
        "Muhammad Ali Shafique, Arslan Munir, Joonho Kong",
    ),
    Paper(
        "FP8 against INT8 on VGG16",
        "fp8-vgg16.md",
        "Quantisation of VGG16 to FP8 and INT8 (known here by an abstract without a title)",
        "Unnamed authors",
    ),
    Paper(
        "Works on inference",
        "works-on-inference.md",
        "Eight abstracts and a review on inference with TensorRT and others (a collection without a title)",
        "Oviedo et al.; Łucki et al.; Furutanpey et al.; Qu et al.; a reviewer of Nimble; Kacmaz et al.; "
        "Swaminathan et al.; Hu et al.; Alizadeh and Castor",
    ),
)
