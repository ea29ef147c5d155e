// SPDX-License-Identifier: Apache-2.0
// The bounds of replay_cost.py: what any program pays that replays a CUDA graph from C, without timing and with it.
//
// Built on the spot with `g++ -O2 -shared -fPIC`; the driver is opened at run time, so no toolkit is needed. Errors end
// the loop and come back as the driver's code, negated.
#include <time.h>

#include <cstdint>

#include "../plain_driver.hpp"

using plain::Driver;

namespace {

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Launches and nothing else; the queue of the driver is the only limit.
int launch_all(const Driver& cuda, void* graph, void* stream, std::int64_t count) {
  int code = 0;
  for (std::int64_t i = 0; i < count && code == 0; ++i) code = cuda.launch(graph, stream);
  return code;
}

// The least that a timing loop of depth 2 calls: two events a launch, and a wait for the launch before the last.
int launch_with_events(const Driver& cuda, void* graph, void* stream, std::int64_t count, void* const* events) {
  int code = 0;
  for (std::int64_t i = 0; i < count && code == 0; ++i) {
    void* const* pair = events + 2 * (i % 2);
    code = cuda.record(pair[0], stream);
    if (code == 0) code = cuda.launch(graph, stream);
    if (code == 0) code = cuda.record(pair[1], stream);
    if (code == 0 && i > 0) code = cuda.wait(events[2 * ((i - 1) % 2) + 1]);
  }
  return code;
}

}  // namespace

// ns from the first launch until the stream is idle; negative: the driver's code, or -1000000 without a driver.
extern "C" std::int64_t plain_loop(const char* library, void* graph, void* stream, std::int64_t count,
                                   int with_events) {
  Driver cuda{};
  void *context = nullptr, *events[4] = {};
  if (!plain::open(library, cuda)) return -1'000'000;
  int code = cuda.stream_context(stream, &context);
  if (code == 0) code = cuda.push(context);
  if (code != 0) return -code;
  for (void*& event : events) code = code != 0 ? code : cuda.create(&event, 0);
  if (code == 0) code = cuda.synchronize(stream);
  const std::int64_t begin_ns = now_ns();
  if (code == 0) {
    code = with_events != 0 ? launch_with_events(cuda, graph, stream, count, events)
                            : launch_all(cuda, graph, stream, count);
  }
  if (code == 0) code = cuda.synchronize(stream);
  const std::int64_t end_ns = now_ns();
  for (void* event : events) {
    if (event != nullptr) cuda.destroy(event);
  }
  cuda.pop(&context);
  return code != 0 ? -code : end_ns - begin_ns;
}
