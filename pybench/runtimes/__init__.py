# SPDX-License-Identifier: Apache-2.0
"""What executes a model: one module a runtime, behind one small protocol.

    session = onnxruntime.open_session(path, precision="int8", threads=2, device="auto")
    kind = torch.set_up("fp32", threads=2, device="cpu")
    spec = torch.spec_of("images", (None, 3, 224, 224), language=False)
    session = torch.open_session(module, spec, precision="fp32", kind=kind)

    session.inputs                       # (TensorSpec(name, dtype, shape with None where free), ...)
    session.run({"images": array})       # list of float32/int64 arrays on the host
    iterate = session.bind({"images": array}, transfers=False)     # a callable for the timing loop; it keeps the inputs
    work = session.bind_replay({"images": array}, transfers=False) # the same as a measure.Replayer, from C++ if it can
    launch = session.bind_feed()         # wait = launch({"ids": array}): copies in and starts; outputs stay there
    wait()                               # until that pass has ended; before it, the next batch can be fetched
    session.device                       # "cpu" or the GPU's UUID; session.device_uuid is None on the CPU
    session.labels, session.model_bytes
    session.compile_s                    # spent so far to make the model ready; None: nothing of that kind is done

An iteration ends when its outputs exist: on a GPU the callable waits for the device. A pass that is fed is waited for
apart from its launch, once each and before the next launch; where running is synchronous, waiting does nothing.

Opening raises UnsupportedError for what a runtime does not do (never something else in its place). It raises InputError
for a user's file that cannot be run, and DeviceMemoryError when memory ran out. This package knows no built-in model:
workloads hand over a module or a path.
"""
