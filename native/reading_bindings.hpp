// SPDX-License-Identifier: Apache-2.0
// The part of the boundary between Python and C++ that is about reading finished runs; bindings.cpp calls it.
#pragma once

#include <pybind11/pybind11.h>

namespace pybench {

// Adds read_run_folder and stat_run_folder to the module.
void bind_reading(pybind11::module_& module);

}  // namespace pybench
