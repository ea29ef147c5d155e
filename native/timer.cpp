// SPDX-License-Identifier: Apache-2.0
// Implements timer.hpp on CPython's call interface.
#include <Python.h>
// Python.h must come first.
#include "clock.hpp"
#include "timer.hpp"

namespace pybench {

std::vector<CallTime> time_calls(PyObject* work, std::int64_t iterations, std::int64_t minimum_ns, bool& failed) {
  std::vector<CallTime> times;
  times.reserve(static_cast<std::size_t>(iterations));
  failed = false;
  const std::int64_t first_ns = monotonic_raw_ns();
  std::int64_t now_ns = first_ns;
  while (static_cast<std::int64_t>(times.size()) < iterations || now_ns - first_ns < minimum_ns) {
    const std::int64_t begin_ns = monotonic_raw_ns();
    PyObject* result = PyObject_CallNoArgs(work);
    now_ns = monotonic_raw_ns();
    // A callable that is C all the way never lets Python look at signals, so Ctrl-C would not end this loop.
    failed = result == nullptr || PyErr_CheckSignals() != 0;
    Py_XDECREF(result);
    if (failed) break;
    times.push_back({begin_ns, now_ns});
  }
  return times;
}

}  // namespace pybench
