// SPDX-License-Identifier: Apache-2.0
// Samples one device from C++ threads at a fixed cadence, without the GIL, into memory reserved beforehand.
//
// Three threads, so that none delays another: power (the driver's sample buffer and the polled fields), the energy
// counter and the device's state. Each blocks between its ticks and never spins. The counter's call takes 3 to 16 ms,
// and on an H200 the driver spins for all of it. So it is made seldom, when counter_schedule.hpp says, and once more
// whenever the caller asks. Everything is kept as read, with NVML's codes; integrating is not done here.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "counter_schedule.hpp"
#include "nvml.hpp"
#include "own_process.hpp"
#include "power_fields.hpp"
#include "recorder.hpp"
#include "sample_drain.hpp"
#include "sampling_threads.hpp"

namespace pybench {

struct PolledPower {
  std::int64_t begin_ns;  // of the call that brought all fields
  std::int64_t end_ns;
  PowerFields::Readings fields;  // in the order of kPowerFields
};

// One process in the device's list, which is told whole whenever other processes are in it. A list that is empty, or
// could not be read, is one row without a process.
struct ProcessRow {
  std::int64_t time_ns;
  Reading process_id;
  Reading used_bytes;
  Ownership ownership;
};

struct DeviceState {
  std::int64_t time_ns;
  Reading sm_clock_mhz;
  Reading memory_clock_mhz;
  Reading temperature_c;
  Reading throttle_reasons;
  Reading power_limit_mw;
  Reading memory_used_bytes;
  Reading own_memory_bytes;  // of this process and what it started, where the driver lists them
  Reading process_count;     // this process and what it started count as one
  Reading utilisation_percent;
};

struct SamplerIntervals {
  std::int64_t power_ns;
  std::int64_t counter_ns;
  std::int64_t state_ns;
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
  // Finds the energy counter's ticks, if they are not known, and reads around each of them for so long; returns at
  // once. From then on the phase of the ticks is kept, which costs no more than reading without knowing it.
  void track_counter(std::int64_t duration_ns);

  std::vector<DriverSample> driver_samples() const { return driver_samples_.copy(); }
  std::vector<PolledPower> polled() const { return polled_.copy(); }
  std::vector<CounterReading> counter() const { return counter_.copy(); }  // calls never overlap
  std::vector<DeviceState> states() const { return states_.copy(); }
  std::int32_t samples_code() const { return samples_code_; }  // NVML's last code for the driver's buffer
  std::vector<DrainRecord> drains() const { return drains_.copy(); }
  std::vector<ProcessRow> processes() const { return processes_.copy(); }
  std::optional<TickGrid> tick_grid() const;  // none before track_counter, or where there is none
  std::int64_t missed_ticks() const { return threads_.missed_ticks(); }
  std::string failure() const { return threads_.failure(); }

 private:
  std::int64_t counter_due_ns() const;
  void take_counter_reading(bool due);
  void sample_power();
  void drain();
  void sample_state();
  void note_processes(std::int64_t time_ns, const Processes& processes);

  NvmlDevice device_;
  SamplerIntervals intervals_;
  Recorder<DriverSample> driver_samples_;
  Recorder<PolledPower> polled_;
  Recorder<CounterReading> counter_;
  Recorder<DeviceState> states_;
  Recorder<DrainRecord> drains_;
  Recorder<ProcessRow> processes_;
  PowerFields fields_;
  SampleDrain drain_;
  std::vector<DriverSample> drained_;
  std::int64_t next_drain_ns_ = 0;
  OwnProcess own_ = OwnProcess::find();
  std::optional<std::vector<std::uint32_t>> listed_;  // the processes of the rows written last; none: not told
  std::int32_t listed_code_ = -1;
  CounterSchedule schedule_;
  std::atomic<std::int32_t> samples_code_ = nvml::kSuccess;
  std::mutex counter_mutex_;           // held for a call of the counter
  mutable std::mutex schedule_mutex_;  // never held for long
  SamplingThreads threads_;
};

}  // namespace pybench
