// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "nvml.hpp"
#include "power_fields.hpp"
#include "replayed.hpp"

namespace pybench {
namespace {

TEST(NvmlLibrary, AnAbsentLibrarySaysWhy) {
  const auto library = NvmlLibrary::open("libabsent-nvml.so");
  EXPECT_FALSE(library->available());
  EXPECT_NE(library->reason().find("libabsent-nvml.so"), std::string::npos);
  EXPECT_TRUE(library->devices().empty());
  EXPECT_EQ(library->driver_version(), "");
}

TEST(NvmlDevice, ReadingsAreNumbersOrNvmlsCode) {
  Replayed replayed("1", {"polled.csv"});
  const NvmlDevice device = replayed.device();
  EXPECT_EQ(device.temperature_c().code, nvml::kSuccess);
  EXPECT_EQ(device.temperature_c().value, 42);
  EXPECT_EQ(device.clock_mhz(nvml::kClockMemory).code, nvml::kNotSupported);
  EXPECT_EQ(device.power_mw(nvml::kFieldPowerInstant).code, nvml::kNotSupported);
  EXPECT_EQ(device.processes().code, nvml::kNotSupported);
  const CounterReading counter = device.energy_counter();
  EXPECT_EQ(counter.energy_mj.code, nvml::kSuccess);
  EXPECT_GE(counter.end_ns - counter.begin_ns, 2'000'000);
}

TEST(NvmlDevice, OneBatchBringsEachFieldWithItsOwnCodeAndStamp) {
  Replayed replayed("0.01");  // so that its first second lasts
  const NvmlDevice device = replayed.device();
  const std::int64_t before_us = anchor_realtime().realtime_ns / 1000;
  const auto readings = device.read_fields({{nvml::kFieldPowerInstant, nvml::kScopeGpu}, {1, nvml::kScopeGpu}});
  ASSERT_EQ(readings.size(), 2u);
  EXPECT_EQ(readings[0].reading.code, nvml::kSuccess);
  EXPECT_NEAR(readings[0].reading.value, 121'939, 6'000);
  EXPECT_NEAR(static_cast<double>(readings[0].realtime_us - before_us), 0, 60e6);
  EXPECT_EQ(readings[1].reading.code, nvml::kNotSupported);
}

TEST(PowerFields, MemoryPowerIsReadWhereItExists) {
  Replayed replayed;
  replayed.write("polled_memory.csv", "t_us,memory_average_w,memory_instant_w\n0,70,80\n3500000,70,80\n");
  PowerFields fields;
  const auto readings = fields.read(replayed.device(), 0);
  EXPECT_EQ(readings[2].reading.value, 80'000);
  EXPECT_EQ(readings[3].reading.value, 70'000);
  EXPECT_EQ(readings[4].reading.code, nvml::kNotSupported);
}

TEST(PowerFields, WhatIsNotSupportedIsAskedForOnceAMinute) {
  Replayed replayed;
  PowerFields fields;
  constexpr std::int64_t kSecond = 1'000'000'000;
  {
    const NvmlDevice device = replayed.device();
    for (int poll = 0; poll < 5; ++poll) EXPECT_EQ(fields.read(device, poll)[2].reading.code, nvml::kNotSupported);
  }
  Replayed upgraded;  // from now on the field exists; nobody asks yet
  upgraded.write("polled_memory.csv", "t_us,memory_average_w,memory_instant_w\n0,70,80\n3500000,70,80\n");
  const NvmlDevice richer = upgraded.device();
  EXPECT_EQ(fields.read(richer, 30 * kSecond)[2].reading.code, nvml::kNotSupported);
  EXPECT_EQ(fields.read(richer, 30 * kSecond)[0].reading.code, nvml::kSuccess);
  EXPECT_EQ(fields.read(richer, 61 * kSecond)[2].reading.code, nvml::kSuccess);
  EXPECT_EQ(fields.read(richer, 61 * kSecond)[2].reading.value, 80'000);
}

}  // namespace
}  // namespace pybench
