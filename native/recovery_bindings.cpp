// SPDX-License-Identifier: Apache-2.0
// The part of the boundary between Python and C++ that is about the recovery of pressures: convert, release the GIL,
// call. No logic lives here.
#include "recovery_bindings.hpp"

#include <pybind11/numpy.h>

#include <stdexcept>

#include "primitive_recovery.hpp"

namespace py = pybind11;

namespace pybench {
namespace {

// float64 in C order, and no other: a conversion would be in the time that is measured.
using Table = py::array_t<double, py::array::c_style>;

// states [n, 3], pressures [n, 1]; returns how many states have no pressure.
std::size_t recover_into(const HybridEos& eos, const Table& states, Table& pressures) {
  static_assert(sizeof(Conserved) == 3 * sizeof(double));
  if (states.ndim() != 2 || states.shape(1) != 3 || pressures.size() != states.shape(0)) {
    throw std::invalid_argument("recover_pressures takes states [n, 3] and n pressures");
  }
  const auto count = static_cast<std::size_t>(states.shape(0));
  const auto* const read = reinterpret_cast<const Conserved*>(states.data());
  double* const written = pressures.mutable_data();
  const py::gil_scoped_release release;
  return recover_pressures(eos, read, written, count);
}

}  // namespace

void bind_recovery(py::module_& module) {
  py::class_<HybridEos>(module, "HybridEos")
      .def(py::init<double, double, double, double, double>(), py::kw_only(), py::arg("transition"),
           py::arg("pressure_at_transition"), py::arg("gamma_low"), py::arg("gamma_high"), py::arg("gamma_thermal"));
  module.def("recover_pressures", &recover_into, py::arg("eos"), py::arg("states").noconvert(),
             py::arg("pressures").noconvert());
}

}  // namespace pybench
