# SPDX-License-Identifier: Apache-2.0
"""What a runtime does not execute: asked of its row by the plan's side before a run, and by the runtime in the run.

One obstacle has one code, whoever finds it (docs/reasons.md). Each function returns None where nothing is in
the way, and raises UnsupportedError else.
"""

from __future__ import annotations

from collections.abc import Collection

from pybench.catalogue.causes import Cause
from pybench.catalogue.precisions import NUMBER_TYPES, PRECISIONS, missing_type
from pybench.catalogue.runtimes import RUNTIMES, Backend, Executes, Runtime, executors_of, opening
from pybench.errors import UnsupportedError


def refuse_precision(
    runtime: Runtime,
    backend: Backend | None,
    precision: str,
    *,
    has_gpu: bool,
    capability: float | None = None,
    on_cpu: Collection[str] | None = None,
    training: bool = False,
) -> None:
    """Whether a runtime, on one of its backends, infers or trains in a precision.

    `has_gpu`: whether the case will run on one; `capability`: that GPU's compute capability, None: not known.
    `on_cpu`: types that the runtime's package has kernels for on this CPU; None: it does not say.
    Codes: `no_<precision>_in_<runtime>`; `no_<precision>_on_<backend>` of a runtime with backends; `no_gpu`;
    `no_<type>` for a GPU or a CPU that does not multiply in a type.
    """
    executes = _executes(runtime, backend, training)
    if precision not in executes:
        raise _does_not(runtime, backend, precision, executes, training)
    if executes[precision] == "on_gpu" and not has_gpu:
        without = [name for name, where in executes.items() if where == "anywhere"]
        raise UnsupportedError(
            f"{precision} in {_called(runtime, backend)} needs a GPU, and this case has none",
            code=Cause.NO_GPU,
            hint=f"without a GPU it runs {', '.join(without)}" if without else "use another runtime, or a GPU",
        )
    if executes[precision] == "on_some_cpus" and on_cpu is not None:
        _refuse_on_cpu(runtime, precision, on_cpu)
    lacking = None if capability is None else missing_type(precision, capability)
    if lacking is not None:
        raise UnsupportedError(
            f"{lacking.name.upper()} needs a GPU of compute capability {lacking.capability} or later",
            code=Cause.NO_TYPE,
            names=(lacking.name,),
            hint=f"this GPU has {capability}: use another precision",
        )


def refuse_mode(runtime: Runtime, mode: str, *, has_gpu: bool) -> None:
    """Whether a runtime's mode of compiling works where the case runs."""
    if mode in runtime.graph_modes and not has_gpu:
        without = [each for each in runtime.modes if each not in runtime.graph_modes]
        raise UnsupportedError(
            f"compile_mode {mode} records CUDA graphs, and this case runs on the CPU",
            code=Cause.NO_GPU,
            hint=f"use compile_mode: {' or '.join(without)}, or a GPU",
        )


def refuse_transfers(runtime: Runtime, *, has_gpu: bool) -> None:
    """Whether an iteration can include the copies to and from the device."""
    if not runtime.transfers:
        raise UnsupportedError(
            f"{runtime.name} captures the forward pass without its copies",
            code=Cause.NO_TRANSFERS,
            names=(runtime.name,),
            hint="set transfers: false, or use runtime: torch",
        )
    if not has_gpu:
        raise UnsupportedError(
            "`transfers: true` includes the copies to and from a GPU, and this case runs on the CPU",
            code=Cause.NO_GPU,
            hint="set transfers: false",
        )


def refuse_training(runtime: Runtime) -> None:
    """Whether a runtime trains at all."""
    if not runtime.trains:
        trainers = [row.name for row in RUNTIMES.values() if row.trains]
        raise UnsupportedError(
            f"{runtime.name} does not train", code=Cause.NO_TRAINING, hint=f"use runtime: {' or '.join(trainers)}"
        )


