// SPDX-License-Identifier: Apache-2.0
#include "clock.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <thread>

namespace pybench {
namespace {

TEST(Clock, NeverGoesBack) {
  std::int64_t last_ns = monotonic_raw_ns();
  for (int reading = 0; reading < 100'000; ++reading) {
    const std::int64_t now_ns = monotonic_raw_ns();
    ASSERT_GE(now_ns, last_ns);
    last_ns = now_ns;
  }
}

TEST(Clock, AnAnchorLiesBetweenItsReadsAndIsTight) {
  const std::int64_t before_ns = monotonic_raw_ns();
  const RealtimeAnchor anchor = anchor_realtime();
  EXPECT_GE(anchor.monotonic_raw_ns, before_ns);
  EXPECT_LE(anchor.monotonic_raw_ns, monotonic_raw_ns());
  EXPECT_LT(anchor.uncertainty_ns, 1'000'000);
  EXPECT_EQ(anchor.to_raw_ns(anchor.realtime_ns + 42), anchor.monotonic_raw_ns + 42);
}

TEST(Clock, SleepingEndsAfterItsDeadlineAndNotLongAfter) {
  std::int64_t least_late_ns = INT64_MAX;
  // A busy machine may be late every now and then, but not a hundred times.
  for (int attempt = 0; attempt < 100 && least_late_ns >= 5'000'000; ++attempt) {
    const std::int64_t deadline_ns = monotonic_raw_ns() + 5'000'000;
    ASSERT_TRUE(sleep_until_ns(deadline_ns));
    least_late_ns = std::min(least_late_ns, monotonic_raw_ns() - deadline_ns);
  }
  EXPECT_GE(least_late_ns, 0);
  EXPECT_LT(least_late_ns, 5'000'000);
}

TEST(Clock, SleepingUntilThePastReturnsAtOnce) { EXPECT_TRUE(sleep_until_ns(monotonic_raw_ns() - 1)); }

TEST(Clock, ASignalEndsTheSleepAndSaysSo) {
  struct sigaction quiet{};
  quiet.sa_handler = [](int) {};
  struct sigaction before{};
  sigaction(SIGUSR1, &quiet, &before);
  const pthread_t sleeper = pthread_self();
  std::atomic<bool> awake = false;
  // Again and again: one that comes before the sleep has begun ends nothing.
  std::thread waker([sleeper, &awake] {
    while (!awake) {
      sleep_until_ns(monotonic_raw_ns() + 30'000'000);
      pthread_kill(sleeper, SIGUSR1);
    }
  });
  EXPECT_FALSE(sleep_until_ns(monotonic_raw_ns() + 250'000'000'000));
  awake = true;
  waker.join();
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace pybench
