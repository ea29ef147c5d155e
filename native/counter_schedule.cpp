// SPDX-License-Identifier: Apache-2.0
// Implements counter_schedule.hpp.
#include "counter_schedule.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace pybench {
namespace {

constexpr std::int64_t kMillisecond_ns = 1'000'000;
constexpr std::int64_t kScanSpacing_ns = 20 * kMillisecond_ns;     // four readings a tick of 0.1 s
constexpr std::int64_t kShortestSpacing_ns = 1 * kMillisecond_ns;  // always leave the core a while
constexpr std::size_t kScanTicks = 4;
constexpr int kReadingsPerTick = 3;  // from here on every tick is sure to show as a step of its own
constexpr int kScanReadings = 100;   // 2 s: a counter without a step until then has no tick worth tracking
// Firmware ticks in round periods, so while a scan leaves 92 to 112 ms, 100 ms is what is aimed with: visits can then
// be seconds apart at once. A supposition that fails is not made again.
constexpr std::array kRoundPeriods_ns = {100 * kMillisecond_ns, 50 * kMillisecond_ns, 20 * kMillisecond_ns,
                                         10 * kMillisecond_ns};
constexpr std::int64_t kLetUp = 16;
constexpr double kGolden = 0.6180339887498949;
constexpr int kQuickVisits = 6;                           // in a row at most; each halves the range, 23 ms to 5 ms
constexpr int kBlindVisits = 20;                          // the same where the period, too, has to be found
constexpr int kMissesAllowed = 3;                         // in a row; a tick may be late once
constexpr std::int64_t kWidest_ns = 8 * kMillisecond_ns;  // of a predicted range: visit before it grows beyond
constexpr std::int64_t kScansAgain = 5;                   // a counter that keeps leaving its grid has none
// On an H200 a call takes 10 to 16 ms from 2 to 20 ms after a tick, 6 ms until 27 ms after it, else 2.4 ms. Of a
// shorter tick, too much later would leave the bracket too wide to tell one tick from two.
constexpr double kAfterTick = 0.3;

double energy(const CounterReading& reading) { return reading.energy_mj.value; }

}  // namespace

void CounterSchedule::track(std::int64_t now_ns, std::int64_t until_ns) {
  track_until_ns_ = std::max(track_until_ns_, until_ns);
  if (grid_) {
    // A visit under way goes on; else the next tick is visited.
    if (stage_ == Stage::kSeldom || stage_ == Stage::kBefore) plan_visit(now_ns);
  } else if (stage_ != Stage::kScan) {
    begin_scan();
  }
}

void CounterSchedule::note(const CounterReading& reading, bool due) {
  if (reading.energy_mj.code != nvml::kSuccess) {
    last_.reset();
    if (due) rest(reading.end_ns);
    return;
  }
  // The shortest of late, let up slowly: long calls are those right after a tick, and say nothing of the next one.
  const std::int64_t call_ns = reading.end_ns - reading.begin_ns;
  usual_call_ns_ = usual_call_ns_ == 0 ? call_ns : std::min(call_ns, usual_call_ns_ + usual_call_ns_ / kLetUp);
  if (grid_ && last_ && energy(reading) < energy(*last_)) lose_grid(reading.end_ns);  // the driver began anew
  if (stage_ == Stage::kScan) {
    scan(reading);
  } else if (due) {
    visit(reading);
  }
  last_ = reading;
}

void CounterSchedule::visit(const CounterReading& reading) {
  if (grid_ && stage_ != Stage::kSeldom) {
    // A thread that woke too late for this tick, or a sampler that was stopped meanwhile, has missed nothing but a
    // visit.
    const std::int64_t half_period_ns = std::llround(grid_->shortest_period_ns() / 2);
    const std::int64_t latest_ns = stage_ == Stage::kBefore ? aim_.low_ns : aim_.high_ns + half_period_ns;
    if (reading.begin_ns > latest_ns) {
      plan_visit(reading.end_ns);
      return;
    }
  }
  switch (stage_) {
    case Stage::kBefore: {
      before_ = reading;
      dither_ = std::fmod(dither_ + kGolden, 1.0);
      const double offset_ns = (dither_ - 0.5) / 2 * static_cast<double>(aim_.width_ns());
      due_ns_ = aim_.middle_ns() - usual_call_ns_ / 2 + std::llround(offset_ns);
      stage_ = Stage::kAim;
      return;
    }
    case Stage::kAim:
      if (energy(reading) > energy(before_)) {
        finish_visit(TickBracket{before_.begin_ns, reading.end_ns}, reading.end_ns);
        return;
      }
      aimed_ = reading;
      due_ns_ = aim_.high_ns + std::llround(kAfterTick * grid_->shortest_period_ns());
      stage_ = Stage::kAfter;
      return;
    case Stage::kAfter:
      if (energy(reading) > energy(aimed_)) {
        finish_visit(TickBracket{aimed_.begin_ns, reading.end_ns}, reading.end_ns);
      } else {
        finish_visit(std::nullopt, reading.end_ns);
      }
      return;
    default:
      if (grid_) {
        plan_visit(reading.end_ns);
      } else {
        rest(reading.end_ns);
      }
  }
}

