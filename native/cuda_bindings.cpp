// SPDX-License-Identifier: Apache-2.0
// The CUDA half of the boundary between Python and C++: convert, release the GIL, call, map errors. No logic lives
// here.
#include "cuda_bindings.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <stdexcept>

#include "columns.hpp"
#include "cuda_driver.hpp"
#include "cuda_load.hpp"
#include "graph_timer.hpp"

namespace py = pybind11;

namespace pybench {
namespace {

using WithoutGil = py::call_guard<py::gil_scoped_release>;
using Integers = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

// Lets Python's signal handlers run; true when one of them raised. Called without the GIL.
bool signalled() {
  const py::gil_scoped_acquire acquire;
  return PyErr_CheckSignals() != 0;
}

py::dict replay(const GraphTimer& timer, std::int64_t iterations, std::int64_t minimum_ns, const Integers& due_ns,
                std::size_t depth) {
  const Pace pace{iterations, minimum_ns, {due_ns.data(), due_ns.data() + due_ns.size()}};
  const GraphReplays replays = [&] {
    const py::gil_scoped_release release;
    return timer.replay(pace, depth, signalled);
  }();
  if (replays.interrupted) throw py::error_already_set();
  py::dict table;
  add_column(table, "due_ns", replays.list, &GraphReplay::due_ns);
  add_column(table, "enqueue_begin_ns", replays.list, &GraphReplay::enqueue_begin_ns);
  add_column(table, "enqueue_end_ns", replays.list, &GraphReplay::enqueue_end_ns);
  add_column(table, "end_ns", replays.list, &GraphReplay::end_ns);
  add_column(table, "gpu_begin_ns", replays.list, &GraphReplay::gpu_begin_ns);
  add_column(table, "gpu_end_ns", replays.list, &GraphReplay::gpu_end_ns);
  table["gpu_origin_ns"] = replays.gpu_origin_ns;
  table["gpu_origin_uncertainty_ns"] = replays.gpu_origin_uncertainty_ns;
  return table;
}

LoadRun run_load(CudaLoad& load, std::int64_t duration_ns, double level) {
  const LoadRun run = [&] {
    const py::gil_scoped_release release;
    return load.run(duration_ns, level, signalled);
  }();
  if (run.interrupted) throw py::error_already_set();
  return run;
}

// CudaError of C++ as CudaError of Python, with its facts as attributes.
void translate_cuda_error(py::module_& module) {
  static py::handle kind = py::exception<CudaError>(module, "CudaError", PyExc_RuntimeError).release();
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const CudaError& error) {
      const py::object raised = kind(error.what());
      raised.attr("call") = error.call;
      raised.attr("code") = error.code;
      raised.attr("name") = error.name;
      PyErr_SetObject(kind.ptr(), raised.ptr());
    }
  });
}

}  // namespace

void bind_cuda(py::module_& module) {
  translate_cuda_error(module);
  py::class_<CudaDevice>(module, "CudaDevice")
      .def_readonly("uuid", &CudaDevice::uuid)
      .def_readonly("name", &CudaDevice::name)
      .def_readonly("multiprocessors", &CudaDevice::multiprocessors);
  py::class_<CudaDriver, std::shared_ptr<CudaDriver>>(module, "CudaDriver")
      .def_property_readonly("available", &CudaDriver::available)
      .def_property_readonly("opened", &CudaDriver::opened)
      .def_property_readonly("reason", &CudaDriver::reason)
      .def_property_readonly("path", &CudaDriver::path)
      .def_property_readonly("version", &CudaDriver::version)
      .def("devices", &CudaDriver::devices, WithoutGil());
  module.def("open_cuda", &CudaDriver::open, py::arg("path") = "", WithoutGil());
  py::class_<GraphTimer>(module, "GraphTimer")
      .def(py::init<std::shared_ptr<CudaDriver>, std::uintptr_t, std::uintptr_t, std::uintptr_t>(), py::arg("driver"),
           py::arg("graph_exec"), py::arg("stream"), py::arg("before") = 0, WithoutGil())
      .def("replay", &replay, py::arg("iterations"), py::arg("minimum_ns"), py::arg("due_ns"), py::arg("depth"));
  py::class_<LoadRun>(module, "LoadRun")
      .def_readonly("begin_ns", &LoadRun::begin_ns)
      .def_readonly("end_ns", &LoadRun::end_ns)
      .def_readonly("busy_ns", &LoadRun::busy_ns)
      .def_property_readonly("kernels_ns", [](const LoadRun& run) {
        return py::array_t<std::int64_t>(static_cast<py::ssize_t>(run.kernels_ns.size()), run.kernels_ns.data());
      });
  py::class_<CudaLoad>(module, "CudaLoad")
      .def(py::init<std::shared_ptr<CudaDriver>, const CudaDevice&>(), py::arg("driver"), py::arg("device"),
           WithoutGil())
      .def("run", &run_load, py::arg("duration_ns"), py::arg("level"))
      .def_static("ptx", &CudaLoad::ptx, py::arg("version"), py::arg("target"));
}

}  // namespace pybench
