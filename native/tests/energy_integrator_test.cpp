// SPDX-License-Identifier: Apache-2.0
// The integrator and its smoother under the sanitizers, on cases worked by hand and on random ones against brute force.
// Their slow twin in Python (tests/oracles/window_energy.py) judges the numbers to 1e-9.
#include "energy_integrator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "walk_smoother.hpp"

namespace pybench {
namespace {

constexpr SensorModel kModel{.delay_s = 0.0036,
                             .response_s = 0.0128,
                             .stamp_jitter_s = 0.0015,
                             .sample_noise_w = 3,
                             .counter_noise_j = 0.03,
                             .transient_s = 0.003,
                             .longest_gap_s = 0.08};

struct Samples {
  std::vector<double> times_s, power_w;
};

Samples constant(double power_w, int count) {
  Samples samples;
  for (int i = 0; i < count; ++i) {
    samples.times_s.push_back(0.02 * i);
    samples.power_w.push_back(power_w);
  }
  return samples;
}

std::vector<WalkObservation> random_walk(std::mt19937& random, std::size_t count, std::size_t reset) {
  std::uniform_real_distribution<double> uniform(0.01, 1);
  std::vector<WalkObservation> seen;
  double walked_j2 = 0;
  for (std::size_t i = 0; i < count; ++i) {
    walked_j2 += uniform(random);
    seen.push_back({walked_j2, uniform(random), 10 * uniform(random), i < reset ? 0 : 1});
  }
  return seen;
}

TEST(WalkSmoother, TwoObservationsWorkedByHand) {
  // Noise 1 each and a walk of 2 between them: of the difference seen, 4 J, the walk gets 2 / (2 + 1 + 1).
  const WalkSmoother smoother({{0, 1, 10, 0}, {2, 1, 14, 0}});
  const auto begin = smoother.place(1, 0), end = smoother.place(2, 2);
  EXPECT_NEAR(smoother.value_j(end) - smoother.value_j(begin), 2, 1e-12);
  EXPECT_NEAR(smoother.difference_variance_j2(begin, end), 2 - 2 * 2 / 4.0, 1e-12);
  const auto half = smoother.place(1, 1);
  EXPECT_NEAR(smoother.value_j(half), 12, 1e-12);
}

TEST(WalkSmoother, AnswersAreWhatAnotherObservationWouldHaveChanged) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    const std::size_t count = 12, reset = trial % 12;
    auto seen = random_walk(random, count, reset);
    const WalkSmoother smoother(seen);
    const std::size_t changed = random() % count;
    auto one = seen, step = seen;
    one[changed].seen_j += 1;
    for (std::size_t i = changed; i < count; ++i) step[i].seen_j += 1;
    const WalkSmoother with_one(one), with_step(step);
    for (std::size_t next = 0; next <= count; ++next) {
      const double low = next == 0 ? 0 : seen[next - 1].walked_j2,
                   high = next == count ? low + 1 : seen[next].walked_j2;
      const auto place = smoother.place(next, (low + high) / 2);
      EXPECT_NEAR(smoother.answer_to_one(place, changed), with_one.value_j(place) - smoother.value_j(place), 1e-12);
      EXPECT_NEAR(smoother.answer_to_step(place, changed), with_step.value_j(place) - smoother.value_j(place), 1e-12);
    }
  }
}

TEST(WalkSmoother, RefusesNoNoiseAndAWalkThatGoesBack) {
  EXPECT_THROW(WalkSmoother({{0, 0, 1, 0}}), std::invalid_argument);
  EXPECT_THROW(WalkSmoother({{1, 1, 1, 0}, {0, 1, 1, 0}}), std::invalid_argument);
  EXPECT_TRUE(WalkSmoother().empty());
}

TEST(EnergyIntegrator, ConstantPowerIsPowerTimesTime) {
  auto samples = constant(500, 100);
  std::vector<CounterStep> steps;
  for (int k = 1; k < 18; ++k) steps.push_back({0.1 * k, 0.0005, 50.0 * k, 0});
  const EnergyIntegrator integrator(samples.times_s, samples.power_w, steps, kModel);
  for (double begin_s = 0.05; begin_s < 1.2; begin_s += 0.0371) {
    const auto window = integrator.energy(begin_s, begin_s + 0.5);
    EXPECT_NEAR(window.energy_j, 250, 1e-9);
    EXPECT_EQ(window.doubts, 0u);
    EXPECT_NEAR(window.drift_w, 0, 1e-6);
  }
}

