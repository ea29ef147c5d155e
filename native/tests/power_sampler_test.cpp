// SPDX-License-Identifier: Apache-2.0
#include "power_sampler.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "replayed.hpp"
#include "units.hpp"

namespace pybench {
namespace {

constexpr SamplerIntervals kIntervals{20 * kMs, 50 * kMs, 50 * kMs};

TEST(Recorder, CopiesAreWholeWhileAnotherThreadAppends) {
  Recorder<std::int64_t> recorder(16);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (std::int64_t row = 0; row < 20'000; ++row) recorder.append(row);
    done = true;
  });
  std::size_t last = 0;
  while (!done) {
    const std::vector<std::int64_t> rows = recorder.copy();
    ASSERT_GE(rows.size(), last);
    last = rows.size();
    if (!rows.empty()) {
      ASSERT_EQ(rows.back(), static_cast<std::int64_t>(rows.size()) - 1);
    }
  }
  writer.join();
  EXPECT_EQ(recorder.copy().size(), 20'000u);
}

TEST(PowerSampler, EveryChannelIsFilledAndReadableWhileItRuns) {
  Replayed replayed;
  replayed.write("memory.csv", "t_us,used_bytes,process_count\n0,1000,1\n");
  PowerSampler sampler(replayed.device(), kIntervals, 0);
  sampler.start();
  sampler.track_counter(100 * kMs);
  for (int look = 0; look < 20; ++look) {
    sleep_ms(50);
    (void)sampler.driver_samples();
    (void)sampler.polled();
    (void)sampler.counter();
    (void)sampler.states();
    (void)sampler.drains();
    (void)sampler.processes();
    (void)sampler.tick_grid();
    sampler.read_counter();
  }
  sampler.stop();
  EXPECT_EQ(sampler.failure(), "");
  EXPECT_GE(sampler.driver_samples().size(), 40u);
  EXPECT_GE(sampler.polled().size(), 40u);
  EXPECT_GE(sampler.counter().size(), 20u + 10u);
  EXPECT_GE(sampler.states().size(), 15u);
  EXPECT_EQ(sampler.processes().size(), 1u);  // the list never changed
  EXPECT_EQ(sampler.processes()[0].ownership, Ownership::kOwn);
}

TEST(PowerSampler, CounterCallsNeverOverlap) {
  Replayed replayed;
  PowerSampler sampler(replayed.device(), kIntervals, 0);
  sampler.start();
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 3; ++reader) {
    readers.emplace_back([&] {
      for (int reading = 0; reading < 5; ++reading) sampler.read_counter();
    });
  }
  for (std::thread& reader : readers) reader.join();
  sampler.stop();
  const std::vector<CounterReading> readings = sampler.counter();
  ASSERT_GE(readings.size(), 15u);
  for (std::size_t index = 1; index < readings.size(); ++index) {
    EXPECT_GE(readings[index].begin_ns, readings[index - 1].end_ns);
  }
}

TEST(PowerSampler, ASlowCounterDelaysNoOtherChannel) {
  Replayed replayed;
  replayed.write("counter.csv", "t_call_us,t_return_us,energy_j\n0,200000,1\n3500000,3700000,2\n");
  PowerSampler sampler(replayed.device(), kIntervals, 0);
  sampler.start();
  sampler.track_counter(60'000 * kMs);
  while (sampler.counter().size() < 5) sleep_ms(20);
  sampler.stop();
  const std::vector<PolledPower> polled = sampler.polled();
  std::int64_t most_polls = 0;
  for (const CounterReading& reading : sampler.counter()) {
    EXPECT_GE(reading.end_ns - reading.begin_ns, 200 * kMs);
    const auto is_within = [&](const PolledPower& poll) {
      return reading.begin_ns <= poll.begin_ns && poll.end_ns <= reading.end_ns;
    };
    most_polls = std::max<std::int64_t>(most_polls, std::ranges::count_if(polled, is_within));
  }
  EXPECT_GE(most_polls, 6);  // ten, but for what a busy machine takes; none if they waited for the counter
}

TEST(PowerSampler, StopsAtOnceAndCanBeStartedAgain) {
  Replayed replayed;
  PowerSampler sampler(replayed.device(), {30'000 * kMs, 30'000 * kMs, 30'000 * kMs}, 0);
  for (int round = 0; round < 2; ++round) {
    sampler.start();
    sleep_ms(30);
    EXPECT_THROW(sampler.start(), std::logic_error);
    const std::int64_t begin_ns = monotonic_raw_ns();
    sampler.stop();
    EXPECT_LT(monotonic_raw_ns() - begin_ns, 20'000 * kMs);
  }
  sampler.stop();
  EXPECT_GE(sampler.polled().size(), 2u);
}

TEST(PowerSampler, ProcessesAreToldWhenTheListChanges) {
  Replayed replayed;
  replayed.write("memory.csv",
                 "t_us,used_bytes,process_count\n0,1000,0\n100000000,1000,2\n200000000,2000,2\n"
                 "300000000,2000,2\n");
  PowerSampler sampler(replayed.device(), kIntervals, 0);
  const auto poll_again = [&] {
    const std::size_t least = sampler.states().size() + 2;  // the first of them may have been on its way
    while (sampler.states().size() < least) sleep_ms(5);
  };
  sampler.start();
  poll_again();
  for (int change = 0; change < 2; ++change) {
    jump_ms(100'000);
    poll_again();
  }
  sampler.stop();
  const std::vector<ProcessRow> rows = sampler.processes();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].process_id.code, nvml::kNotFound);  // nobody
  EXPECT_EQ(rows[1].ownership, Ownership::kOwn);
  EXPECT_EQ(rows[2].ownership, Ownership::kForeign);
  EXPECT_EQ(rows[1].time_ns, rows[2].time_ns);
}

TEST(PowerSampler, AProgramThatThisProcessStartedIsItsOwnWithItsMemory) {
  Replayed replayed;
  replayed.write("memory.csv", "t_us,used_bytes,process_count\n0,1000,2\n");
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  setenv("PYBENCH_REPLAY_SECOND_PROCESS", std::to_string(child).c_str(), 1);
  PowerSampler sampler(replayed.device(), kIntervals, 0);
  sampler.start();
  while (sampler.states().empty()) sleep_ms(5);
  sampler.stop();
  unsetenv("PYBENCH_REPLAY_SECOND_PROCESS");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(sampler.processes().at(1).ownership, Ownership::kOwn);
  EXPECT_EQ(sampler.states().front().own_memory_bytes.value, 2000);
  EXPECT_EQ(sampler.states().front().process_count.value, 1);
}

TEST(PowerSampler, AnIntervalThatCannotBeKeptIsRefused) {
  Replayed replayed;
  const NvmlDevice device = replayed.device();
  EXPECT_THROW(PowerSampler(device, {1000, kMs, kMs}, 0), std::invalid_argument);
}

}  // namespace
}  // namespace pybench
