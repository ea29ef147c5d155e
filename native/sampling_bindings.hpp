// SPDX-License-Identifier: Apache-2.0
// The part of the boundary between Python and C++ that is about sampling of power; bindings.cpp calls it.
#pragma once

#include <pybind11/pybind11.h>

namespace pybench {

// Adds what reads NVML, power rails and their counters, and the schedule of their reads to the module.
void bind_sampling(pybind11::module_& module);

}  // namespace pybench
