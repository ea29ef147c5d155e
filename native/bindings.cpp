// SPDX-License-Identifier: Apache-2.0
// The boundary between Python and C++: convert, release the GIL, call, map errors. No logic lives here. What is about
// one subject is in a file of its own; the clocks, the timer and the counter of the CPU are here.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "clock.hpp"
#include "cuda_bindings.hpp"
#include "integration_bindings.hpp"
#include "perf_counter.hpp"
#include "reading_bindings.hpp"
#include "recovery_bindings.hpp"
#include "sampling_bindings.hpp"
#include "timer.hpp"

namespace py = pybind11;
using namespace pybench;

namespace {

using WithoutGil = py::call_guard<py::gil_scoped_release>;

// int64 [n, 3]: due, begin and end of each call; int64 [m, 2]: begin and end of each probe of the core.
std::pair<py::array_t<std::int64_t>, py::array_t<std::int64_t>> timed_calls(
    const py::object& work, std::int64_t iterations, std::int64_t minimum_ns,
    const py::array_t<std::int64_t, py::array::c_style>& due_ns) {
  bool failed = false;
  const Pace pace{iterations, minimum_ns, {due_ns.data(), due_ns.data() + due_ns.size()}};
  CoreProbes probes;
  const auto times = time_calls(work.ptr(), pace, probes, failed);
  if (failed) throw py::error_already_set();
  py::array_t<std::int64_t> array({static_cast<py::ssize_t>(times.size()), py::ssize_t{3}});
  std::int64_t* out = array.mutable_data();
  for (const CallTime& time : times) {
    *out++ = time.due_ns;
    *out++ = time.begin_ns;
    *out++ = time.end_ns;
  }
  py::array_t<std::int64_t> probed({static_cast<py::ssize_t>(probes.times().size()), py::ssize_t{2}});
  std::int64_t* probe_out = probed.mutable_data();
  for (const ProbeTime& probe : probes.times()) {
    *probe_out++ = probe.begin_ns;
    *probe_out++ = probe.end_ns;
  }
  return {array, probed};
}

void sleep_until(std::int64_t deadline_ns) {
  for (bool done = false; !done;) {
    {
      const py::gil_scoped_release release;
      done = sleep_until_ns(deadline_ns);
    }
    if (!done && PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

void bind_clock_and_timer(py::module_& module) {
  module.def("monotonic_raw_ns", &monotonic_raw_ns);
  py::class_<RealtimeAnchor>(module, "RealtimeAnchor")
      .def_readonly("monotonic_raw_ns", &RealtimeAnchor::monotonic_raw_ns)
      .def_readonly("realtime_ns", &RealtimeAnchor::realtime_ns)
      .def_readonly("uncertainty_ns", &RealtimeAnchor::uncertainty_ns);
  module.def("anchor_realtime", &anchor_realtime);
  module.def("sleep_until_ns", &sleep_until, py::arg("deadline_ns"));
  module.def("time_calls", &timed_calls, py::arg("work"), py::arg("iterations"), py::arg("minimum_ns"),
             py::arg("due_ns"));
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "What Python must not disturb while it is measured. See pybench.measure for the interface.";
  module.attr("BUILD_ID") = PYBENCH_BUILD_ID;
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const std::system_error& error) {
      errno = error.code().value();
      PyErr_SetFromErrno(PyExc_OSError);
    }
  });
  bind_clock_and_timer(module);
  bind_cuda(module);
  bind_sampling(module);
  bind_integration(module);
  bind_recovery(module);
  bind_reading(module);
  py::class_<PerfCounter>(module, "PerfCounter")
      .def(py::init<std::uint32_t, std::uint64_t, int>(), py::arg("type_number"), py::arg("config"), py::arg("cpu"))
      .def("read", &PerfCounter::read, WithoutGil());
}
