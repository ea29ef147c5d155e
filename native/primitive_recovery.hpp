// SPDX-License-Identifier: Apache-2.0
// The pressure of a relativistic fluid from its conserved densities: the root that every step of a hydrodynamics code
// looks for in every cell. One thread, float64. It is the baseline of a network that replaces it.
//
// Units: c = 1, densities in units of the caller's. Equation of state: two polytropes and a thermal part (Read et al.
// 2009, Phys. Rev. D 79:124032; Shibata et al. 2005, Phys. Rev. D 71:084021). Not here: magnetic fields, tables.
#pragma once

#include <cstddef>

namespace pybench {

// P = P_cold(rho) + (gamma_thermal - 1) rho (eps - eps_cold(rho)); P_cold is a power of rho on each side of
// `transition`.
class HybridEos {
 public:
  HybridEos(double transition, double pressure_at_transition, double gamma_low, double gamma_high,
            double gamma_thermal);

  struct State {
    double pressure;
    double sound_speed_squared;
  };

  // rho > 0; eps: internal energy per rest mass.
  State at(double rho, double eps) const;

 private:
  double transition_;
  double gamma_[2];
  double factor_[2];  // of rho^gamma
  double offset_[2];  // of eps_cold, so that it is continuous
  double gamma_thermal_;
};

// Densities of rest mass, of momentum (its length) and of energy without rest mass, as in Marti and Mueller 2003
// (Living Rev. Relativity 6:7).
struct Conserved {
  double density;
  double momentum;
  double energy;
};

// Newton's method between two bounds, with a bisection where it would leave them: plain Newton does not converge for
// every state. NaN where no pressure belongs to the state. Relative error: 1e-12.
double recover_pressure(const HybridEos& eos, const Conserved& state);

// The same for `count` states. Returns how many have no pressure.
std::size_t recover_pressures(const HybridEos& eos, const Conserved* states, double* pressures, std::size_t count);

}  // namespace pybench
