// SPDX-License-Identifier: Apache-2.0
// Implements power_sampler.hpp.
#include "power_sampler.hpp"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <stdexcept>
#include <utility>

namespace pybench {
namespace {

// The driver keeps about 120 samples, 20 ms apart on an H200 (2.4 s): read at a third of that, none is lost even when
// the thread wakes 1.6 s late. One drain takes half a millisecond of a core and more there.
constexpr std::int64_t kDrainInterval_ns = 800'000'000;
constexpr std::int64_t kDriverSampleInterval_ns = 20'000'000;
constexpr std::int64_t kShortestInterval_ns = 1'000'000;  // below, the calls themselves fill the time
constexpr std::int64_t kLongestInterval_ns = 60'000'000'000;
constexpr std::int64_t kLongestReserve_ns = 3'600'000'000'000;  // an hour; later growth happens in the sampling thread

std::size_t rows_for(std::int64_t expected_ns, std::int64_t interval_ns) {
  return static_cast<std::size_t>(std::clamp<std::int64_t>(expected_ns, 0, kLongestReserve_ns) / interval_ns + 256);
}

SamplerIntervals checked(SamplerIntervals intervals) {
  for (const std::int64_t interval : {intervals.power_ns, intervals.counter_ns, intervals.state_ns}) {
    if (interval < kShortestInterval_ns || interval > kLongestInterval_ns) {
      throw std::invalid_argument("a sampling interval must lie between 1 ms and 60 s");
    }
  }
  return intervals;
}

// Signals belong to Python's main thread: threads started while this lives inherit a mask that blocks all of them.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

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
  if (!threads_.empty()) throw std::logic_error("the sampler runs already");
  stopping_ = false;
  const BlockedSignals blocked;
  const auto start_thread = [this](std::function<void()> run) {
    threads_.emplace_back([this, run = std::move(run)] { run_guarded(run); });
  };
  start_thread([this] { run_every(intervals_.power_ns, [this] { sample_power(); }); });
  start_thread([this] { run_counter(); });
  start_thread([this] { run_every(intervals_.state_ns, [this] { sample_state(); }); });
}

void PowerSampler::stop() {
  if (threads_.empty()) return;
  {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  stop_wish_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  drain();
}

std::string PowerSampler::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void PowerSampler::run_guarded(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) {
    const std::lock_guard lock(failure_mutex_);
    failure_ = error.what();
  }
}

void PowerSampler::run_every(std::int64_t interval_ns, const std::function<void()>& tick) {
  std::int64_t due_ns = monotonic_raw_ns();
  do {
    tick();
    // A fixed grid: a slow call does not shift the later ticks, and ticks that it ran over are skipped and counted.
    const std::int64_t late = (monotonic_raw_ns() - due_ns) / interval_ns;
    missed_ticks_ += late;
    due_ns += (late + 1) * interval_ns;
  } while (wait_until(due_ns));
}

bool PowerSampler::wait_until(std::int64_t deadline_ns) {
  std::unique_lock lock(stop_mutex_);
  // The remainder is waited for on the steady clock (CLOCK_MONOTONIC), which runs within 500 ppm of the raw one.
  const auto left = std::chrono::nanoseconds(deadline_ns - monotonic_raw_ns());
  return !stop_wish_.wait_for(lock, left, [this] { return stopping_; });
}

void PowerSampler::run_counter() {
  for (;;) {
    {
      std::unique_lock lock(stop_mutex_);
      const auto changed = [this] { return stopping_ || counter_replanned_; };
      for (;;) {
        counter_replanned_ = false;
        const auto left = std::chrono::nanoseconds(counter_due_ns() - monotonic_raw_ns());
        if (!stop_wish_.wait_for(lock, left, changed)) break;
        if (stopping_) return;
      }
    }
    take_counter_reading(true);
  }
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
  {
    const std::lock_guard lock(stop_mutex_);
    counter_replanned_ = true;
  }
  stop_wish_.notify_all();
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
  row.process_count = {processes.code, static_cast<double>(processes.list.size())};
  row.own_memory_bytes = {processes.code == nvml::kSuccess ? nvml::kNotFound : processes.code, 0};
  const std::vector<std::uint32_t> listed = processes.ids();
  for (const DeviceProcess& process : processes.list) {
    if (own_.of(process.process_id, listed) == Ownership::kOwn) row.own_memory_bytes = process.used_bytes;
  }
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
