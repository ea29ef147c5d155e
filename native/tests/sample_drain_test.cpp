// SPDX-License-Identifier: Apache-2.0
#include "sample_drain.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fstream>

#include "replayed.hpp"

namespace pybench {
namespace {

// power_w of samples.csv in the order recorded.
std::vector<double> recorded_w(const std::filesystem::path& folder) {
  std::ifstream file(folder / "samples.csv");
  std::vector<double> powers;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) powers.push_back(std::stod(line.substr(line.find(',') + 1)));
  return powers;
}

TEST(SampleDrain, SlowDrainsLoseNothing) {
  Replayed replayed("0.5");
  const NvmlDevice device = replayed.device();
  SampleDrain drain;
  std::vector<DriverSample> all, fresh;
  for (const std::int64_t wait_ms : {300, 1400, 1300}) {  // the buffer holds 4.8 s
    sleep_ms(wait_ms);
    EXPECT_FALSE(drain.drain(device, fresh).lost);
    all.insert(all.end(), fresh.begin(), fresh.end());
  }
  const std::vector<double> recorded = recorded_w(replayed.folder());
  ASSERT_GE(all.size(), 70u);
  ASSERT_LE(all.size(), recorded.size());
  for (std::size_t index = 0; index < all.size(); ++index) {
    ASSERT_NEAR(all[index].power_mw, recorded[index] * 1000, 0.51) << index;
    if (index > 0) {
      ASSERT_GT(all[index].time_ns, all[index - 1].time_ns);
    }
  }
}

TEST(SampleDrain, ADrainAfterTheBufferRanOverSaysSo) {
  Replayed replayed("2");  // 120 samples are 1.2 s
  const NvmlDevice device = replayed.device();
  SampleDrain drain;
  std::vector<DriverSample> fresh;
  sleep_ms(50);
  EXPECT_FALSE(drain.drain(device, fresh).lost);
  sleep_ms(100);
  EXPECT_FALSE(drain.drain(device, fresh).lost);
  sleep_ms(1500);
  EXPECT_TRUE(drain.drain(device, fresh).lost);
  EXPECT_EQ(fresh.size(), 120u);
  EXPECT_FALSE(drain.drain(device, fresh).lost);
}

TEST(SampleDrain, AnEmptyBufferIsNoLossAndAnUnsupportedOneHasItsCode) {
  Replayed replayed("1", {"samples.csv"});
  SampleDrain drain;
  std::vector<DriverSample> fresh;
  const DrainRecord record = drain.drain(replayed.device(), fresh);
  EXPECT_EQ(record.code, nvml::kNotSupported);
  EXPECT_FALSE(record.lost);
  EXPECT_EQ(record.samples, 0);
}

// Realtime of the anchors and of the replayed driver's stamps, stepped together.
class SteppedRealtime {
 public:
  SteppedRealtime() {
    void* library = dlopen(PYBENCH_REPLAY_LIBRARY, RTLD_NOW | RTLD_NOLOAD);
    step_driver_ = reinterpret_cast<void (*)(long long)>(dlsym(library, "replay_step_realtime"));
    dlclose(library);
  }
  void step(std::int64_t by_ns) {
    step_driver_(by_ns / 1000);
    stepped_ns_ += by_ns;
  }
  RealtimeAnchor read() const {
    RealtimeAnchor anchor = anchor_realtime();
    anchor.realtime_ns += stepped_ns_;
    return anchor;
  }

 private:
  void (*step_driver_)(long long) = nullptr;
  std::int64_t stepped_ns_ = 0;
};

class SampleDrainAcross : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(SampleDrainAcross, AStepOfRealtimeIsCountedAndNoSampleIsLostOrMisplaced) {
  const std::int64_t step_ns = GetParam();
  Replayed replayed;
  const NvmlDevice device = replayed.device();
  SteppedRealtime realtime;
  SampleDrain drain([&] { return realtime.read(); });
  std::vector<DriverSample> all, fresh;
  const auto take = [&] {
    const DrainRecord record = drain.drain(device, fresh);
    all.insert(all.end(), fresh.begin(), fresh.end());
    return record;
  };
  sleep_ms(200);
  EXPECT_EQ(take().stepped_ns, 0);
  sleep_ms(100);
  realtime.step(step_ns);
  sleep_ms(100);
  EXPECT_NEAR(static_cast<double>(take().stepped_ns), static_cast<double>(step_ns), 2e6);
  sleep_ms(200);
  const DrainRecord after = take();
  EXPECT_EQ(after.stepped_ns, 0);
  EXPECT_FALSE(after.lost);
  const std::vector<double> recorded = recorded_w(replayed.folder());
  ASSERT_GE(all.size(), 25u);
  for (std::size_t index = 0; index < all.size(); ++index) {
    ASSERT_NEAR(all[index].power_mw, recorded[index] * 1000, 0.51) << index;
    if (index > 0) {
      ASSERT_GT(all[index].time_ns, all[index - 1].time_ns) << index;
    }
    if (index > 0) {
      ASSERT_LT(all[index].time_ns, all[index - 1].time_ns + 60'000'000) << index;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, SampleDrainAcross,
                         ::testing::Values(3'600'000'000'000, -3'600'000'000'000, 5'000'000'000));

}  // namespace
}  // namespace pybench
