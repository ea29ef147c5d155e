// SPDX-License-Identifier: Apache-2.0
// Implements graph_timer.hpp.
#include "graph_timer.hpp"

#include <cmath>
#include <string>

#include "clock.hpp"

namespace pybench {
namespace {

constexpr std::size_t kAnchors = 5;  // the tightest counts: the thread may be preempted inside one
constexpr double kNanosecondsPerMillisecond = 1e6;

// An event on the idle stream, whose true raw time lies within `middle_ns` +- `half_width_ns`.
struct Anchor {
  std::size_t event;
  std::int64_t middle_ns;
  std::int64_t half_width_ns;
};

// One series of replays. A replay is launched, seen finished, then harvested (its events read). Where there is room for
// it, harvesting one waits until the next is launched, so that it never keeps the GPU waiting.
class Series {
 public:
  // Events for `depth` replays in flight, for one that is finished but not harvested, and for the one before that.
  Series(const CudaDriver& driver, cuda::GraphExec graph_exec, cuda::GraphExec before, cuda::Stream stream,
         std::size_t depth)
      : driver_(driver),
        cuda_(driver.functions()),
        graph_exec_(graph_exec),
        before_(before),
        waits_for_before_(depth == 1),
        stream_(stream),
        slots_(depth + 2),
        begins_(driver, slots_),
        ends_(driver, slots_),
        anchors_(driver, kAnchors) {}

  void reserve(std::size_t expected) { found_.list.reserve(expected); }
  std::size_t launched() const { return found_.list.size(); }
  std::size_t in_flight() const { return launched() - finished_; }
  GraphReplays take() { return std::move(found_); }

  // Ties the GPU's time line to the raw clock.
  void anchor() {
    check(cuda_.stream_synchronize(stream_), "cuStreamSynchronize");
    best_ = {0, 0, INT64_MAX};
    for (std::size_t event = 0; event < kAnchors; ++event) {
      const std::int64_t before_ns = monotonic_raw_ns();
      check(cuda_.event_record(anchors_[event], stream_), "cuEventRecord");
      check(cuda_.event_synchronize(anchors_[event]), "cuEventSynchronize");
      const std::int64_t half_width_ns = (monotonic_raw_ns() - before_ns + 1) / 2;
      if (half_width_ns < best_.half_width_ns) best_ = {event, before_ns + half_width_ns, half_width_ns};
    }
  }

  // Returns the raw time after the launch. `due_ns` is null in a closed loop.
  std::int64_t launch(const std::int64_t* due_ns) {
    const std::size_t slot = launched() % slots_;
    if (before_ != nullptr) launch_before();
    check(cuda_.event_record(begins_[slot], stream_), "cuEventRecord");
    const std::int64_t begin_ns = monotonic_raw_ns();
    check(cuda_.graph_launch(graph_exec_, stream_), "cuGraphLaunch");
    const std::int64_t end_ns = monotonic_raw_ns();
    check(cuda_.event_record(ends_[slot], stream_), "cuEventRecord");
    found_.list.push_back({due_ns != nullptr ? *due_ns : begin_ns, begin_ns, end_ns, 0, 0, 0});
    return end_ns;
  }

  // Waits for the oldest replay in flight. Returns the raw time.
  std::int64_t finish() {
    harvest();
    check(cuda_.event_synchronize(ends_[finished_ % slots_]), "cuEventSynchronize");
    return mark_finished();
  }

  // Looks whether the oldest replay in flight has ended. Returns the raw time.
  std::int64_t look() {
    harvest();
    const int code = cuda_.event_query(ends_[finished_ % slots_]);
    if (code == cuda::kNotReady) return monotonic_raw_ns();
    check(code, "cuEventQuery");
    return mark_finished();
  }

