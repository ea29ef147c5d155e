// SPDX-License-Identifier: Apache-2.0
// trtexec's way of timing a captured engine, as a plain loop in C++: the judge of pybench's timer (latency_rule.py).
//
// After samples/common/sampleInference.cpp of TensorRT, with --useCudaGraph --useSpinWait --noDataTransfers. Queries
// are launched two deep, an event before and after each launch, the older one waited for before the next launch. The
// loop goes on until `iterations` queries and `duration_ms` of GPU time after `warmup_ms` of it have passed. Warm-up
// queries are dropped. Built on the spot with `g++ -O2 -shared -fPIC`; the driver is opened at run time.

#include <cstdint>

#include "../plain_driver.hpp"

using plain::Driver;

namespace {

constexpr int kDepth = 2;

struct Query {
  void* begin = nullptr;
  void* end = nullptr;
};

}  // namespace

// Writes the compute times in ms of the queries after the warm-up; returns how many, or the driver's code negated.
extern "C" std::int64_t trtexec_loop(const char* library, void* graph, void* stream, std::int64_t iterations,
                                     double warmup_ms, double duration_ms, float* times_ms, std::int64_t capacity) {
  Driver cuda{};
  void *context = nullptr, *start = nullptr;
  Query queries[kDepth];
  if (!plain::open(library, cuda)) return -1'000'000;
  int code = cuda.stream_context(stream, &context);
  if (code == 0) code = cuda.push(context);
  if (code != 0) return -code;
  code = cuda.create(&start, 0);
  for (Query& query : queries) {
    if (code == 0) code = cuda.create(&query.begin, 0);
    if (code == 0) code = cuda.create(&query.end, 0);
  }
  if (code == 0) code = cuda.synchronize(stream);
  if (code == 0) code = cuda.record(start, stream);
  std::int64_t kept = 0, skipped = 0, synced = -1;
  float since_start_ms = 0;
  const auto collect = [&](std::int64_t index) {
    const Query& query = queries[index % kDepth];
    float time_ms = 0;
    code = cuda.wait(query.end);
    if (code == 0) code = cuda.elapsed_ms(&since_start_ms, start, query.begin);
    if (code == 0) code = cuda.elapsed_ms(&time_ms, query.begin, query.end);
    if (code != 0) return;
    if (since_start_ms < warmup_ms) {
      ++skipped;
    } else if (kept < capacity) {
      times_ms[kept++] = time_ms;
    }
    synced = index;
  };
  std::int64_t index = 0;
  for (; code == 0 && (index < iterations + skipped || since_start_ms < duration_ms + warmup_ms); ++index) {
    if (index >= kDepth) collect(index - kDepth);
    const Query& query = queries[index % kDepth];
    if (code == 0) code = cuda.record(query.begin, stream);
    if (code == 0) code = cuda.launch(graph, stream);
    if (code == 0) code = cuda.record(query.end, stream);
  }
  for (std::int64_t left = synced + 1; code == 0 && left < index; ++left) collect(left);
  if (code == 0) code = cuda.synchronize(stream);
  cuda.destroy(start);
  for (const Query& query : queries) {
    cuda.destroy(query.begin);
    cuda.destroy(query.end);
  }
  cuda.pop(&context);
  return code != 0 ? -code : kept;
}
