// SPDX-License-Identifier: Apache-2.0
// Implements primitive_recovery.hpp.
#include "primitive_recovery.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

namespace pybench {
namespace {

constexpr int kMostSteps = 100;       // bisection alone reaches the tolerance in about 50
constexpr double kTolerance = 1e-12;  // relative, of the pressure

}  // namespace

HybridEos::HybridEos(double transition, double pressure_at_transition, double gamma_low, double gamma_high,
                     double gamma_thermal)
    : transition_(transition), gamma_{gamma_low, gamma_high}, offset_{0.0, 0.0}, gamma_thermal_(gamma_thermal) {
  if (!(transition > 0 && pressure_at_transition > 0 && gamma_low > 1 && gamma_high > 1 && gamma_thermal > 1)) {
    throw std::invalid_argument("an equation of state needs positive numbers and exponents above 1");
  }
  for (int piece = 0; piece < 2; ++piece) factor_[piece] = pressure_at_transition / std::pow(transition, gamma_[piece]);
  const double per_mass = pressure_at_transition / transition;
  offset_[1] = per_mass / (gamma_low - 1) - per_mass / (gamma_high - 1);
}

HybridEos::State HybridEos::at(double rho, double eps) const {
  const int piece = rho < transition_ ? 0 : 1;
  const double gamma = gamma_[piece];
  const double cold = factor_[piece] * std::pow(rho, gamma);
  const double thermal = (gamma_thermal_ - 1) * (rho * (eps - offset_[piece]) - cold / (gamma - 1));
  const double pressure = cold + thermal;
  const double enthalpy = rho * (1 + eps) + pressure;
  return {pressure, (gamma * cold + gamma_thermal_ * thermal) / enthalpy};
}

double recover_pressure(const HybridEos& eos, const Conserved& state) {
  const double total = state.energy + state.density;  // the density of energy with rest mass
  const bool is_physical = state.density > 0 && std::abs(state.momentum) < total;
  if (!is_physical) return std::numeric_limits<double>::quiet_NaN();
  double least = 0, most = total;  // a sound speed below 1 keeps the pressure below the density of energy
  double pressure = 0.3 * state.energy;
  if (!(pressure > least && pressure < most)) pressure = 0.5 * most;
  for (int step = 0; step < kMostSteps; ++step) {
    const double flow = state.momentum / (total + pressure);  // the velocity
    const double flow_squared = flow * flow;
    const double inverse_lorentz = std::sqrt(1 - flow_squared);
    const double rho = state.density * inverse_lorentz;
    const double energy = (total + pressure) * (1 - flow_squared) - pressure;  // in the fluid's frame
    const HybridEos::State found = eos.at(rho, energy / rho - 1);
    const double gap = found.pressure - pressure;
    const double change = gap / (1 - flow_squared * found.sound_speed_squared);
    if (std::abs(change) <= kTolerance * pressure) return pressure + change;
    (gap > 0 ? least : most) = pressure;
    pressure += change;
    if (!(pressure > least && pressure < most)) pressure = 0.5 * (least + most);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::size_t recover_pressures(const HybridEos& eos, const Conserved* states, double* pressures, std::size_t count) {
  std::size_t without = 0;
  for (std::size_t i = 0; i < count; ++i) {
    pressures[i] = recover_pressure(eos, states[i]);
    without += std::isnan(pressures[i]) ? 1 : 0;
  }
  return without;
}

}  // namespace pybench
