// SPDX-License-Identifier: Apache-2.0
#include "primitive_recovery.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace pybench {
namespace {

const HybridEos kEos(0.2, 0.002, 1.357, 2.75, 5.0 / 3.0);

struct Known {
  Conserved conserved;
  double pressure;
};

// The definition of the conserved densities, from a fluid's density, internal energy and velocity.
Known known(double rho, double eps, double velocity) {
  const double pressure = kEos.at(rho, eps).pressure;
  const double lorentz = 1 / std::sqrt(1 - velocity * velocity);
  const double inertia = (rho * (1 + eps) + pressure) * lorentz * lorentz;
  return {{rho * lorentz, inertia * velocity, inertia - pressure - rho * lorentz}, pressure};
}

TEST(PrimitiveRecovery, FindsThePressureThatAStateWasMadeWith) {
  for (double rho : {0.02, 0.1, 0.199, 0.201, 0.7, 2.0}) {
    for (double eps : {0.5, 1.0, 2.0}) {
      for (double velocity : {0.0, 0.3, 0.7, 0.9}) {
        const Known state = known(rho, eps, velocity);
        EXPECT_NEAR(recover_pressure(kEos, state.conserved) / state.pressure, 1.0, 1e-11)
            << rho << " " << eps << " " << velocity;
      }
    }
  }
}

// By hand: below the transition cold matter of rho 0.02 has P = 0.002 * 0.1^1.357 and eps = P / (rho 0.357).
TEST(PrimitiveRecovery, ColdMatterHasThePressureOfThePolytrope) {
  const double pressure = 0.002 * std::pow(0.1, 1.357);
  const double eps = pressure / (0.02 * 0.357);
  EXPECT_NEAR(kEos.at(0.02, eps).pressure, pressure, 1e-15);
  EXPECT_NEAR(kEos.at(0.02, eps).sound_speed_squared, 1.357 * pressure / (0.02 * (1 + eps) + pressure), 1e-15);
}

TEST(PrimitiveRecovery, PressureIsContinuousAtTheTransition) {
  EXPECT_NEAR(kEos.at(0.2 * (1 - 1e-12), 0.5).pressure, kEos.at(0.2, 0.5).pressure, 1e-12);
}

TEST(PrimitiveRecovery, AStateThatNothingHasGivesNoPressure) {
  const std::vector<Conserved> states = {
      {0.0, 0.0, 1.0}, {1.0, 3.0, 1.0}, {-1.0, 0.0, 1.0}, known(1, 1, 0.5).conserved};
  std::vector<double> pressures(states.size());
  EXPECT_EQ(recover_pressures(kEos, states.data(), pressures.data(), states.size()), 3u);
  EXPECT_TRUE(std::isnan(pressures[0]) && std::isnan(pressures[1]) && std::isnan(pressures[2]));
  EXPECT_GT(pressures[3], 0);
}

TEST(PrimitiveRecovery, AnEquationOfStateIsChecked) {
  EXPECT_THROW(HybridEos(0.2, 0.002, 1.0, 2.75, 5.0 / 3.0), std::invalid_argument);
  EXPECT_THROW(HybridEos(0.0, 0.002, 1.357, 2.75, 5.0 / 3.0), std::invalid_argument);
}

}  // namespace
}  // namespace pybench
