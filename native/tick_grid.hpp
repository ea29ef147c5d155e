// SPDX-License-Identifier: Apache-2.0
// Where the ticks of an energy counter lie: a grid of unknown phase and period, enclosed exactly.
//
// A counter that steps at t_k = t_0 + k T is read by calls of finite length. Two readings with one step between them
// say only that the tick lies between the begin of the first call and the end of the second: a bracket. Every bracket
// is two half planes of (t_0, T), and what all of them leave is a convex polygon. Nothing is averaged, so the truth
// stays inside whatever the calls' lengths are, as long as the ticks keep to their grid within kTickJitter_ns.
// Rejected: one interval each for t_0 and T, which forgets how the two hang together and predicts five times as wide.
// It reads nothing: see counter_schedule.hpp for when to.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace pybench {

// A tick lies in [low_ns, high_ns] of the raw clock.
struct TickBracket {
  std::int64_t low_ns;
  std::int64_t high_ns;

  std::int64_t width_ns() const { return high_ns - low_ns; }
  std::int64_t middle_ns() const { return low_ns + (high_ns - low_ns) / 2; }
};

// On an H200 every one of 3509 ticks in 351 s fits one grid with room to spare; 0.1 ms on either side forgives drift.
constexpr std::int64_t kTickJitter_ns = 100'000;

constexpr double kClockError = 200e-6;  // bound of a computer's clock and a device's against each other

class TickGrid {
 public:
  // From brackets of ticks that follow each other without one missing; three at least. None when they fit no grid.
  static std::optional<TickGrid> enclose(const std::vector<TickBracket>& consecutive);

  // Keeps only periods within kClockError of `period_ns`: what is supposed of a device's clock, and no longer enclosed
  // by readings alone. False, and nothing is changed, when none is left.
  bool suppose(double period_ns);

  // Cuts by one more bracket, later than the last. False, and nothing is changed, when the bracket could hold more
  // than one tick of the grid or holds none.
  bool add(TickBracket bracket);

  // The first tick that cannot be before `time_ns`.
  TickBracket first_after(std::int64_t time_ns) const;
  TickBracket latest() const { return ahead(0); }  // the last tick that was bracketed
  double shortest_period_ns() const;
  double longest_period_ns() const;

 private:
  // One grid that could be: where its latest tick lies after `origin_ns_`, and its period.
  struct Candidate {
    double tick_ns;
    double period_ns;
  };
  using Polygon = std::vector<Candidate>;  // convex; its corners in order

  TickGrid(std::int64_t origin_ns, Polygon possible) : origin_ns_(origin_ns), possible_(std::move(possible)) {}
  TickBracket ahead(std::int64_t ticks) const;
  static Polygon cut(const Polygon& polygon, double tick_weight, double period_weight, double low_ns, double high_ns);
  void move_to(std::int64_t ticks);
  void allow_drift();

  std::int64_t origin_ns_;
  Polygon possible_;
  std::int64_t ticks_since_drift_ = 0;
};

}  // namespace pybench
