// SPDX-License-Identifier: Apache-2.0
// Samples one device from C++ threads at a fixed cadence, without the GIL, into memory reserved beforehand.
//
// Three threads, so that none delays another: power (the driver's sample buffer and the polled fields), the energy
// counter and the device's state. Each blocks between its ticks and never spins. The counter's call takes 3 to 16 ms,
// and on an H200 the driver spins for all of it, so it is made seldom, and once more whenever the caller asks.
// Everything is kept as read, with NVML's codes; integrating is not done here.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nvml.hpp"

namespace pybench {

struct DriverSample {
  std::int64_t time_ns;  // raw clock, through an anchor taken just before the buffer was read
  std::int64_t realtime_us;
  double power_mw;
};

struct PolledPower {
  std::int64_t begin_ns;
  std::int64_t end_ns;
  Reading instant_mw;
  Reading average_mw;
};

struct DeviceState {
  std::int64_t time_ns;
  Reading sm_clock_mhz;
  Reading memory_clock_mhz;
  Reading temperature_c;
  Reading throttle_reasons;
  Reading power_limit_mw;
  Reading memory_used_bytes;
  Reading own_memory_bytes;  // of this process, where the driver lists it
  Reading process_count;
};

struct SamplerIntervals {
  std::int64_t power_ns;
  std::int64_t counter_ns;
  std::int64_t state_ns;
};

// Rows that one thread appends and another copies. Memory for `expected` rows is reserved up front; beyond it the
// sampling thread pays for growth, never the measured one.
template <typename Row>
class Recorder {
 public:
  explicit Recorder(std::size_t expected) { rows_.reserve(expected); }

  void append(const Row& row) {
    const std::lock_guard lock(mutex_);
    rows_.push_back(row);
  }

  std::vector<Row> copy() const {
    const std::lock_guard lock(mutex_);
    return rows_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Row> rows_;
};

class PowerSampler {
 public:
  // `expected_ns`: for how long memory is reserved; sampling may go on for longer.
  PowerSampler(NvmlDevice device, SamplerIntervals intervals, std::int64_t expected_ns);
  ~PowerSampler();
  PowerSampler(const PowerSampler&) = delete;
  PowerSampler& operator=(const PowerSampler&) = delete;

  void start();
  void stop();  // wakes the threads, waits for a call in flight, then drains the driver's buffer once more

  void read_counter();  // one more reading, now, from any thread

  std::vector<DriverSample> driver_samples() const { return driver_samples_.copy(); }
  std::vector<PolledPower> polled() const { return polled_.copy(); }
  std::vector<CounterReading> counter() const { return counter_.copy(); }  // calls never overlap
  std::vector<DeviceState> states() const { return states_.copy(); }
  std::int32_t samples_code() const { return samples_code_; }  // NVML's last code for the driver's buffer
  std::int64_t missed_ticks() const { return missed_ticks_; }  // ticks that a late thread skipped
  std::string failure() const;                                 // why a thread ended early; empty when none did

 private:
  void run_every(std::int64_t interval_ns, const std::function<void()>& tick);
  bool wait_until(std::int64_t deadline_ns);  // false when it is time to stop
  void sample_power();
  void drain();
  void sample_state();

  NvmlDevice device_;
  SamplerIntervals intervals_;
  Recorder<DriverSample> driver_samples_;
  Recorder<PolledPower> polled_;
  Recorder<CounterReading> counter_;
  Recorder<DeviceState> states_;
  std::vector<PowerSample> drained_;
  std::int64_t last_sample_us_ = 0;
  std::int64_t next_drain_ns_ = 0;
  std::atomic<std::int32_t> samples_code_ = nvml::kSuccess;
  std::atomic<std::int64_t> missed_ticks_ = 0;
  std::mutex counter_mutex_;
  std::mutex stop_mutex_;
  std::condition_variable stop_wish_;
  bool stopping_ = false;
  mutable std::mutex failure_mutex_;
  std::string failure_;
  std::vector<std::thread> threads_;
};

}  // namespace pybench
