// SPDX-License-Identifier: Apache-2.0
// The part of the boundary between Python and C++ that is about integration of energy; bindings.cpp calls it.
#pragma once

#include <pybind11/pybind11.h>

namespace pybench {

// Adds SensorModel, integrate_energy and its doubts to the module.
void bind_integration(pybind11::module_& module);

}  // namespace pybench
