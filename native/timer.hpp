// SPDX-License-Identifier: Apache-2.0
// Times Python calls from C++: the loop and the clock reads cost some tens of nanoseconds instead of a Python loop's.
//
// It holds the GIL while `work` runs (the callable is Python) and gives it away while it waits for an arrival. It knows
// nothing of CUDA: see graph_timer.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core_probe.hpp"
#include "pace.hpp"

typedef struct _object PyObject;

namespace pybench {

struct CallTime {
  std::int64_t due_ns;  // raw clock; in a closed loop, when it began
  std::int64_t begin_ns;
  std::int64_t end_ns;
};

// Calls `work()` at the given pace and times each call; between calls it probes the core. Needs the GIL. `failed` is
// set, with Python's error indicator, when `work` raised or a signal handler did; the times so far are returned all the
// same.
std::vector<CallTime> time_calls(PyObject* work, const Pace& pace, CoreProbes& probes, bool& failed);

}  // namespace pybench
