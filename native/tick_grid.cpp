// SPDX-License-Identifier: Apache-2.0
// Implements tick_grid.hpp by cutting a convex polygon (Sutherland and Hodgman 1974, CACM 17:32).
#include "tick_grid.hpp"

#include <algorithm>
#include <cmath>

namespace pybench {
namespace {

// Two clocks drift apart by some 1e-6 over minutes as they warm up. So every 10 min (of ticks of 0.1 s) what is known
// of the period is loosened by as much.
constexpr std::int64_t kDriftTicks = 6000;
constexpr double kDrift = 2e-6;

bool overlap(TickBracket a, TickBracket b) { return a.low_ns <= b.high_ns && b.low_ns <= a.high_ns; }

}  // namespace

std::optional<TickGrid> TickGrid::enclose(const std::vector<TickBracket>& consecutive) {
  if (consecutive.size() < 3) return std::nullopt;
  const TickBracket first = consecutive.front(), last = consecutive.back();
  // Any tick in the first bracket, and any period up to twice the longest that the last one allows.
  const double longest_ns = 2 * static_cast<double>(last.high_ns - first.low_ns) / (consecutive.size() - 1.0);
  const double low_ns = -kTickJitter_ns, high_ns = static_cast<double>(first.width_ns() + kTickJitter_ns);
  TickGrid grid(first.low_ns, {{low_ns, 1}, {high_ns, 1}, {high_ns, longest_ns}, {low_ns, longest_ns}});
  for (std::size_t tick = 1; tick < consecutive.size(); ++tick) {
    grid.possible_ = cut(grid.possible_, 1, static_cast<double>(tick),
                         static_cast<double>(consecutive[tick].low_ns - kTickJitter_ns - first.low_ns),
                         static_cast<double>(consecutive[tick].high_ns + kTickJitter_ns - first.low_ns));
    if (grid.possible_.empty()) return std::nullopt;
  }
  grid.move_to(static_cast<std::int64_t>(consecutive.size()) - 1);
  return grid;
}

double TickGrid::shortest_period_ns() const { return std::ranges::min(possible_, {}, &Candidate::period_ns).period_ns; }
double TickGrid::longest_period_ns() const { return std::ranges::max(possible_, {}, &Candidate::period_ns).period_ns; }

TickBracket TickGrid::ahead(std::int64_t ticks) const {
  double low_ns = INFINITY, high_ns = -INFINITY;
  for (const Candidate& grid : possible_) {
    const double tick_ns = grid.tick_ns + static_cast<double>(ticks) * grid.period_ns;
    low_ns = std::min(low_ns, tick_ns);
    high_ns = std::max(high_ns, tick_ns);
  }
  return {origin_ns_ + std::llround(low_ns), origin_ns_ + std::llround(high_ns)};
}

bool TickGrid::suppose(double period_ns) {
  Polygon left = cut(possible_, 0, 1, period_ns * (1 - kClockError), period_ns * (1 + kClockError));
  if (left.empty()) return false;
  possible_ = std::move(left);
  return true;
}

// Keeps what lies in low <= tick_weight * tick + period_weight * period <= high.
TickGrid::Polygon TickGrid::cut(const Polygon& polygon, double tick_weight, double period_weight, double low_ns,
                                double high_ns) {
  Polygon left = polygon;
  for (const double side : {1.0, -1.0}) {
    const double bound_ns = side > 0 ? low_ns : -high_ns;
    const auto room_ns = [&](const Candidate& grid) {
      return side * (tick_weight * grid.tick_ns + period_weight * grid.period_ns) - bound_ns;
    };
    Polygon kept;
    for (std::size_t index = 0; index < left.size(); ++index) {
      const Candidate& here = left[index];
      const Candidate& next = left[(index + 1) % left.size()];
      const double room_here = room_ns(here), room_next = room_ns(next);
      if (room_here >= 0) kept.push_back(here);
      if ((room_here >= 0) != (room_next >= 0)) {
        const double share = room_here / (room_here - room_next);
        kept.push_back({here.tick_ns + share * (next.tick_ns - here.tick_ns),
                        here.period_ns + share * (next.period_ns - here.period_ns)});
      }
    }
    left = std::move(kept);
  }
  return left;
}

bool TickGrid::add(TickBracket bracket) {
  bracket.low_ns -= kTickJitter_ns;
  bracket.high_ns += kTickJitter_ns;
  const double distance_ns = static_cast<double>(bracket.middle_ns() - latest().middle_ns());
  const std::int64_t ticks = std::llround(distance_ns / ((shortest_period_ns() + longest_period_ns()) / 2));
  if (ticks < 1 || overlap(bracket, ahead(ticks - 1)) || overlap(bracket, ahead(ticks + 1))) return false;
  Polygon left = cut(possible_, 1, static_cast<double>(ticks), static_cast<double>(bracket.low_ns - origin_ns_),
                     static_cast<double>(bracket.high_ns - origin_ns_));
  if (left.empty()) return false;
  possible_ = std::move(left);
  move_to(ticks);
  return true;
}

void TickGrid::move_to(std::int64_t ticks) {
  const std::int64_t before_ns = origin_ns_;
  origin_ns_ = ahead(ticks).low_ns;  // small numbers keep their digits
  for (Candidate& grid : possible_) {
    grid.tick_ns += static_cast<double>(ticks) * grid.period_ns - static_cast<double>(origin_ns_ - before_ns);
  }
  ticks_since_drift_ += ticks;
  if (ticks_since_drift_ >= kDriftTicks) allow_drift();
}

void TickGrid::allow_drift() {
  ticks_since_drift_ = 0;
  const TickBracket tick = latest();
  const double shortest_ns = shortest_period_ns() * (1 - kDrift), longest_ns = longest_period_ns() * (1 + kDrift);
  const double low_ns = static_cast<double>(tick.low_ns - origin_ns_);
  const double high_ns = static_cast<double>(tick.high_ns - origin_ns_);
  possible_ = {{low_ns, shortest_ns}, {high_ns, shortest_ns}, {high_ns, longest_ns}, {low_ns, longest_ns}};
}

TickBracket TickGrid::first_after(std::int64_t time_ns) const {
  const double until_ns = static_cast<double>(time_ns - latest().low_ns);
  auto ticks = std::max<std::int64_t>(1, static_cast<std::int64_t>(until_ns / longest_period_ns()));
  while (ahead(ticks).low_ns < time_ns) ++ticks;
  return ahead(ticks);
}

}  // namespace pybench
