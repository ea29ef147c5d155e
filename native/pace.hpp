// SPDX-License-Identifier: Apache-2.0
// When iterations are due and when a loop of them ends; shared by the timers of calls and of graphs.
//
// Closed loop: the next iteration begins when there is room for it. Stopping rule of trtexec
// (samples/common/sampleInference.cpp): at least `iterations` of them and at least `minimum_ns`, whichever is later.
// Open loop: iteration k is due `due_ns[k]` after the start, whether or not earlier ones have finished, and its latency
// counts from then. A system that stalls thus pays for every arrival that it kept waiting; a closed loop would simply
// have asked less of it ("coordinated omission": Gil Tene, "How NOT to Measure Latency", 2013). How arrivals are drawn
// is the caller's: here is only their schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace pybench {

// Whether the user wants to stop. Called every now and then; may take a lock.
using Interrupted = std::function<bool()>;

struct Pace {
  std::int64_t iterations = 0;
  std::int64_t minimum_ns = 0;
  std::vector<std::int64_t> due_ns;  // empty: closed loop; else ascending, and as many as there are iterations

  bool open_loop() const { return !due_ns.empty(); }
  bool wants_more(std::size_t begun, std::int64_t elapsed_ns) const {
    if (open_loop()) return begun < due_ns.size();
    return static_cast<std::int64_t>(begun) < iterations || elapsed_ns < minimum_ns;
  }
  // Offset from the start at which iteration `index` is due.
  std::int64_t due(std::size_t index) const { return open_loop() ? due_ns[index] : 0; }
  std::size_t expected() const { return open_loop() ? due_ns.size() : static_cast<std::size_t>(iterations); }
};

// Asks `interrupted` at most every 50 ms, so that asking costs nothing.
class InterruptWatch {
 public:
  explicit InterruptWatch(const Interrupted& interrupted) : interrupted_(interrupted) {}
  bool pressed(std::int64_t now_ns) {
    if (now_ns < next_ns_) return false;
    next_ns_ = now_ns + kInterval_ns;
    return interrupted_();
  }

 private:
  static constexpr std::int64_t kInterval_ns = 50'000'000;
  const Interrupted& interrupted_;
  std::int64_t next_ns_ = 0;
};

// Waits for the raw clock to reach `deadline_ns` to within about 0.1 us. It sleeps, then spins for the last 0.2 ms,
// because a sleeping thread wakes 50 to 100 us late. Returns false when interrupted.
bool wait_for_arrival(std::int64_t deadline_ns, const Interrupted& interrupted);

}  // namespace pybench
