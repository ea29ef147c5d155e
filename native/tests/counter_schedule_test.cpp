// SPDX-License-Identifier: Apache-2.0
#include "counter_schedule.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "units.hpp"

namespace pybench {
namespace {

constexpr std::int64_t kInterval = 5'000 * kMs;

// A counter that ticks at first + k period, of which a call takes `call_ns` and brings the value of its middle.
struct SimulatedCounter {
  std::int64_t first_ns = 1'000'037 * kMs;
  std::int64_t period_ns = 99'998'000;
  std::int64_t call_ns = 2'500'000;
  double offset_mj = 0;
  int calls = 0;

  CounterReading read(std::int64_t now_ns) {
    ++calls;
    const double ticks =
        std::floor(static_cast<double>(now_ns + call_ns / 2 - first_ns) / static_cast<double>(period_ns));
    return {now_ns, now_ns + call_ns, {nvml::kSuccess, 1e6 + offset_mj + 12'000 * ticks}};
  }
};

// Reads whenever the schedule says so; returns the time reached.
std::int64_t follow(CounterSchedule& schedule, SimulatedCounter& counter, std::int64_t now_ns, std::int64_t until_ns) {
  while (schedule.due_ns() < until_ns) {
    now_ns = std::max(now_ns, schedule.due_ns()) + 50'000;  // a thread wakes a little late
    const CounterReading reading = counter.read(now_ns);
    schedule.note(reading, true);
    now_ns = reading.end_ns;
  }
  return until_ns;
}

TEST(CounterSchedule, ReadsSeldomUntilItIsToldToTrack) {
  CounterSchedule schedule(kInterval);
  SimulatedCounter counter;
  const std::int64_t begin_ns = 2'000'000 * kMs;
  follow(schedule, counter, begin_ns, begin_ns + 4 * kInterval);
  EXPECT_EQ(counter.calls, 4);
  EXPECT_FALSE(schedule.grid().has_value());
}

TEST(CounterSchedule, FindsTheTicksAndKeepsTheirPhaseWithFewReadings) {
  for (std::int64_t phase = 0; phase < 100; phase += 7) {
    CounterSchedule schedule(kInterval);
    SimulatedCounter counter;
    const std::int64_t begin_ns = 2'000'000 * kMs + phase * kMs;
    schedule.track(begin_ns, begin_ns + 100 * kMs);
    std::int64_t now_ns = follow(schedule, counter, begin_ns, begin_ns + 2000 * kMs);
    ASSERT_TRUE(schedule.grid().has_value()) << phase;
    EXPECT_LE(counter.calls, 45) << phase;
    now_ns = follow(schedule, counter, now_ns, begin_ns + 600'000 * kMs);
    EXPECT_LE(counter.calls, 45 + 3 * 120) << phase;
    EXPECT_EQ(schedule.lost_grids(), 0);
    const TickBracket next = schedule.grid()->first_after(now_ns);
    const auto number = std::llround(static_cast<double>(next.middle_ns() - counter.first_ns) / counter.period_ns);
    const std::int64_t tick_ns = counter.first_ns + number * counter.period_ns;
    EXPECT_LE(next.low_ns, tick_ns) << phase;
    EXPECT_GE(next.high_ns, tick_ns) << phase;
    EXPECT_LT(next.width_ns(), 4 * kMs) << phase;
  }
}

TEST(CounterSchedule, TracksForAsLongAsItWasTold) {
  CounterSchedule schedule(kInterval);
  SimulatedCounter counter;
  const std::int64_t begin_ns = 2'000'000 * kMs;
  schedule.track(begin_ns, begin_ns);
  std::int64_t now_ns = follow(schedule, counter, begin_ns, begin_ns + 10'000 * kMs);
  const int before = counter.calls;
  schedule.track(now_ns, now_ns + 1000 * kMs);
  follow(schedule, counter, now_ns, now_ns + 1000 * kMs);
  EXPECT_GE(counter.calls - before, 2 * 8);  // two readings at least for each of ten ticks
  EXPECT_LE(counter.calls - before, 3 * 11);
}

TEST(CounterSchedule, ACounterThatBeginsAnewIsScannedAgain) {
  CounterSchedule schedule(kInterval);
  SimulatedCounter counter;
  const std::int64_t begin_ns = 2'000'000 * kMs;
  schedule.track(begin_ns, begin_ns);
  std::int64_t now_ns = follow(schedule, counter, begin_ns, begin_ns + 20'000 * kMs);
  counter.offset_mj = -5e6;
  counter.first_ns += 31 * kMs;
  now_ns = follow(schedule, counter, now_ns, now_ns + 20'000 * kMs);
  EXPECT_EQ(schedule.lost_grids(), 1);
  ASSERT_TRUE(schedule.grid().has_value());
  EXPECT_LT(schedule.grid()->latest().width_ns(), 6 * kMs);
}

TEST(CounterSchedule, APeriodThatIsNotRoundIsFoundAfterTheSuppositionFailed) {
  CounterSchedule schedule(kInterval);
  SimulatedCounter counter;
  counter.period_ns = 97'300'000;
  const std::int64_t begin_ns = 2'000'000 * kMs;
  schedule.track(begin_ns, begin_ns);
  follow(schedule, counter, begin_ns, begin_ns + 120'000 * kMs);
  EXPECT_GE(schedule.lost_grids(), 1);
  ASSERT_TRUE(schedule.grid().has_value());
  EXPECT_NEAR(schedule.grid()->longest_period_ns(), 97.3e6, 0.05e6);
}

TEST(CounterSchedule, AFirstCallThatTookLongMisleadsNobody) {
  CounterSchedule schedule(kInterval);
  SimulatedCounter counter;
  const std::int64_t begin_ns = 2'000'000 * kMs;
  schedule.track(begin_ns, begin_ns);
  counter.call_ns = 25 * kMs;
  CounterReading slow = counter.read(begin_ns);
  schedule.note(slow, true);
  counter.call_ns = 2'500'000;
  follow(schedule, counter, slow.end_ns, begin_ns + 60'000 * kMs);
  ASSERT_TRUE(schedule.grid().has_value());
  EXPECT_LT(schedule.grid()->latest().width_ns(), 6 * kMs);
}

TEST(CounterSchedule, APauseOfReadingLosesNoGrid) {
  CounterSchedule schedule(kInterval);
  SimulatedCounter counter;
  std::int64_t now_ns = 2'000'000 * kMs;
  schedule.track(now_ns, now_ns);
  now_ns = follow(schedule, counter, now_ns, now_ns + 5000 * kMs);
  for (int pause = 0; pause < 30; ++pause) {
    now_ns += 1713 * kMs;  // nobody reads, as between stop and start
    now_ns = follow(schedule, counter, now_ns, now_ns + 333 * kMs);
  }
  EXPECT_EQ(schedule.lost_grids(), 0);
  ASSERT_TRUE(schedule.grid().has_value());
}

TEST(CounterSchedule, ACounterThatCannotBeReadOrNeverStepsIsReadSeldom) {
  CounterSchedule schedule(kInterval);
  const std::int64_t begin_ns = 2'000'000 * kMs;
  schedule.track(begin_ns, begin_ns + 100 * kMs);
  schedule.note({begin_ns, begin_ns + kMs, {nvml::kNotSupported, 0}}, true);
  EXPECT_EQ(schedule.due_ns(), begin_ns + kMs + kInterval);

  CounterSchedule still(kInterval);
  SimulatedCounter counter;
  counter.period_ns = 1'000'000'000 * kMs;
  still.track(begin_ns, begin_ns + 100 * kMs);
  follow(still, counter, begin_ns, begin_ns + 60'000 * kMs);
  EXPECT_LE(counter.calls, 100 + 12);
}

}  // namespace
}  // namespace pybench
