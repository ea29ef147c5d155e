// SPDX-License-Identifier: Apache-2.0
// Implements sampling_threads.hpp.
#include "sampling_threads.hpp"

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <stdexcept>
#include <utility>

#include "clock.hpp"

namespace pybench {
namespace {

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

void SamplingThreads::start(std::vector<std::function<void()>> runs) {
  if (!threads_.empty()) throw std::logic_error("the sampler runs already");
  stopping_ = false;
  const BlockedSignals blocked;
  for (std::function<void()>& run : runs) {
    threads_.emplace_back([this, run = std::move(run)] { run_guarded(run); });
  }
}

bool SamplingThreads::stop() {
  if (threads_.empty()) return false;
  {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return true;
}

void SamplingThreads::run_every(std::int64_t interval_ns, const std::function<void()>& tick) {
  std::int64_t due_ns = monotonic_raw_ns();
  do {
    tick();
    // A fixed grid: a slow call does not shift the later ticks, and ticks that it ran over are skipped and counted.
    const std::int64_t late = (monotonic_raw_ns() - due_ns) / interval_ns;
    missed_ticks_ += late;
    due_ns += (late + 1) * interval_ns;
  } while (wait_until([due_ns] { return due_ns; }));
}

bool SamplingThreads::wait_until(const std::function<std::int64_t()>& due_ns) {
  std::unique_lock lock(stop_mutex_);
  for (;;) {
    const std::uint64_t planned = plans_;
    // The remainder is waited for on the steady clock (CLOCK_MONOTONIC), which runs within 500 ppm of the raw one.
    const auto left = std::chrono::nanoseconds(due_ns() - monotonic_raw_ns());
    if (!wake_.wait_for(lock, left, [this, planned] { return stopping_ || plans_ != planned; })) return true;
    if (stopping_) return false;
  }
}

void SamplingThreads::replan() {
  {
    const std::lock_guard lock(stop_mutex_);
    ++plans_;
  }
  wake_.notify_all();
}

std::string SamplingThreads::failure() const {
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

void SamplingThreads::run_guarded(const std::function<void()>& run) {
  try {
    run();
  } catch (const std::exception& error) {
    const std::lock_guard lock(failure_mutex_);
    failure_ = error.what();
  }
}

}  // namespace pybench
