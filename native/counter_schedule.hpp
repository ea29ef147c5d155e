// SPDX-License-Identifier: Apache-2.0
// When to read the energy counter. It is seldom, because the driver spins for each call (3.7 ms on an H200), yet so
// that the phase of its ticks stays known to about a millisecond.
//
// A scan finds the ticks (readings 20 ms apart until four steps were seen). After it, each visit spends two or three
// readings on one tick. One is well before it. One is aimed at the middle of where the tick can be, and its answer (old
// or new) halves that range. When that was old, one more is after the tick. Rejected: reading back to back, which costs
// 0.5 s of a core for 0.6 s of phase; bench/energy/counter_cadence.py has both. It holds no thread and makes no call.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "nvml.hpp"
#include "tick_grid.hpp"

namespace pybench {

class CounterSchedule {
 public:
  // Without a grid, readings are `interval_ns` apart; with one, visits are.
  explicit CounterSchedule(std::int64_t interval_ns) : interval_ns_(interval_ns) {}

  // Finds the ticks, where they are not known yet, and visits each one until `until_ns`.
  void track(std::int64_t now_ns, std::int64_t until_ns);

  std::int64_t due_ns() const { return due_ns_; }  // of the next reading; 0: now
  // Every reading in order of time; `due`: made because it was due, and not because someone else wanted one.
  void note(const CounterReading& reading, bool due);

  const std::optional<TickGrid>& grid() const { return grid_; }
  std::int64_t lost_grids() const { return lost_grids_; }  // how often the ticks had left the grid that was known

 private:
  enum class Stage { kSeldom, kScan, kBefore, kAim, kAfter };

  void scan(const CounterReading& reading);
  void visit(const CounterReading& reading);
  void begin_scan();
  void suppose_round_period();
  void narrow_scan(std::int64_t now_ns);
  void finish_visit(std::optional<TickBracket> bracket, std::int64_t now_ns);
  void plan_visit(std::int64_t now_ns);
  void lose_grid(std::int64_t now_ns);
  void rest(std::int64_t now_ns);

  std::int64_t interval_ns_;
  std::int64_t due_ns_ = 0;
  std::int64_t track_until_ns_ = 0;
  Stage stage_ = Stage::kSeldom;
  std::optional<CounterReading> last_;
  std::int64_t usual_call_ns_ = 0;

  std::int64_t spacing_ns_ = 0;  // of the scan
  int scan_readings_ = 0;
  std::vector<TickBracket> scanned_;

  std::optional<TickGrid> grid_;
  TickBracket aim_{};  // the tick that is visited
  CounterReading before_{};
  CounterReading aimed_{};
  double dither_ = 0;  // in [0, 1)
  int quick_visits_ = 0;
  int misses_ = 0;
  bool supposing_ = true;  // that the period is a round one
  std::int64_t lost_grids_ = 0;
};

}  // namespace pybench
