// SPDX-License-Identifier: Apache-2.0
// Threads that sample: started without signals, ended together, each waiting for its next tick without spinning.
//
// It knows neither what is sampled nor how often: see power_sampler.hpp and rail_sampler.hpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace pybench {

class SamplingThreads {
 public:
  SamplingThreads() = default;
  ~SamplingThreads() { stop(); }
  SamplingThreads(const SamplingThreads&) = delete;
  SamplingThreads& operator=(const SamplingThreads&) = delete;

  // One thread for each of `runs`. Throws std::logic_error while others run.
  void start(std::vector<std::function<void()>> runs);
  bool stop();  // wakes the threads and waits for their ends; false where none ran

  // For a thread's run: calls `tick` at once, and then on a fixed grid until it is time to stop.
  void run_every(std::int64_t interval_ns, const std::function<void()>& tick);
  // Waits until the time that `due_ns` tells, which is asked again after each `replan`. False when it is time to stop.
  bool wait_until(const std::function<std::int64_t()>& due_ns);
  void replan();

  std::int64_t missed_ticks() const { return missed_ticks_; }  // ticks that a late thread skipped
  std::string failure() const;                                 // why a thread ended early; empty when none did

 private:
  void run_guarded(const std::function<void()>& run);

  std::mutex stop_mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::uint64_t plans_ = 0;  // grows with each replan
  std::atomic<std::int64_t> missed_ticks_ = 0;
  mutable std::mutex failure_mutex_;
  std::string failure_;
  std::vector<std::thread> threads_;
};

}  // namespace pybench