def refuse_generation(runtime: Runtime, backend: Backend | None, precision: str) -> None:
    """Whether a runtime generates at all, on one of its backends, and in a precision that its cache has.

    Codes: `no_generation_in_<runtime>`; `no_generation_on_<backend>`; `no_<precision>_cache_on_<backend>`.
    """
    if runtime.generates is None:
        others = [row.name for row in RUNTIMES.values() if row.generates is not None]
        raise UnsupportedError(
            f"{runtime.name} keeps no cache of keys and values here, so it does not generate",
            code=Cause.NO_GENERATION_IN_RUNTIME,
            names=(runtime.name,),
            hint=f"use runtime: {' or '.join(others)}",
        )
    if backend is None or precision in backend.generates_in:
        return
    called = _called(runtime, backend)
    if not backend.generates_in:
        able = [each.name for each in runtime.backends if each.generates_in]
        raise UnsupportedError(
            f"{called} would build an engine for each length of the cache, so it does not generate",
            code=Cause.NO_GENERATION_ON_PROVIDER,
            names=(backend.name,),
            hint=f"use provider: {' or '.join(able)}",
        )
    if precision in backend.precisions:
        able = [row.name for row in RUNTIMES.values() if row.generates is not None and precision in row.precisions]
        raise UnsupportedError(
            f"{called} has no cache of keys and values in {precision} here: files are converted around FP32 inputs",
            code=Cause.NO_CACHE_ON_PROVIDER,
            names=(precision, backend.name),
            hint=f"it generates in {', '.join(backend.generates_in)}"
            + (f"; for {precision}, use runtime: {' or '.join(able)}" if able else ""),
        )


def refuse_file(runtime: Runtime) -> None:
    """Whether a runtime runs a user's ONNX file."""
    if runtime.opens == "module":
        raise UnsupportedError(
            f"{runtime.name} runs built-in models, and no ONNX file",
            code=Cause.ONNX_IN_TORCH,
            hint=f"use runtime: {' or '.join(opening('onnx'))}",
        )


def refuse_path(runtime: Runtime, path: str, *, takes_text: bool) -> None:
    """Whether a runtime that reads its text itself reads it by the case's path. `takes_text`: a built-in model does."""
    if runtime.own_path is None:
        return
    if not takes_text:
        raise UnsupportedError(
            f"{runtime.name} runs built-in language models on text",
            code=Cause.NO_TEXT,
            names=(runtime.name,),
            hint="use such a model, or runtime: onnxruntime",
        )
    if path != runtime.own_path:
        raise UnsupportedError(
            f"{runtime.name} reads text in its own process, and has no path {path}",
            code=Cause.NO_PATH,
            names=(path, runtime.name),
            hint=f"set path: {runtime.own_path}, or use runtime: onnxruntime",
        )


def refuse_provider(runtime: Runtime, provider: str, device: str, providers: tuple[str, ...]) -> None:
    """Whether a named backend runs on the device that a case names, and the installed build has it.

    `providers`: those of the build, by the names that the runtime has for them.
    """
    backend = runtime.backend(provider, has_gpu=True)
    if backend is None:
        known = ", ".join(each.name for each in runtime.backends)
        raise UnsupportedError(
            f"{runtime.name} has no provider {provider}", code=Cause.NO_PROVIDER, names=(provider,), hint=known
        )
    if device != "auto" and backend.needs_gpu == (device == "cpu"):
        raise UnsupportedError(
            f"{runtime.name}'s provider {provider} does not run on device {device}",
            code=Cause.PROVIDER_AND_DEVICE,
            hint="leave one of them out",
        )
    if backend.called not in providers:
        raise UnsupportedError(
            f"the installed {runtime.needs[0]} has no {backend.called}",
            code=Cause.NO_PROVIDER,
            names=(provider,),
            hint=f"install {backend.install or runtime.needs[0]}, or leave `provider` out",
        )


def _refuse_on_cpu(runtime: Runtime, precision: str, on_cpu: Collection[str]) -> None:
    lacking = next((NUMBER_TYPES[name] for name in PRECISIONS[precision].multiplies if name not in on_cpu), None)
    if lacking is not None:
        raise UnsupportedError(
            f"{runtime.name} has no kernels for {lacking.name.upper()} on this CPU",
            code=Cause.NO_TYPE,
            names=(lacking.name,),
            hint=f"here it has them for {', '.join(sorted(on_cpu))}: use another precision",
        )


def _executes(runtime: Runtime, backend: Backend | None, training: bool) -> Executes:
    if training:
        return runtime.trains
    return runtime.precisions if backend is None else backend.precisions


def _called(runtime: Runtime, backend: Backend | None) -> str:
    return runtime.name if backend is None else f"{runtime.name}'s provider {backend.name}"


def _does_not(
    runtime: Runtime, backend: Backend | None, precision: str, executes: Executes, training: bool
) -> UnsupportedError:
    verb, others = ("train", ()) if training else ("infer", executors_of(precision))
    why = "" if backend is None else f": {backend.why_not}"
    code = Cause.NO_PRECISION_IN_RUNTIME if backend is None else Cause.NO_PRECISION_ON_PROVIDER
    return UnsupportedError(
        f"{_called(runtime, backend)} does not {verb} in {precision}{why}",
        code=code,
        names=(precision, (backend or runtime).name),
        hint=f"it takes {', '.join(executes)}" + (f"; {precision} runs in {', '.join(others)}" if others else ""),
    )