  // Reads the events of the finished replay, if one is left.
  void harvest() {
    if (harvested_ == finished_) return;
    const std::size_t slot = harvested_ % slots_;
    if (harvested_ == 0) {
      found_.gpu_origin_ns = best_.middle_ns + elapsed_ns(anchors_[best_.event], begins_[slot]);
      found_.gpu_origin_uncertainty_ns = best_.half_width_ns;
    } else {
      gpu_ns_ += elapsed_ns(begins_[(harvested_ - 1) % slots_], begins_[slot]);
    }
    GraphReplay& replay = found_.list[harvested_];
    replay.gpu_begin_ns = gpu_ns_;
    replay.gpu_end_ns = gpu_ns_ + elapsed_ns(begins_[slot], ends_[slot]);
    ++harvested_;
  }

  void mark_interrupted() { found_.interrupted = true; }

 private:
  void launch_before() {
    check(cuda_.graph_launch(before_, stream_), "cuGraphLaunch");
    if (waits_for_before_) check(cuda_.stream_synchronize(stream_), "cuStreamSynchronize");
  }

  std::int64_t mark_finished() {
    const std::int64_t now_ns = monotonic_raw_ns();
    found_.list[finished_++].end_ns = now_ns;
    return now_ns;
  }

  std::int64_t elapsed_ns(cuda::Event from, cuda::Event to) const {
    float elapsed_ms = 0;
    check(cuda_.event_elapsed_ms(&elapsed_ms, from, to), "cuEventElapsedTime");
    return std::llround(static_cast<double>(elapsed_ms) * kNanosecondsPerMillisecond);
  }

  void check(int code, const char* call) const {
    if (code != cuda::kSuccess) [[unlikely]] {
      driver_.fail(code, std::string(call) + " at replay " + std::to_string(launched()));
    }
  }

  const CudaDriver& driver_;
  const CudaFunctions& cuda_;
  cuda::GraphExec graph_exec_, before_;
  bool waits_for_before_;
  cuda::Stream stream_;
  std::size_t slots_;
  EventPool begins_, ends_, anchors_;
  Anchor best_{};
  GraphReplays found_;
  std::size_t finished_ = 0, harvested_ = 0;
  std::int64_t gpu_ns_ = 0;  // begin of the last harvested replay
};

}  // namespace

GraphTimer::GraphTimer(std::shared_ptr<CudaDriver> driver, std::uintptr_t graph_exec, std::uintptr_t stream,
                       std::uintptr_t before)
    : driver_(std::move(driver)),
      graph_exec_(reinterpret_cast<cuda::GraphExec>(graph_exec)),
      before_(reinterpret_cast<cuda::GraphExec>(before)),
      stream_(reinterpret_cast<cuda::Stream>(stream)) {
  driver_->check(driver_->functions().stream_context(stream_, &context_), "cuStreamGetCtx");
}

GraphReplays GraphTimer::replay(const Pace& pace, std::size_t depth, const Interrupted& interrupted) const {
  const CurrentContext current(*driver_, context_);
  Series series(*driver_, graph_exec_, before_, stream_, depth);
  series.reserve(pace.expected());
  const IdleAtExit idle(*driver_, stream_);  // before the events go, and whatever happens
  InterruptWatch watch(interrupted);
  series.anchor();
  const std::int64_t start_ns = monotonic_raw_ns();
  std::int64_t now_ns = start_ns;
  while (!watch.pressed(now_ns)) {
    const bool more = pace.wants_more(series.launched(), now_ns - start_ns);
    const bool room = more && series.in_flight() < depth;
    const std::int64_t due_ns = room ? start_ns + pace.due(series.launched()) : 0;
    if (room && due_ns <= now_ns) {
      now_ns = series.launch(pace.open_loop() ? &due_ns : nullptr);
    } else if (series.in_flight() > 0) {
      now_ns = room ? series.look() : series.finish();
    } else if (more) {
      series.harvest();
      if (!wait_for_arrival(due_ns, interrupted)) return series.mark_interrupted(), series.take();
      now_ns = monotonic_raw_ns();
    } else {
      series.harvest();
      return series.take();
    }
  }
  series.mark_interrupted();
  return series.take();
}

}  // namespace pybench
