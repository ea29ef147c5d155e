// SPDX-License-Identifier: Apache-2.0
// Empties the driver's buffer of power samples again and again, and proves that none was lost between two times.
//
// The driver keeps about 120 samples (2.4 s on an H200) and drops the oldest. Each time it is asked for all of them, so
// the last one seen must come again. When it does not, samples were dropped in between, which is counted. Samples are
// stamped in realtime; each drain reads an anchor of realtime on the raw clock, because NTP slews realtime. Where two
// anchors differ by more than a slew can explain, realtime was stepped. That is counted, and for a while stamps are
// only names. What is new is told by not having been seen, and each sample is placed by whichever anchor puts it
// between the two drains. Where both do, it is off by the step at most. It integrates nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "nvml.hpp"

namespace pybench {

struct DriverSample {
  std::int64_t time_ns;  // raw clock
  std::int64_t realtime_us;
  double power_mw;
};

// What one drain found.
struct DrainRecord {
  std::int64_t time_ns;  // of the anchor
  std::int64_t realtime_ns;
  std::int64_t anchor_uncertainty_ns;
  std::int64_t samples;     // new ones
  std::int64_t stepped_ns;  // how far realtime was stepped since the drain before; 0: not
  bool lost;                // samples were dropped since the drain before
  std::int32_t code;        // NVML's
};

class SampleDrain {
 public:
  using ReadAnchor = std::function<RealtimeAnchor()>;
  explicit SampleDrain(ReadAnchor read_anchor = &anchor_realtime) : read_anchor_(std::move(read_anchor)) {}

  // Leaves the new samples, in order of time, in `into`.
  DrainRecord drain(const NvmlDevice& device, std::vector<DriverSample>& into);

 private:
  std::int64_t step_ns(const RealtimeAnchor& anchor) const;
  bool take(const RealtimeAnchor& anchor, std::vector<DriverSample>& into);
  bool take_around_step(const RealtimeAnchor& anchor, std::vector<DriverSample>& into);
  bool known(std::int64_t realtime_us) const;
  void remember(const std::vector<DriverSample>& samples);

  ReadAnchor read_anchor_;
  RealtimeAnchor anchor_{0, 0, 0};  // of the drain before
  bool anchored_ = false;
  DriverSample last_{0, 0, 0};
  bool seen_ = false;
  std::int64_t unsettled_until_ns_ = INT64_MIN;  // until then the buffer may hold stamps from before a step
  std::vector<std::int64_t> stamps_;             // of the latest samples, more than the driver keeps
  std::vector<PowerSample> buffer_;
};

}  // namespace pybench
