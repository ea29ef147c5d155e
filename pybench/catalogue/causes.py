# SPDX-License-Identifier: Apache-2.0
"""Why a part of a run is not valid, why a case cannot run, and why a run ended without a result: one row for each code.

Codes are stored in run.json, in `valid.*.reasons` and in `reason`. `<word>` in a code stands for one name of its kind.
Reasons of single values are rows of `reasons`; docs/reasons.md has both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["validity", "unsupported", "outcome"]


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause.

    code: what is stored
    kind: `validity` of a part of a run, `unsupported` of a case, `outcome` of a run that ended otherwise than planned
    meaning: what has happened
    advice: what to do, beginning with a verb
    """

    code: str
    kind: Kind
    meaning: str
    advice: str


def _invalid(code: str, meaning: str, advice: str) -> Cause:
    return Cause(code, "validity", meaning, advice)


def _unsupported(code: str, meaning: str, advice: str) -> Cause:
    return Cause(code, "unsupported", meaning, advice)


def _outcome(code: str, meaning: str, advice: str) -> Cause:
    return Cause(code, "outcome", meaning, advice)


_READ_FACTS = "read `precision_facts` in summary.json"

CAUSES = (
    # --- timing, energy and accuracy ---
    _invalid("below_clock_resolution", "iterations are too short for the clock", "enlarge the batch"),
    _invalid("nothing_is_timed", "the workload does nothing that could be timed", "take another workload"),
    _invalid(
        "not_asked", "no energy of this device was measured", "run `pybench doctor`, which says what can be measured"
    ),
    _invalid(
        "not_finite",
        "outputs are NaN or infinite",
        "use another precision, or keep overflowing operators in FP32 (`keep_fp32`)",
    ),
    # --- precision, any runtime ---
    _invalid("no_audit", "the runtime has no audit, so its precision is not known", "treat the precision as a claim"),
    _invalid("audit_failed", "the audit itself failed", f"{_READ_FACTS}, and report the error"),
    _invalid(
        "no_kernels_recorded",
        "no kernel was recorded, so the types are not known",
        "install a torch with CUDA, which records the kernels",
    ),
    _invalid(
        "products_not_seen",
        "fewer than half of the graph's products are in kernels that are seen to multiply",
        f"{_READ_FACTS}; another runtime may show its kernels",
    ),
    _invalid(
        "no_multiplying_layers",
        "nothing multiplies in what ran",
        "compare the ONNX file with the model: it may be cut",
    ),
    # --- precision of a TensorRT engine, or of recorded kernels ---
    _invalid(
        "not_in_claimed_type",
        "a product multiplied in another type than the precision's",
        "read `refused` in `precision_facts`, and put these nodes on `keep_fp32` or change the precision",
    ),
    _invalid("type_not_told", "the type of a kernel cannot be known", "read `refused` in `precision_facts`"),
    _invalid("tf32_kernels", "TF32 kernels ran in a precision that is not `tf32`", "rebuild the engine, or use `tf32`"),
    _invalid(
        "no_tf32_kernels", "no TF32 kernel ran in the precision `tf32`", "compare with `fp32`: they are equal here"
    ),
    _invalid(
        "nodes_without_layer",
        "a product of the graph is in no layer, so nothing is proven of it",
        "read `nodes_without_layer` in `precision_facts`",
    ),
    _invalid(
        "no_layer_information", "the engine was built without details of its layers", "let pybench build the engine"
    ),
    _invalid(
        "outputs_differ",
        "the engine computes something else than its graph",
        "read `outputs` in `precision_facts`, then try another version of TensorRT",
    ),
    # --- precision of an ONNX file and of a torch module ---
    _invalid(
        "not_quantised", "too few operators are quantised", "use another `quantiser`, or see which nodes were kept"
    ),
    _invalid(
        "outside_keep_list",
        "an operator that the file does not declare as kept is in another type",
        "read `outside_keep_list` in `precision_facts`, and convert the file again",
    ),
    _invalid(
        "floating_type_differs",
        "operators compute in another floating type than the precision's",
        "name the precision that the file has, or export it in FP32",
    ),
    _invalid("quantised_nodes", "a file for `fp32` is quantised", "export the model in FP32"),
    _invalid("low_precision_weights", "a file for `fp32` has weights of a lower type", "export the model in FP32"),
    _invalid(
        "kernels_in_another_type",
        "the runtime computed in another type than the file's, because it has no such kernel",
        "use another provider or runtime for this precision",
    ),
    _invalid("no_multiplying_nodes", "nothing multiplies in the graph that the runtime executed", _READ_FACTS),
    _invalid(
        "no_integer_kernels", "the runtime executed int8 nodes in floating point", "use another `quantiser` or runtime"
    ),
    _invalid("parameters_differ", "parameters of the module have another type", "check how the model is built"),
    _invalid(
        "tf32_switches_differ", "torch's switches of TF32 are not as the precision says", "unset what changes them"
    ),
    # --- what a runtime does not do ---
    _unsupported("no_<precision>_in_<runtime>", "the runtime does not execute the precision", "take another runtime"),
    _unsupported(
        "no_<precision>_on_<provider>",
        "this provider of onnxruntime does not execute the precision",
        "take another `provider` or runtime",
    ),
    _unsupported(
        "no_<type>",
        "the GPU, or the CPU in OpenVINO, does not multiply in this type of numbers",
        "take a precision that it has",
    ),
    _unsupported(
        "no_<provider>_provider",
        "the installed onnxruntime has no such provider, or cannot start it",
        "install the build of onnxruntime that the message names",
    ),
    _unsupported(
        "provider_and_device", "the provider does not run on the named device", "leave out `provider` or `device`"
    ),
    _unsupported(
        "ranges_not_symmetric",
        "the provider takes only symmetric ranges",
        "set `scheme: symmetric`",
    ),
    _unsupported(
        "no_ranges_at_run",
        "`quantiser: dynamic` needs kernels that find ranges in each run, and the runtime has none",
        "take `runtime: onnxruntime` on a CPU, or another quantiser",
    ),
    _unsupported(
        "no_stored_weights",
        "`quantiser: weight-only` needs kernels that read weights as they are stored, and the runtime has none",
        "take `runtime: onnxruntime` on a CPU or with `provider: cuda`, or another quantiser",
    ),
    _unsupported(
        "nothing_to_store",
        "most weights of the model are not those of matrix products, which `quantiser: weight-only` stores smaller",
        "take another quantiser, or a model of linear layers",
    ),
    _unsupported(
        "no_search",
        "`quantiser: modelopt-autotune` cannot measure with TensorRT in its own process",
        "install TensorRT 10, or take another quantiser",
    ),
    _unsupported(
        "quantising_not_faster",
        "`quantiser: modelopt-autotune` measured no gain, and gave back a file without rounding",
        "take another quantiser, or the floating-point precision",
    ),
    _unsupported("no_training", "the runtime or the model does not train", "take a runtime and a model that train"),
    _unsupported("no_generation_in_<runtime>", "the runtime has no cache of keys and values", "take another runtime"),
    _unsupported(
        "no_generation_on_<provider>",
        "the provider would build an engine for each length of the cache",
        "take another provider",
    ),
    _unsupported(
        "no_<precision>_cache_on_<provider>",
        "the provider infers in this precision, but no file with a cache is made in it",
        "generate in FP32, or take runtime torch",
    ),
    _unsupported("no_transfers_in_<runtime>", "the runtime has no copies in its iterations", "set `transfers: false`"),
    _unsupported("no_path_<path>_in_<runtime>", "the runtime tokenizes itself, by another path", "set `path: go_rust`"),
    _unsupported(
        "no_text_for_<runtime>", "the model takes no text, or is your own file", "take `runtime: onnxruntime`"
    ),
    _unsupported("not_compiled", "OpenVINO does not compile this graph", "take `runtime: onnxruntime`"),
    _unsupported("onnx_in_torch", "the runtime runs built-in models, and no ONNX file", "take `runtime: onnxruntime`"),
    _unsupported("no_runtime", "the case has no runtime", "name a runtime in the plan"),
    _unsupported("no_cache", "the module keeps no keys and values", "take a built-in language model for `generate`"),
    _unsupported("no_parts", "the module cannot be taken apart", "use `dispatch: one-engine`"),
    # --- what is not installed ---
    _unsupported("no_<package>", "a package is missing, or cannot be loaded", "install what `pybench doctor` names"),
    _unsupported("no_plugin", "the package that adds the case's rows is missing", "install it where the case runs"),
    _unsupported("no_safetensors", "the package safetensors is missing", "install pybench-campaign[safetensors]"),
    _unsupported("no_uv", "uv, which makes the environment of modelopt, is missing", "install uv"),
    _unsupported("orchestrator_missing", "`pybench-orchestrator` is not installed", "run `make`"),
    _unsupported("torch_too_old", "this torch does not give the handles of its CUDA graphs", "install a newer torch"),
    _unsupported(
        "no_bf16_tensors",
        "arrays in bfloat16 cannot be handed to onnxruntime here",
        "install pybench-campaign[onnx]; on a GPU, export the model with inputs and outputs in FP32",
    ),
    # --- what the machine lacks ---
    _unsupported("no_gpu", "the case requires a GPU, and has none", "run on a GPU, or change what the message names"),
    _unsupported("no_such_gpu", "there is no GPU with this UUID", "take a UUID that `pybench doctor` lists"),
    _unsupported("no_such_board", "NVML finds no board with this UUID", "take a UUID that `pybench doctor` lists"),
    _unsupported("no_cuda_driver", "there is no CUDA driver", "install NVIDIA's driver"),
    _unsupported("no_nvml", "settings of the board require NVML, which cannot be opened", "install NVIDIA's driver"),
    _unsupported("no_permission", "this user may not change the board", "run as root, or leave the factor out"),
    _unsupported("setting_unsupported", "the board does not have this setting", "leave the factor out"),
    _unsupported("setting_out_of_range", "the board does not take this value", "take a value that the message lists"),
    _unsupported(
        "no_such_cpu", "a CPU in `affinity` is not there, or not allowed", "name CPUs that the process may use"
    ),
    _unsupported(
        "no_numa_node", "the NUMA node is not there, or not allowed", "leave `numa_node` out, or allow the node"
    ),
    _unsupported(
        "no_power_rails", "the energy of the whole module cannot be measured", "read what `pybench doctor` says of it"
    ),
    _unsupported(
        "no_cpu_energy", "the energy of the CPU cannot be measured", "read what `pybench doctor` says of RAPL"
    ),
    _unsupported(
        "gpu_busy", "another process uses the GPU whose sensor is to be measured", "end it, and measure again"
    ),
    _unsupported("sensor_unclear", "the steps of power do not show the sensor's lag", "measure again on an idle GPU"),
    _unsupported(
        "no_room_for_profile",
        "too little memory is free to open the model twice, as its profile requires",
        "free some memory, or do without its profile",
    ),
    # --- what a file or graph does not allow ---
    _unsupported(
        "no_kernel", "the runtime has no kernel for an operator", "keep that node in FP32, or change the runtime"
    ),
    _unsupported("format_too_new", "the file's ir_version is newer than onnxruntime's", "install a newer onnxruntime"),
    _unsupported("opset_too_new", "the file's opset is newer than onnxruntime's", "install a newer onnxruntime"),
    _unsupported(
        "unknown_operator", "the file has an operator that is not in ONNX", "export the model with ONNX's own operators"
    ),
    _unsupported("no_opset", "the file names no opset", "export the model again"),
    _unsupported(
        "graph_with_bodies", "a node contains a graph (If, Loop, Scan)", "export the model without such nodes"
    ),
    _unsupported("data_dependent_shape", "a shape depends on the data", "export the model with shapes that do not"),
    _unsupported("no_quantiser", "the quantiser does not make this type", "take a quantiser that the message names"),
    _unsupported("no_calibration", "the quantiser does not have this calibration", "take one that the message names"),
    _unsupported("no_full_graph", "torch.compile cannot take the model as one graph", "take `runtime: torch`"),
    _unsupported("export_failed", "torch exported nothing", "export the model yourself, and name the ONNX file"),
    _unsupported(
        "no_such_artefact",
        "another version of pybench planned what this one cannot make",
        "run the campaign with the version that began it",
    ),
    # --- runs that ended otherwise ---
    _outcome("input_refused", "a file of yours cannot be used", "read `detail`, mend the file, and run again"),
    _outcome("no_file", "what makes an artefact left no file", "read the log of the artefact"),
    _outcome("timeout", "the run took longer than `--timeout`", "raise `--timeout`"),
    _outcome("asked_to_stop", "you stopped the campaign", "run the same command again"),
    _outcome("job_ending", "the batch system ended the job", "submit again: only what is missing runs"),
    _outcome("job_forgotten", "the job has ended, and Slurm no longer knows how", "submit again"),
    _outcome("REQUEUED", "Slurm started the job again", "wait for the job: it does the run again"),
    _outcome("<state>", "Slurm's word for how the job ended, such as NODE_FAIL", "submit again: what is missing runs"),
    _outcome("MemoryError", "Python could not allocate memory", "use a smaller batch, or a machine with more memory"),
    _outcome("killed_for_memory", "the kernel killed the worker for its memory", "use a smaller batch"),
    _outcome("<evidence>", "a framework, or the driver, says that memory ran out", "use a smaller batch"),
    _outcome("SIGKILL", "something outside pybench killed the worker", "look for it, and run again"),
    _outcome("<signal>", "a signal ended the worker, such as SIGSEGV", "read stderr.log of the run"),
    _outcome("<exception>", "a framework raised this exception", "read stderr.log of the run"),
    _outcome("exit_status", "the worker failed after its work was done", "read stderr.log of the run"),
    _outcome("no_report", "the worker ended without saying how", "read stderr.log of the run"),
)
