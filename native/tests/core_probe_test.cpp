// SPDX-License-Identifier: Apache-2.0
#include "core_probe.hpp"

#include <gtest/gtest.h>

namespace pybench {
namespace {

constexpr std::int64_t kMillisecond_ns = 1'000'000;

TEST(CoreProbes, TakesATurnEachTenMilliseconds) {
  CoreProbes probes;
  for (std::int64_t now_ns = kMillisecond_ns; now_ns <= 25 * kMillisecond_ns; now_ns += kMillisecond_ns) {
    probes.take_turn(now_ns, CoreProbes::kEnough_ns);
  }
  EXPECT_EQ(probes.times().size(), 3u);  // at 1, 11 and 21 ms
}

TEST(CoreProbes, LetsAnIterationThatIsDueGoFirst) {
  CoreProbes probes;
  probes.take_turn(0, CoreProbes::kEnough_ns - 1);
  EXPECT_TRUE(probes.times().empty());
  probes.take_turn(0, CoreProbes::kEnough_ns);
  EXPECT_EQ(probes.times().size(), 1u);
}

TEST(CoreProbes, ProbesFollowEachOther) {
  const ProbeTime first = probe_core();
  const ProbeTime second = probe_core();
  EXPECT_GT(first.end_ns, first.begin_ns);
  EXPECT_GE(second.begin_ns, first.end_ns);
}

}  // namespace
}  // namespace pybench
