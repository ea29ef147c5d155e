// SPDX-License-Identifier: Apache-2.0
#include "tick_grid.hpp"

#include <gtest/gtest.h>

#include <random>

#include "units.hpp"

namespace pybench {
namespace {

constexpr std::int64_t kPeriod = 99'998'000;
constexpr std::int64_t kFirstTick = 5'000'000'000'000;

std::int64_t tick(std::int64_t number) { return kFirstTick + number * kPeriod; }

TickBracket around(std::int64_t number, std::int64_t before_ns, std::int64_t after_ns) {
  return {tick(number) - before_ns, tick(number) + after_ns};
}

TickGrid scanned() {
  auto grid = TickGrid::enclose({around(0, 5 * kMs, 15 * kMs), around(1, 12 * kMs, 8 * kMs),
                                 around(2, 2 * kMs, 18 * kMs), around(3, 9 * kMs, 11 * kMs)});
  EXPECT_TRUE(grid.has_value());
  return *grid;
}

TEST(TickGrid, WorkedByHand) {
  // Ticks in [0, 10] and [100, 110] and [200, 210] ms: periods between (200 - 10) / 2 and 210 / 2, and 0.1 ms of
  // jitter.
  const auto grid = TickGrid::enclose({{0, 10 * kMs}, {100 * kMs, 110 * kMs}, {200 * kMs, 210 * kMs}});
  ASSERT_TRUE(grid.has_value());
  EXPECT_NEAR(grid->shortest_period_ns(), 94.9e6, 1);
  EXPECT_NEAR(grid->longest_period_ns(), 105.1e6, 1);
  EXPECT_NEAR(static_cast<double>(grid->latest().low_ns), 199.9e6, 1);
  EXPECT_NEAR(static_cast<double>(grid->latest().high_ns), 210.1e6, 1);
}

TEST(TickGrid, EnclosesTheTruthHoweverLopsidedTheBracketsAre) {
  std::mt19937 random(1);
  std::uniform_int_distribution<std::int64_t> side(0, 15 * kMs);
  TickGrid grid = scanned();
  std::int64_t number = 3;
  for (int bracket = 0; bracket < 500; ++bracket) {
    // The period has to be known well enough to count over a longer wait.
    number += std::uniform_int_distribution<std::int64_t>(1, bracket < 20 ? 2 : 40)(random);
    const std::int64_t aim = tick(number) - 45 * kMs;
    const TickBracket predicted = grid.first_after(aim);
    if (predicted.width_ns() < 40 * kMs) {
      ASSERT_LE(predicted.low_ns, tick(number));
      ASSERT_GE(predicted.high_ns, tick(number));
    }
    grid.add(around(number, side(random), side(random)));
    ASSERT_LE(grid.latest().low_ns, grid.latest().high_ns);
    ASSERT_LE(grid.shortest_period_ns(), static_cast<double>(kPeriod));
    ASSERT_GE(grid.longest_period_ns(), static_cast<double>(kPeriod));
  }
  EXPECT_LT(grid.latest().width_ns(), 2 * kMs);
  EXPECT_LT(grid.longest_period_ns() - grid.shortest_period_ns(), 1000);
}

TEST(TickGrid, RefusesABracketThatHoldsNoTickOrTwo) {
  TickGrid grid = scanned();
  const TickBracket before = grid.latest();
  EXPECT_FALSE(grid.add({tick(4) + 40 * kMs, tick(4) + 45 * kMs}));
  EXPECT_FALSE(grid.add({tick(4) - 10 * kMs, tick(5) + 10 * kMs}));
  EXPECT_FALSE(grid.add(around(2, kMs, kMs)));  // one that came earlier
  EXPECT_EQ(grid.latest().low_ns, before.low_ns);
  EXPECT_EQ(grid.latest().high_ns, before.high_ns);
}

TEST(TickGrid, BracketsOfNoGridGiveNone) {
  EXPECT_FALSE(TickGrid::enclose({around(0, 0, kMs), around(1, 0, kMs)}).has_value());
  EXPECT_FALSE(TickGrid::enclose({{0, kMs}, {100 * kMs, 101 * kMs}, {150 * kMs, 151 * kMs}, {300 * kMs, 301 * kMs}})
                   .has_value());
}

TEST(TickGrid, ASupposedPeriodIsTakenOnlyWhereItFits) {
  TickGrid grid = scanned();
  EXPECT_FALSE(grid.suppose(50e6));
  EXPECT_TRUE(grid.suppose(100e6));
  EXPECT_GE(grid.shortest_period_ns(), 100e6 * (1 - kClockError) - 1);
  EXPECT_LE(grid.longest_period_ns(), 100e6 * (1 + kClockError) + 1);
}

}  // namespace
}  // namespace pybench