TEST(EnergyIntegrator, AnExactCounterTakesNothingFromAnExactEdge) {
  // 100 W, and 500 W from 1.013 to 1.313 s; samples obey the lag, the counter is exact.
  const double rise_s = 1.013, fall_s = 1.313;
  const auto sensed_w = [&](double time_s) {
    if (time_s < rise_s) return 100.0;
    const double loaded_w = 500 - 400 * std::exp(-(std::min(time_s, fall_s) - rise_s) / kModel.response_s);
    return time_s < fall_s ? loaded_w : 100 + (loaded_w - 100) * std::exp(-(time_s - fall_s) / kModel.response_s);
  };
  Samples samples = constant(0, 120);
  for (std::size_t i = 0; i < samples.times_s.size(); ++i) {
    samples.power_w[i] = sensed_w(samples.times_s[i] - kModel.delay_s);
  }
  for (double phase_s = 0; phase_s < 0.1; phase_s += 0.0031) {
    std::vector<CounterStep> steps;
    for (double at_s = 0.2 + phase_s; at_s < 2.2; at_s += 0.1) {
      const double loaded_s = std::clamp(at_s, rise_s, fall_s) - rise_s;
      steps.push_back({at_s, 0, 100 * at_s + 400 * loaded_s, 0});
    }
    const EnergyIntegrator integrator(samples.times_s, samples.power_w, steps, kModel);
    EXPECT_NEAR(integrator.energy(rise_s, fall_s).energy_j, 150, 1e-6);
  }
}

TEST(EnergyIntegrator, AnyWindowOfAnyTraceHasAnAnswer) {
  std::mt19937 random(2);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int trial = 0; trial < 200; ++trial) {
    Samples samples;
    double time_s = 0;
    for (std::size_t i = 0, count = 3 + random() % 60; i < count; ++i) {
      samples.times_s.push_back(time_s += 0.001 + 0.1 * uniform(random) * uniform(random));
      samples.power_w.push_back(700 * uniform(random));
    }
    std::vector<CounterStep> steps;
    double at_s = -0.2;
    for (std::size_t i = 0, count = random() % 20; i < count; ++i) {
      steps.push_back({at_s += 0.2 * uniform(random), 0.001, 100 * uniform(random), static_cast<long>(i / 7)});
    }
    const EnergyIntegrator integrator(samples.times_s, samples.power_w, steps, kModel);
    for (int window = 0; window < 100; ++window) {
      const double begin_s = -0.2 + (time_s + 0.4) * uniform(random);
      const auto found = integrator.energy(begin_s, begin_s + uniform(random) * uniform(random) * time_s);
      if (found.doubts & kNotCovered) {
        EXPECT_TRUE(std::isnan(found.energy_j));
        continue;
      }
      EXPECT_TRUE(std::isfinite(found.energy_j) && std::isfinite(found.edge_variance_j2));
      EXPECT_GE(found.fused_variance_j2, 0);
      EXPECT_LE(found.fused_variance_j2, found.interior_variance_j2 * (1 + 1e-9) + 1e-12);
      EXPECT_GE(found.drift_variance_w2, 0);
    }
  }
}

TEST(EnergyIntegrator, RefusesWhatItCannotIntegrate) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto samples = constant(100, 3);
  EXPECT_THROW(EnergyIntegrator({0, 1}, {1, 1}, {}, kModel), std::invalid_argument);
  EXPECT_THROW(EnergyIntegrator({0, 1, 1}, {1, 1, 1}, {}, kModel), std::invalid_argument);
  EXPECT_THROW(EnergyIntegrator({0, 1, 2}, {1, nan, 1}, {}, kModel), std::invalid_argument);
  EXPECT_THROW(EnergyIntegrator(samples.times_s, samples.power_w, {{nan, 0, 1, 0}}, kModel), std::invalid_argument);
  const EnergyIntegrator integrator(samples.times_s, samples.power_w, {}, kModel);
  EXPECT_EQ(integrator.energy(nan, 0.02).doubts, kNotCovered);
  EXPECT_EQ(integrator.energy(0.03, 0.01).doubts, kNotCovered);
}

}  // namespace
}  // namespace pybench
