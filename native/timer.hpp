// SPDX-License-Identifier: Apache-2.0
// Times Python calls from C++: the loop and the clock reads cost some tens of nanoseconds instead of a Python loop's.
//
// It holds the GIL throughout (the callable is Python) and knows nothing of CUDA. The stopping rule is trtexec's
// (samples/common/sampleInference.cpp): at least `iterations` calls and at least `minimum_ns`, whichever is later.
#pragma once

#include <cstdint>
#include <vector>

typedef struct _object PyObject;

namespace pybench {

struct CallTime {
  std::int64_t begin_ns;
  std::int64_t end_ns;
};

// Calls `work()` and times each call. Needs the GIL. `failed` is set, with Python's error indicator, when
// `work` raised or a signal handler did; the times so far are returned all the same.
std::vector<CallTime> time_calls(PyObject* work, std::int64_t iterations, std::int64_t minimum_ns, bool& failed);

}  // namespace pybench
