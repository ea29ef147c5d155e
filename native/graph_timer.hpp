// SPDX-License-Identifier: Apache-2.0
// Replays a CUDA graph that somebody else made, and times each replay on the GPU and on the host.
//
// The graph and the stream come as raw handles (torch's `CUDAGraph.raw_cuda_graph_exec()` and `Stream.cuda_stream`,
// int() of cuda-python's); the caller keeps them, and every buffer that the graph uses, alive. Definitions are
// trtexec's (samples/common/sampleInference.cpp). There is an event before and one after each launch on the same
// stream, and compute time = end minus begin. Depth 2 enqueues replay i + 1 before it waits for replay i, so that the
// GPU never waits for the host. Enqueue time is what cuGraphLaunch takes on the host. Waiting spins, as trtexec's does
// with --useSpinWait.
//
// Precision: cuEventElapsedTime gives a float of milliseconds, which steps by 1 ns at 16 ms and by 2 us at 16 s. So no
// event is measured against a far one. The begin of replay i is measured against the begin of replay i - 1, its end
// against its own begin, and the hops are summed. The driver's time stamps are whole ns. So rounding a hop to whole ns
// undoes the float's rounding below 8 ms; a longer hop is off by at most 6e-8 of itself. What the stamps themselves
// quantise (0.5 us by the documentation) telescopes away in the sum, and stays below 1 us in one duration.
//
// It captures nothing, copies nothing and knows no framework.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cuda_driver.hpp"
#include "pace.hpp"

namespace pybench {

// One replay. Host times are of the raw clock; GPU times count from the begin of the first replay.
struct GraphReplay {
  std::int64_t due_ns;            // in a closed loop, when its launch began
  std::int64_t enqueue_begin_ns;  // around cuGraphLaunch
  std::int64_t enqueue_end_ns;
  std::int64_t end_ns;  // when the host saw it finished
  std::int64_t gpu_begin_ns;
  std::int64_t gpu_end_ns;
};

// `gpu_origin_ns`: the raw time of the GPU's 0, found by an event on the idle stream between two clock reads. It is
// good to +- `gpu_origin_uncertainty_ns` at the start of the series; the two clocks may drift apart after it.
struct GraphReplays {
  std::vector<GraphReplay> list;
  std::int64_t gpu_origin_ns = 0;
  std::int64_t gpu_origin_uncertainty_ns = 0;
  bool interrupted = false;
};

class GraphTimer {
 public:
  // Throws CudaError where `stream` is no stream of a context. Stream 0 has no context of its own and is refused.
  // `before`: a graph that is launched ahead of each replay and is in none of its times; 0: none. With a depth of 1 it
  // has ended when the replay's launch begins, so that the host's times are without it, too.
  GraphTimer(std::shared_ptr<CudaDriver> driver, std::uintptr_t graph_exec, std::uintptr_t stream,
             std::uintptr_t before = 0);

  // Replays at the given pace with at most `depth` replays in flight (open loop: arrivals beyond wait on the host, and
  // their waiting counts). Returns what was finished; nothing is in flight afterwards. Throws CudaError.
  GraphReplays replay(const Pace& pace, std::size_t depth, const Interrupted& interrupted) const;

 private:
  std::shared_ptr<CudaDriver> driver_;
  cuda::GraphExec graph_exec_, before_;
  cuda::Stream stream_;
  cuda::Context context_ = nullptr;
};

}  // namespace pybench
