# SPDX-License-Identifier: Apache-2.0
"""Codes of reasons that are said of a run or of a part of it: one member of `Cause` for each, with its row.

They say why a part of a run is not valid, why a case cannot run, and why a run ended without a result. They are stored
in run.json, in `valid.*.reasons` and in `reason`. Codes that are said of one value are in `reasons`; docs/reasons.md
has both.
"""

from __future__ import annotations

from pybench.catalogue.reason_rows import Kind, ReasonRow

_Row = tuple[str, Kind, str, str]


def _invalid(code: str, meaning: str, advice: str) -> _Row:
    return code, "validity", meaning, advice


def _unsupported(code: str, meaning: str, advice: str) -> _Row:
    return code, "unsupported", meaning, advice


def _outcome(code: str, meaning: str, advice: str) -> _Row:
    return code, "outcome", meaning, advice


class Cause(ReasonRow):
    """A part of a run that is not valid, a case that cannot run, or a run that ended otherwise than planned."""

    # --- timing, energy and accuracy ---
    BELOW_CLOCK_RESOLUTION = _invalid(
        "below_clock_resolution", "iterations are too short for the clock", "enlarge the batch"
    )
    NOTHING_IS_TIMED = _invalid(
        "nothing_is_timed", "the workload does nothing that could be timed", "take another workload"
    )
    NOT_ASKED = _invalid(
        "not_asked", "no energy of this device was measured", "run `pybench doctor`, which says what can be measured"
    )
    # --- precision, any runtime ---
    NO_AUDIT = _invalid(
        "no_audit", "the runtime has no audit, so its precision is not known", "treat the precision as a claim"
    )
    AUDIT_FAILED = _invalid(
        "audit_failed", "the audit itself failed", "read `precision_facts` in summary.json, and report the error"
    )
    NO_KERNELS_RECORDED = _invalid(
        "no_kernels_recorded",
        "no kernel was recorded, so the types are not known",
        "install a torch with CUDA, which records the kernels",
    )
    PRODUCTS_NOT_SEEN = _invalid(
        "products_not_seen",
        "fewer than half of the graph's products are in kernels that are seen to multiply",
        "read `precision_facts` in summary.json; another runtime may show its kernels",
    )
    NO_MULTIPLYING_LAYERS = _invalid(
        "no_multiplying_layers", "nothing multiplies in what ran", "compare the ONNX file with the model: it may be cut"
    )
    # --- precision of a TensorRT engine, or of recorded kernels ---
    NOT_IN_CLAIMED_TYPE = _invalid(
        "not_in_claimed_type",
        "a product multiplied in another type than that of the precision",
        "read `refused` in `precision_facts`, and put these nodes on `keep_fp32` or change the precision",
    )
    TYPE_NOT_TOLD = _invalid(
        "type_not_told", "the type of a kernel cannot be known", "read `refused` in `precision_facts`"
    )
    TF32_KERNELS = _invalid(
        "tf32_kernels", "TF32 kernels ran in a precision that is not `tf32`", "rebuild the engine, or use `tf32`"
    )
    NO_TF32_KERNELS = _invalid(
        "no_tf32_kernels", "no TF32 kernel ran in the precision `tf32`", "compare with `fp32`: they are equal here"
    )
    NODES_WITHOUT_LAYER = _invalid(
        "nodes_without_layer",
        "a product of the graph is in no layer, so nothing is proven of it",
        "read `nodes_without_layer` in `precision_facts`",
    )
    NO_LAYER_INFORMATION = _invalid(
        "no_layer_information", "the engine was built without details of its layers", "let pybench build the engine"
    )
    OUTPUTS_DIFFER = _invalid(
        "outputs_differ",
        "the engine computes something else than its graph",
        "read `outputs` in `precision_facts`, then try another version of TensorRT",
    )
    # --- precision of an ONNX file and of a torch module ---
    NOT_QUANTISED = _invalid(
        "not_quantised", "too few operators are quantised", "use another `quantiser`, or see which nodes were kept"
    )
    OUTSIDE_KEEP_LIST = _invalid(
        "outside_keep_list",
        "an operator that the file does not declare as kept is in another type",
        "read `outside_keep_list` in `precision_facts`, and convert the file again",
    )
    FLOATING_TYPE_DIFFERS = _invalid(
        "floating_type_differs",
        "operators compute in another floating type than that of the precision",
        "name the precision that the file has, or export it in FP32",
    )
    QUANTISED_NODES = _invalid("quantised_nodes", "a file for `fp32` is quantised", "export the model in FP32")
    LOW_PRECISION_WEIGHTS = _invalid(
        "low_precision_weights", "a file for `fp32` has weights of a lower type", "export the model in FP32"
    )
    KERNELS_IN_ANOTHER_TYPE = _invalid(
        "kernels_in_another_type",
        "the runtime computed in another type than that of the file, because it has no kernel for it",
        "use another provider or runtime for this precision",
    )
    NO_MULTIPLYING_NODES = _invalid(
        "no_multiplying_nodes",
        "nothing multiplies in the graph that the runtime executed",
        "read `precision_facts` in summary.json",
    )
    NO_INTEGER_KERNELS = _invalid(
        "no_integer_kernels", "the runtime executed int8 nodes in floating point", "use another `quantiser` or runtime"
    )
    PARAMETERS_DIFFER = _invalid(
        "parameters_differ", "parameters of the module have another type", "check how the model is built"
    )
    TF32_SWITCHES_DIFFER = _invalid(
        "tf32_switches_differ", "torch's switches of TF32 are not as the precision says", "unset what changes them"
    )
    # --- what a runtime does not do ---
    NO_PRECISION_IN_RUNTIME = _unsupported(
        "no_<precision>_in_<runtime>", "the runtime does not execute the precision", "take another runtime"
    )
    NO_PRECISION_ON_PROVIDER = _unsupported(
        "no_<precision>_on_<provider>",
        "this provider of onnxruntime does not execute the precision",
        "take another `provider` or runtime",
    )
    NO_TYPE = _unsupported(
        "no_<type>",
        "the GPU, or the CPU in OpenVINO, does not multiply in this type of numbers",
        "take a precision that it has",
    )
    NO_PROVIDER = _unsupported(
        "no_<provider>_provider",
        "the installed onnxruntime has no such provider, or cannot start it",
        "install the build of onnxruntime that the message names",
    )
    PROVIDER_AND_DEVICE = _unsupported(
        "provider_and_device", "the provider does not run on the named device", "leave out `provider` or `device`"
    )
    RANGES_NOT_SYMMETRIC = _unsupported(
        "ranges_not_symmetric", "the provider takes only symmetric ranges", "set `scheme: symmetric`"
    )
    NO_RANGES_AT_RUN = _unsupported(
        "no_ranges_at_run",
        "`quantiser: dynamic` needs kernels that find ranges in each run, and the runtime has none",
        "take `runtime: onnxruntime` on a CPU, or another quantiser",
    )
    NO_STORED_WEIGHTS = _unsupported(
        "no_stored_weights",
        "`quantiser: weight-only` needs kernels that read weights as they are stored, and the runtime has none",
        "take `runtime: onnxruntime` on a CPU or with `provider: cuda`, or another quantiser",
    )
    NOTHING_TO_STORE = _unsupported(
        "nothing_to_store",
        "most weights of the model are not those of matrix products, which `quantiser: weight-only` stores smaller",
        "take another quantiser, or a model of linear layers",
    )
    NO_SEARCH = _unsupported(
        "no_search",
        "`quantiser: modelopt-autotune` cannot measure with TensorRT in its own process",
        "install TensorRT 10, or take another quantiser",
    )
    QUANTISING_NOT_FASTER = _unsupported(
        "quantising_not_faster",
        "`quantiser: modelopt-autotune` measured no gain, and gave back a file without rounding",
        "take another quantiser, or the floating-point precision",
    )
    NOT_CAPTURED = _unsupported(
        "not_captured",
        "`cache: cold` replays a CUDA graph, and the engine cannot be captured as one",
        "leave out `cache`",
    )
    NO_TRAINING = _unsupported(
        "no_training", "the runtime or the model does not train", "take a runtime and a model that train"
    )
    NO_GENERATION_IN_RUNTIME = _unsupported(
        "no_generation_in_<runtime>", "the runtime has no cache of keys and values", "take another runtime"
    )
    NO_GENERATION_ON_PROVIDER = _unsupported(
        "no_generation_on_<provider>",
        "the provider would build an engine for each length of the cache",
        "take another provider",
    )
    NO_CACHE_ON_PROVIDER = _unsupported(
        "no_<precision>_cache_on_<provider>",
        "the provider infers in this precision, but no file with a cache is made in it",
        "generate in FP32, or take runtime torch",
    )
    NO_TRANSFERS = _unsupported(
        "no_transfers_in_<runtime>", "the runtime has no copies in its iterations", "set `transfers: false`"
    )
    NO_PATH = _unsupported(
        "no_path_<path>_in_<runtime>", "the runtime tokenizes itself, by another path", "set `path: go_rust`"
    )
    BATCH_OVER_SLOT = _unsupported(
        "batch_over_slot",
        "a batch has more ids than a slot of the ring of `go_rust`",
        "lower `batch` or `seq_len`, or take `path: rust`",
    )
    NO_TEXT = _unsupported(
        "no_text_for_<runtime>", "the model takes no text, or is your own file", "take `runtime: onnxruntime`"
    )
    NOT_COMPILED = _unsupported("not_compiled", "OpenVINO does not compile this graph", "take `runtime: onnxruntime`")
    ONNX_IN_TORCH = _unsupported(
        "onnx_in_torch",
        "the runtime runs models of pybench or a library, and no ONNX file",
        "take `runtime: onnxruntime`",
    )
    NO_RUNTIME = _unsupported("no_runtime", "the case has no runtime", "name a runtime in the plan")
    NO_CACHE = _unsupported(
        "no_cache", "the module keeps no keys and values", "take a built-in language model for `generate`"
    )
    NO_PARTS = _unsupported("no_parts", "the module cannot be taken apart", "use `dispatch: one-engine`")
    # --- what is not installed ---
    NO_PACKAGE = _unsupported(
        "no_<package>", "a package is missing, or cannot be loaded", "install what `pybench doctor` names"
    )
    NO_PLUGIN = _unsupported(
        "no_plugin", "the package that adds the case's rows is missing", "install it where the case runs"
    )
    NO_SAFETENSORS = _unsupported(
        "no_safetensors", "the package safetensors is missing", "install pybench-campaign[safetensors]"
    )
    NO_UV = _unsupported("no_uv", "uv, which makes the environment of modelopt, is missing", "install uv")
    ORCHESTRATOR_MISSING = _unsupported("orchestrator_missing", "`pybench-orchestrator` is not installed", "run `make`")
    TORCH_TOO_OLD = _unsupported(
        "torch_too_old", "this torch does not give the handles of its CUDA graphs", "install a newer torch"
    )
    NO_BF16_TENSORS = _unsupported(
        "no_bf16_tensors",
        "arrays in bfloat16 cannot be handed to onnxruntime here",
        "install pybench-campaign[onnx]; on a GPU, export the model with inputs and outputs in FP32",
    )
    # --- what the machine lacks ---
    NO_GPU = _unsupported(
        "no_gpu", "the case requires a GPU, and has none", "run on a GPU, or change what the message names"
    )
    NO_SUCH_GPU = _unsupported(
        "no_such_gpu", "there is no GPU with this UUID", "take a UUID that `pybench doctor` lists"
    )
    NO_SUCH_BOARD = _unsupported(
        "no_such_board", "NVML finds no board with this UUID", "take a UUID that `pybench doctor` lists"
    )
    NO_CUDA_DRIVER = _unsupported("no_cuda_driver", "there is no CUDA driver", "install NVIDIA's driver")
    NO_NVML = _unsupported(
        "no_nvml", "settings of the board require NVML, which cannot be opened", "install NVIDIA's driver"
    )
    NO_PERMISSION = _unsupported(
        "no_permission", "this user may not change the board", "run as root, or leave the factor out"
    )
    SETTING_UNSUPPORTED = _unsupported(
        "setting_unsupported", "the board does not have this setting", "leave the factor out"
    )
    SETTING_OUT_OF_RANGE = _unsupported(
        "setting_out_of_range", "the board does not take this value", "take a value that the message lists"
    )
    NO_SUCH_CPU = _unsupported(
        "no_such_cpu", "a CPU in `affinity` is not there, or not allowed", "name CPUs that the process may use"
    )
    NO_NUMA_NODE = _unsupported(
        "no_numa_node", "the NUMA node is not there, or not allowed", "leave `numa_node` out, or allow the node"
    )
    NO_POWER_RAILS = _unsupported(
        "no_power_rails", "the energy of the whole module cannot be measured", "read what `pybench doctor` says of it"
    )
    NO_CPU_ENERGY = _unsupported(
        "no_cpu_energy", "the energy of the CPU cannot be measured", "read what `pybench doctor` says of RAPL"
    )
    NO_NODE_ENERGY = _unsupported(
        "no_node_energy", "the energy of the whole node cannot be measured", "read what `pybench doctor` says of it"
    )
    GPU_BUSY = _unsupported(
        "gpu_busy", "another process uses the GPU whose sensor is to be measured", "end it, and measure again"
    )
    SENSOR_UNCLEAR = _unsupported(
        "sensor_unclear", "the steps of power do not show the sensor's lag", "measure again on an idle GPU"
    )
    NO_ROOM_FOR_PROFILE = _unsupported(
        "no_room_for_profile",
        "too little memory is free to open the model twice, as its profile requires",
        "free some memory, or do without its profile",
    )
    # --- what a file or graph does not allow ---
    NO_KERNEL = _unsupported(
        "no_kernel", "the runtime has no kernel for an operator", "keep that node in FP32, or change the runtime"
    )
    FORMAT_TOO_NEW = _unsupported(
        "format_too_new", "the ir_version of the file is newer than that of onnxruntime", "install a newer onnxruntime"
    )
    OPSET_TOO_NEW = _unsupported(
        "opset_too_new", "the opset of the file is newer than that of onnxruntime", "install a newer onnxruntime"
    )
    UNKNOWN_OPERATOR = _unsupported(
        "unknown_operator", "the file has an operator that is not in ONNX", "export the model with ONNX's own operators"
    )
    NO_OPSET = _unsupported("no_opset", "the file names no opset", "export the model again")
    GRAPH_WITH_BODIES = _unsupported(
        "graph_with_bodies", "a node contains a graph (If, Loop, Scan)", "export the model without such nodes"
    )
    DATA_DEPENDENT_SHAPE = _unsupported(
        "data_dependent_shape", "a shape depends on the data", "export the model with shapes that do not"
    )
    NO_QUANTISER = _unsupported(
        "no_quantiser", "the quantiser does not make this type", "take a quantiser that the message names"
    )
    NO_CALIBRATION = _unsupported(
        "no_calibration", "the quantiser does not have this calibration", "take one that the message names"
    )
    NO_FULL_GRAPH = _unsupported(
        "no_full_graph", "torch.compile cannot take the model as one graph", "take `runtime: torch`"
    )
    EXPORT_FAILED = _unsupported(
        "export_failed", "torch exported nothing", "export the model yourself, and name the ONNX file"
    )
    NO_SUCH_ARTEFACT = _unsupported(
        "no_such_artefact",
        "another version of pybench planned what this one cannot make",
        "run the campaign with the version that began it",
    )
    # --- runs that ended otherwise ---
    INPUT_REFUSED = _outcome(
        "input_refused", "a file of yours cannot be used", "read `detail`, mend the file, and run again"
    )
    NO_FILE = _outcome("no_file", "what makes an artefact left no file", "read the log of the artefact")
    TIMEOUT = _outcome("timeout", "the run took longer than `--timeout`", "raise `--timeout`")
    ASKED_TO_STOP = _outcome("asked_to_stop", "you stopped the campaign", "run the same command again")
    JOB_ENDING = _outcome("job_ending", "the batch system ended the job", "submit again: only what is missing runs")
    JOB_FORGOTTEN = _outcome("job_forgotten", "the job has ended, and Slurm no longer knows how", "submit again")
    REQUEUED = _outcome("REQUEUED", "Slurm started the job again", "wait for the job: it does the run again")
    STATE = _outcome(
        "<state>", "Slurm's word for how the job ended, such as NODE_FAIL", "submit again: what is missing runs"
    )
    MEMORY_ERROR = _outcome(
        "MemoryError", "Python could not allocate memory", "use a smaller batch, or a machine with more memory"
    )
    KILLED_FOR_MEMORY = _outcome(
        "killed_for_memory", "the kernel killed the worker for its memory", "use a smaller batch"
    )
    EVIDENCE = _outcome("<evidence>", "a framework, or the driver, says that memory ran out", "use a smaller batch")
    SIGKILL = _outcome("SIGKILL", "something outside pybench killed the worker", "look for it, and run again")
    SIGNAL = _outcome("<signal>", "a signal ended the worker, such as SIGSEGV", "read stderr.log of the run")
    EXCEPTION = _outcome("<exception>", "a framework raised this exception", "read stderr.log of the run")
    EXIT_STATUS = _outcome("exit_status", "the worker failed after its work was done", "read stderr.log of the run")
    NO_REPORT = _outcome("no_report", "the worker ended without saying how", "read stderr.log of the run")
