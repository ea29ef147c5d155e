// SPDX-License-Identifier: Apache-2.0
// The CUDA half of the boundary between Python and C++; bindings.cpp calls it.
#pragma once

#include <pybind11/pybind11.h>

namespace pybench {

// Adds CudaDriver, GraphTimer, CudaLoad and their error to the module.
void bind_cuda(pybind11::module_& module);

}  // namespace pybench
