// SPDX-License-Identifier: Apache-2.0
// The part of the boundary between Python and C++ that is about the recovery of pressures; bindings.cpp calls it.
#pragma once

#include <pybind11/pybind11.h>

namespace pybench {

// Adds HybridEos and recover_pressures to the module.
void bind_recovery(pybind11::module_& module);

}  // namespace pybench
