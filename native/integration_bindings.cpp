// SPDX-License-Identifier: Apache-2.0
// The part of the boundary between Python and C++ that is about integration of energy: convert, release the GIL, call.
// No logic lives here.
#include "integration_bindings.hpp"

#include <pybind11/numpy.h>

#include <cstddef>
#include <stdexcept>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "energy_integrator.hpp"

namespace py = pybind11;

namespace pybench {
namespace {

using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Integers = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

std::vector<double> to_vector(const Doubles& array) { return {array.data(), array.data() + array.size()}; }

// Every window's energy as a table of columns; see energy_integrator.hpp.
py::dict integrate_energy(const Doubles& times_s, const Doubles& power_w, const Doubles& step_times_s,
                          const Doubles& step_u_times_s, const Doubles& step_energies_j, const Integers& step_segments,
                          const SensorModel& model, const Doubles& begins_s, const Doubles& ends_s,
                          bool with_variances) {
  const auto count = static_cast<std::size_t>(step_times_s.size());
  if (static_cast<std::size_t>(step_u_times_s.size()) != count ||
      static_cast<std::size_t>(step_energies_j.size()) != count ||
      static_cast<std::size_t>(step_segments.size()) != count || begins_s.size() != ends_s.size()) {
    throw std::invalid_argument("columns of one table must be equally long");
  }
  std::vector<CounterStep> steps(count);
  for (std::size_t i = 0; i < count; ++i) {
    steps[i] = {step_times_s.data()[i], step_u_times_s.data()[i], step_energies_j.data()[i], step_segments.data()[i]};
  }
  std::vector<double> times = to_vector(times_s), power = to_vector(power_w);
  const std::vector<double> begins = to_vector(begins_s), ends = to_vector(ends_s);
  std::vector<WindowEnergy> windows(begins.size());
  {
    const py::gil_scoped_release release;
    const EnergyIntegrator integrator(times, std::move(power), std::move(steps), model);
    for (std::size_t i = 0; i < windows.size(); ++i) {
      windows[i] = integrator.energy(begins[i], ends[i], with_variances);
    }
  }
  py::dict table;
  add_column(table, "energy_j", windows, &WindowEnergy::energy_j);
  add_column(table, "samples_j", windows, &WindowEnergy::samples_j);
  add_column(table, "interior_variance_j2", windows, &WindowEnergy::interior_variance_j2);
  add_column(table, "fused_variance_j2", windows, &WindowEnergy::fused_variance_j2);
  add_column(table, "drift_w", windows, &WindowEnergy::drift_w);
  add_column(table, "drift_variance_w2", windows, &WindowEnergy::drift_variance_w2);
  add_column(table, "edge_variance_j2", windows, &WindowEnergy::edge_variance_j2);
  add_column(table, "doubts", windows, &WindowEnergy::doubts);
  return table;
}

}  // namespace

void bind_integration(py::module_& module) {
  py::class_<SensorModel>(module, "SensorModel")
      .def(py::init<double, double, double, double, double, double, double>(), py::kw_only(), py::arg("delay_s"),
           py::arg("response_s"), py::arg("stamp_jitter_s"), py::arg("sample_noise_w"), py::arg("counter_noise_j"),
           py::arg("transient_s"), py::arg("longest_gap_s"));
  module.def("integrate_energy", &integrate_energy, py::arg("times_s"), py::arg("power_w"), py::arg("step_times_s"),
             py::arg("step_u_times_s"), py::arg("step_energies_j"), py::arg("step_segments"), py::arg("model"),
             py::arg("begins_s"), py::arg("ends_s"), py::arg("with_variances") = true);
  module.attr("DOUBT_NOT_COVERED") = static_cast<unsigned>(kNotCovered);
  module.attr("DOUBT_GAP") = static_cast<unsigned>(kGap);
  module.attr("DOUBT_COUNTER_RESET") = static_cast<unsigned>(kCounterReset);
  module.attr("DOUBT_NO_COUNTER") = static_cast<unsigned>(kNoCounter);
}

}  // namespace pybench
