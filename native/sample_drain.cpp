// SPDX-License-Identifier: Apache-2.0
// Implements sample_drain.hpp.
#include "sample_drain.hpp"

#include <algorithm>
#include <cstdlib>

namespace pybench {
namespace {

// The kernel slews realtime by 500 ppm at most (adjtimex(2)), and runs it up to 500 ppm off to begin with.
constexpr std::int64_t kSlewPartsPerMillion = 1000;
constexpr std::int64_t kUnsettled_ns = 10'000'000'000;  // four times what the buffer of an H200 holds
constexpr std::size_t kRemembered = 1024;               // eight times as many
constexpr std::int64_t kStep_ns = 1'000'000;  // smaller steps move an edge by less than the sensor's own jitter

}  // namespace

DrainRecord SampleDrain::drain(const NvmlDevice& device, std::vector<DriverSample>& into) {
  into.clear();
  const RealtimeAnchor anchor = read_anchor_();
  DrainRecord record{anchor.monotonic_raw_ns, anchor.realtime_ns, anchor.uncertainty_ns, 0, step_ns(anchor), false, 0};
  if (record.stepped_ns != 0) unsettled_until_ns_ = anchor.monotonic_raw_ns + kUnsettled_ns;
  const bool unsettled = anchor.monotonic_raw_ns < unsettled_until_ns_;
  // The whole buffer, so that the last sample seen has to come again. Asked for what came after the microsecond before
  // it, an H200 (driver 580.159) leaves it out.
  record.code = device.drain_power_samples(0, buffer_);
  if (record.code == nvml::kSuccess) {
    record.lost = !(unsettled ? take_around_step(anchor, into) : take(anchor, into));
    remember(into);
  }
  record.samples = static_cast<std::int64_t>(into.size());
  anchor_ = anchor;
  anchored_ = true;
  return record;
}

std::int64_t SampleDrain::step_ns(const RealtimeAnchor& anchor) const {
  if (!anchored_) return 0;
  const std::int64_t passed_ns = anchor.monotonic_raw_ns - anchor_.monotonic_raw_ns;
  const std::int64_t moved_ns = anchor.realtime_ns - anchor_.realtime_ns - passed_ns;
  const std::int64_t slewed_ns = passed_ns * kSlewPartsPerMillion / 1'000'000;
  const std::int64_t unsure_ns = anchor.uncertainty_ns + anchor_.uncertainty_ns;
  return std::abs(moved_ns) > kStep_ns + slewed_ns + unsure_ns ? moved_ns : 0;
}

// False when samples were dropped before the first of these.
bool SampleDrain::take(const RealtimeAnchor& anchor, std::vector<DriverSample>& into) {
  bool overlaps = !seen_ || buffer_.empty();  // an empty answer: a driver that shows nothing twice, and has nothing new
  for (const PowerSample& sample : buffer_) {
    if (seen_ && sample.realtime_us <= last_.realtime_us) {
      overlaps = true;
      continue;
    }
    into.push_back({anchor.to_raw_ns(sample.realtime_us * 1000), sample.realtime_us, sample.power_mw});
  }
  return overlaps;
}

bool SampleDrain::take_around_step(const RealtimeAnchor& anchor, std::vector<DriverSample>& into) {
  bool overlaps = !seen_ || buffer_.empty();
  const std::int64_t after_ns = seen_ ? last_.time_ns : INT64_MIN;
  for (const PowerSample& sample : buffer_) {
    if (known(sample.realtime_us)) {
      overlaps = true;
      continue;
    }
    for (const RealtimeAnchor& by : {anchor, anchor_}) {
      const std::int64_t time_ns = by.to_raw_ns(sample.realtime_us * 1000);
      if (time_ns <= after_ns || time_ns > anchor.monotonic_raw_ns) continue;
      into.push_back({time_ns, sample.realtime_us, sample.power_mw});
      break;
    }
  }
  std::ranges::sort(into, {}, &DriverSample::time_ns);
  return overlaps;
}

bool SampleDrain::known(std::int64_t realtime_us) const {
  return std::ranges::find(stamps_, realtime_us) != stamps_.end();
}

void SampleDrain::remember(const std::vector<DriverSample>& samples) {
  if (samples.empty()) return;
  last_ = samples.back();
  seen_ = true;
  for (const DriverSample& sample : samples) stamps_.push_back(sample.realtime_us);
  if (stamps_.size() > 2 * kRemembered) stamps_.erase(stamps_.begin(), stamps_.end() - kRemembered);
}

}  // namespace pybench