void CounterSchedule::begin_scan() {
  stage_ = Stage::kScan;
  due_ns_ = 0;
  spacing_ns_ = kScanSpacing_ns;
  scan_readings_ = 0;
  scanned_.clear();
  last_.reset();  // the first bracket must begin inside the scan
}

void CounterSchedule::scan(const CounterReading& reading) {
  ++scan_readings_;
  due_ns_ = reading.end_ns + spacing_ns_;
  if (last_ && energy(reading) > energy(*last_)) scanned_.push_back({last_->begin_ns, reading.end_ns});
  if (scanned_.size() < kScanTicks) {
    if (scan_readings_ >= kScanReadings) rest(reading.end_ns);
    return;
  }
  // The first bracket may come right at the beginning, so one tick fewer was passed than there are brackets.
  if (scan_readings_ < kReadingsPerTick * static_cast<int>(kScanTicks - 1)) {
    narrow_scan(reading.end_ns);
    return;
  }
  grid_ = TickGrid::enclose(scanned_);
  quick_visits_ = misses_ = 0;
  if (grid_) {
    if (supposing_) suppose_round_period();
    plan_visit(reading.end_ns);
  } else {
    rest(reading.end_ns);
  }
}

void CounterSchedule::suppose_round_period() {
  for (const std::int64_t round_ns : kRoundPeriods_ns) {
    const double multiple = std::floor(grid_->longest_period_ns() / static_cast<double>(round_ns));
    if (multiple >= 1 && grid_->suppose(multiple * static_cast<double>(round_ns))) return;
  }
}

void CounterSchedule::narrow_scan(std::int64_t now_ns) {
  const std::int64_t narrower_ns = spacing_ns_ / 2;
  begin_scan();
  spacing_ns_ = narrower_ns;
  due_ns_ = now_ns + spacing_ns_;
  if (spacing_ns_ < kShortestSpacing_ns) rest(now_ns);
}

void CounterSchedule::finish_visit(std::optional<TickBracket> bracket, std::int64_t now_ns) {
  misses_ = bracket && grid_->add(*bracket) ? 0 : misses_ + 1;
  if (misses_ >= kMissesAllowed) {
    supposing_ = false;
    lose_grid(now_ns);
  } else {
    plan_visit(now_ns);
  }
}

void CounterSchedule::plan_visit(std::int64_t now_ns) {
  const std::int64_t lead_ns = usual_call_ns_ * 3 / 2 + kMillisecond_ns;
  aim_ = grid_->first_after(now_ns + lead_ns);
  const std::int64_t narrow_ns = 2 * usual_call_ns_ + 2 * kTickJitter_ns;
  const bool narrow = grid_->latest().width_ns() <= narrow_ns;
  if (narrow) quick_visits_ = 0;
  if (now_ns >= track_until_ns_ && (narrow || quick_visits_ >= (supposing_ ? kQuickVisits : kBlindVisits))) {
    // As late as the interval allows while the prediction stays narrow enough to be worth a visit.
    const std::int64_t widest_ns = std::max(kWidest_ns, 2 * aim_.width_ns());
    for (std::int64_t wait_ns = interval_ns_; wait_ns > 0; wait_ns -= wait_ns / 4 + 1) {
      const TickBracket later = grid_->first_after(now_ns + wait_ns);
      if (later.low_ns <= aim_.low_ns) break;
      if (later.width_ns() > widest_ns) continue;
      aim_ = later;
      break;
    }
  } else {
    ++quick_visits_;
  }
  stage_ = Stage::kBefore;
  due_ns_ = aim_.low_ns - lead_ns;
}

void CounterSchedule::lose_grid(std::int64_t now_ns) {
  ++lost_grids_;
  grid_.reset();
  if (lost_grids_ <= kScansAgain || now_ns < track_until_ns_) {
    begin_scan();
  } else {
    rest(now_ns);
  }
}

void CounterSchedule::rest(std::int64_t now_ns) {
  stage_ = Stage::kSeldom;
  due_ns_ = now_ns + interval_ns_;
}

}  // namespace pybench
