# SPDX-License-Identifier: Apache-2.0
from torch import Tensor, nn

WIDTH = 32


class TwoLayers(nn.Module):
    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.first = nn.Linear(16, WIDTH)
        self.last = nn.Linear(WIDTH, outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        return self.last(self.first(vectors).relu())
