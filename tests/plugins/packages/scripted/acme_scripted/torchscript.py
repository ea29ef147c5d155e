# SPDX-License-Identifier: Apache-2.0
import time

import torch

from pybench.runtimes.torch import TorchSession, prepare, set_up


class TracedSession(TorchSession):
    def _forward(self, held):
        begun_s = time.monotonic()
        traced = torch.jit.trace(self.module, held)
        self.compile_s = time.monotonic() - begun_s
        return traced


def open_case(given, spec, case, threads, *, deterministic=False):
    kind = set_up(case.precision, threads, case.device, runtime=case.runtime_row)
    module = prepare(given(), spec, case.precision, kind, deterministic)
    return TracedSession(module, spec, case.precision, kind)
