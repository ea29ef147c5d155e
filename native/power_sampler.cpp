// SPDX-License-Identifier: Apache-2.0
// Implements power_sampler.hpp.
#include "power_sampler.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace pybench {
namespace {

// The driver keeps about 120 samples, 20 ms apart on an H200 (2.4 s). It is read at a third of that, so none is lost
// even when the thread wakes 1.6 s late. One drain takes half a millisecond of a core and more there.
constexpr std::int64_t kDrainInterval_ns = 800'000'000;
constexpr std::int64_t kDriverSampleInterval_ns = 20'000'000;
constexpr std::int64_t kShortestInterval_ns = 1'000'000;  // below, the calls themselves fill the time
constexpr std::int64_t kLongestInterval_ns = 60'000'000'000;
constexpr std::int64_t kLongestReserve_ns = 3'600'000'000'000;  // an hour; later growth happens in the sampling thread

std::size_t rows_for(std::int64_t expected_ns, std::int64_t interval_ns) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(expected_ns, 0, kLongestReserve_ns) / interval_ns + 256);
}

Reading sum(const Reading& one, const Reading& other) {
  if (one.code != nvml::kSuccess) return one;
  return {other.code, one.value + other.value};
}

SamplerIntervals checked(SamplerIntervals intervals) {
  for (const std::int64_t interval : {intervals.power_ns, intervals.counter_ns, intervals.state_ns}) {
    if (interval < kShortestInterval_ns || interval > kLongestInterval_ns) {
      throw std::invalid_argument("a sampling interval must lie between 1 ms and 60 s");
    }
  }
  return intervals;
}

}  // namespace

PowerSampler::PowerSampler(NvmlDevice device, SamplerIntervals intervals, std::int64_t expected_ns)
    : device_(std::move(device)),
      intervals_(checked(intervals)),
      driver_samples_(rows_for(expected_ns, kDriverSampleInterval_ns)),
      polled_(rows_for(expected_ns, intervals.power_ns)),
      counter_(rows_for(expected_ns, intervals.counter_ns)),
      states_(rows_for(expected_ns, intervals.state_ns)),
      drains_(rows_for(expected_ns, kDrainInterval_ns)),
      processes_(rows_for(0, intervals.state_ns)),
      schedule_(intervals.counter_ns) {}

PowerSampler::~PowerSampler() { stop(); }

void PowerSampler::start() {
  threads_.start({
      [this] { threads_.run_every(intervals_.power_ns, [this] { sample_power(); }); },
      [this] {
        while (threads_.wait_until([this] { return counter_due_ns(); })) take_counter_reading(true);
      },
      [this] { threads_.run_every(intervals_.state_ns, [this] { sample_state(); }); },
  });
}

void PowerSampler::stop() {
  if (threads_.stop()) drain();
}

std::int64_t PowerSampler::counter_due_ns() const {
  const std::lock_guard lock(schedule_mutex_);
  return schedule_.due_ns();
}

void PowerSampler::read_counter() { take_counter_reading(false); }

void PowerSampler::take_counter_reading(bool due) {
  // One call at a time: of two that overlap, the later to end may bring the older value, which would look like a reset.
  const std::lock_guard lock(counter_mutex_);
  const CounterReading reading = device_.energy_counter();
  counter_.append(reading);
  const std::lock_guard schedule_lock(schedule_mutex_);
  schedule_.note(reading, due);
}

void PowerSampler::track_counter(std::int64_t duration_ns) {
  const std::int64_t now_ns = monotonic_raw_ns();
  {
    const std::lock_guard lock(schedule_mutex_);
    schedule_.track(now_ns, now_ns + std::max<std::int64_t>(0, duration_ns));
  }
  threads_.replan();
}

std::optional<TickGrid> PowerSampler::tick_grid() const {
  const std::lock_guard lock(schedule_mutex_);
  return schedule_.grid();
}

void PowerSampler::sample_power() {
  PolledPower row{};
  row.begin_ns = monotonic_raw_ns();
  row.fields = fields_.read(device_, row.begin_ns);
  row.end_ns = monotonic_raw_ns();
  polled_.append(row);
  if (row.end_ns >= next_drain_ns_) {
    drain();
    next_drain_ns_ = row.end_ns + kDrainInterval_ns;
  }
}

void PowerSampler::drain() {
  const DrainRecord record = drain_.drain(device_, drained_);
  samples_code_ = record.code;
  drains_.append(record);
  for (const DriverSample& sample : drained_) driver_samples_.append(sample);
}

void PowerSampler::sample_state() {
  DeviceState row{};
  row.time_ns = monotonic_raw_ns();
  row.sm_clock_mhz = device_.clock_mhz(nvml::kClockSm);
  row.memory_clock_mhz = device_.clock_mhz(nvml::kClockMemory);
  row.temperature_c = device_.temperature_c();
  row.throttle_reasons = device_.throttle_reasons();
  row.power_limit_mw = device_.power_limit_mw();
  row.memory_used_bytes = device_.memory_used_bytes();
  const Processes processes = device_.processes();
  row.utilisation_percent = device_.utilisation_percent();
  row.own_memory_bytes = {processes.code == nvml::kSuccess ? nvml::kNotFound : processes.code, 0};
  const std::vector<std::uint32_t> listed = processes.ids();
  std::size_t own = 0;
  for (const DeviceProcess& process : processes.list) {
    if (own_.of(process.process_id, listed) != Ownership::kOwn) continue;
    row.own_memory_bytes = own++ == 0 ? process.used_bytes : sum(row.own_memory_bytes, process.used_bytes);
  }
  const std::size_t others = processes.list.size() - own;
  row.process_count = {processes.code, static_cast<double>(others + std::min<std::size_t>(own, 1))};
  states_.append(row);
  note_processes(row.time_ns, processes);
}

void PowerSampler::note_processes(std::int64_t time_ns, const Processes& processes) {
  const std::vector<std::uint32_t> listed = processes.ids();
  if (listed_ == listed && listed_code_ == processes.code) return;
  listed_ = listed;
  listed_code_ = processes.code;
  for (const DeviceProcess& process : processes.list) {
    const Reading process_id{nvml::kSuccess, static_cast<double>(process.process_id)};
    processes_.append({time_ns, process_id, process.used_bytes, own_.of(process.process_id, listed)});
  }
  if (!listed.empty()) return;
  const Reading nobody{processes.code == nvml::kSuccess ? nvml::kNotFound : processes.code, 0};
  processes_.append({time_ns, nobody, nobody, Ownership::kUnknown});
}

}  // namespace pybench
