// SPDX-License-Identifier: Apache-2.0
// Implements timer.hpp on CPython's call interface.
#include <Python.h>
// Python.h must come first.
#include "clock.hpp"
#include "timer.hpp"

namespace pybench {
namespace {

bool signalled_without_gil() {
  const PyGILState_STATE state = PyGILState_Ensure();
  const bool signalled = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  return signalled;
}

// Waits with the GIL given away, so that other Python threads run meanwhile. False when a signal handler raised.
bool await_arrival(std::int64_t due_ns) {
  if (monotonic_raw_ns() >= due_ns) return true;
  PyThreadState* const thread = PyEval_SaveThread();
  const bool arrived = wait_for_arrival(due_ns, signalled_without_gil);
  PyEval_RestoreThread(thread);
  return arrived;
}

}  // namespace

std::vector<CallTime> time_calls(PyObject* work, const Pace& pace, CoreProbes& probes, bool& failed) {
  std::vector<CallTime> times;
  times.reserve(pace.expected());
  failed = false;
  const std::int64_t start_ns = monotonic_raw_ns();
  std::int64_t now_ns = start_ns;
  while (pace.wants_more(times.size(), now_ns - start_ns)) {
    const std::int64_t due_ns = start_ns + pace.due(times.size());
    probes.take_turn(now_ns, pace.open_loop() ? due_ns - now_ns : CoreProbes::kEnough_ns);
    failed = pace.open_loop() && !await_arrival(due_ns);
    if (failed) break;
    const std::int64_t begin_ns = monotonic_raw_ns();
    PyObject* result = PyObject_CallNoArgs(work);
    now_ns = monotonic_raw_ns();
    // A callable that is C all the way never lets Python look at signals, so Ctrl-C would not end this loop.
    failed = result == nullptr || PyErr_CheckSignals() != 0;
    Py_XDECREF(result);
    if (failed) break;
    times.push_back({pace.open_loop() ? due_ns : begin_ns, begin_ns, now_ns});
  }
  return times;
}

}  // namespace pybench
