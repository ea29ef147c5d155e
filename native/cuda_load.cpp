// SPDX-License-Identifier: Apache-2.0
// Implements cuda_load.hpp.
#include "cuda_load.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "clock.hpp"

namespace pybench {
namespace {

constexpr std::int64_t kKernel_ns = 500'000;   // long against a launch (5 us), short against the millisecond promised
constexpr std::int64_t kShortest_ns = 20'000;  // less is left undone: a launch alone takes a quarter of it
constexpr std::size_t kQueued = 4;             // 2 ms, so that a preempted host leaves no gap
constexpr std::int64_t kSettle_ns = 20'000'000;
constexpr unsigned kThreads = 1024;                 // of a block; one block a multiprocessor
constexpr std::size_t kBufferBytes = 256u << 20;    // five times the second-level cache of an H200
constexpr std::size_t kSmallestBuffer = 16u << 20;  // where another process holds the memory
constexpr unsigned kWordBytes = 16;
constexpr double kNanosecondsPerMillisecond = 1e6;

// What drivers know, the older first: any driver since CUDA 7 has the first; one that drops Maxwell still has the
// second.
constexpr std::array<std::pair<const char*, const char*>, 2> kTargets = {{{"4.3", "sm_50"}, {"6.3", "sm_75"}}};

// Registers: %f0..%f3 sums, %f4 a factor below 1 that keeps them finite, %f8..%f15 what was read.
constexpr char kHead[] = R"(
.address_size 64

.visible .entry pybench_fill(.param .u64 words, .param .u32 mask)
.maxntid 1024, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [words];
  cvta.to.global.u64 %d1, %d1;
  ld.param.u32 %r1, [mask];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mov.u32 %r6, %nctaid.x;
  mul.lo.u32 %r6, %r6, %r3;
FILL:
  setp.gt.u32 %p1, %r5, %r1;
  @%p1 bra FILLED;
  mul.lo.u32 %r7, %r5, 1664525;
  add.u32 %r7, %r7, 1013904223;
  shr.u32 %r7, %r7, 9;
  or.b32 %r7, %r7, 1065353216;
  xor.b32 %r8, %r7, 4793490;
  xor.b32 %r9, %r7, 2796202;
  xor.b32 %r10, %r7, 7456540;
  mul.wide.u32 %d2, %r5, 16;
  add.u64 %d2, %d1, %d2;
  st.global.v4.u32 [%d2], {%r7, %r8, %r9, %r10};
  add.u32 %r5, %r5, %r6;
  bra FILL;
FILLED:
  ret;
}

.visible .entry pybench_load(.param .u64 words, .param .u32 mask, .param .u32 rounds)
.maxntid 1024, 1, 1
{
  .reg .pred %p<2>;
  .reg .b32 %r<12>;
  .reg .f32 %f<16>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [words];
  cvta.to.global.u64 %d1, %d1;
  ld.param.u32 %r1, [mask];
  ld.param.u32 %r2, [rounds];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.u32 %r6, %r3, %r4, %r5;
  mov.u32 %r7, %nctaid.x;
  mul.lo.u32 %r7, %r7, %r4;
  mov.f32 %f0, 0f3F800000;
  mov.f32 %f1, 0f3F800000;
  mov.f32 %f2, 0f3F800000;
  mov.f32 %f3, 0f3F800000;
  mov.f32 %f4, 0f3F7F0000;
LOAD:
)";
constexpr char kTail[] = R"(
  sub.u32 %r2, %r2, 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra LOAD;
  add.f32 %f0, %f0, %f1;
  add.f32 %f2, %f2, %f3;
  add.f32 %f0, %f0, %f2;
  setp.eq.f32 %p1, %f0, 0f7F800000;
  @%p1 st.global.f32 [%d1], %f0;
  ret;
}
)";
constexpr int kReads = 2;    // 16-byte words a round and thread
constexpr int kRepeats = 4;  // of the multiply-adds over the eight numbers read, four sums each: 128

// The body of a round: the reads first, so that their latency hides behind the arithmetic.
std::string round_text() {
  std::string text;
  for (int read = 0; read < kReads; ++read) {
    const std::string first = std::to_string(8 + 4 * read), second = std::to_string(9 + 4 * read);
    const std::string third = std::to_string(10 + 4 * read), fourth = std::to_string(11 + 4 * read);
    text += "  and.b32 %r8, %r6, %r1;\n  mul.wide.u32 %d2, %r8, 16;\n  add.u64 %d2, %d1, %d2;\n";
    text += "  ld.global.v4.f32 {%f" + first + ", %f" + second + ", %f" + third + ", %f" + fourth + "}, [%d2];\n";
    text += "  add.u32 %r6, %r6, %r7;\n";
  }
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    for (int number = 8; number < 8 + 4 * kReads; ++number) {
      for (int sum = 0; sum < 4; ++sum) {
        const std::string name = "%f" + std::to_string(sum);
        text += "  fma.rn.f32 " + name + ", " + name + ", %f4, %f" + std::to_string(number) + ";\n";
      }
    }
  }
  return text;
}

bool is_about_ptx(int code) {
  return code == cuda::kInvalidPtx || code == cuda::kUnsupportedPtxVersion || code == cuda::kNoBinaryForGpu;
}

}  // namespace

std::string CudaLoad::ptx(const std::string& version, const std::string& target) {
  return ".version " + version + "\n.target " + target + kHead + round_text() + kTail;
}

// What the load holds on the device.
struct CudaLoad::Parts {
  Parts(std::shared_ptr<CudaDriver> opened, const CudaDevice& device)
      : driver(std::move(opened)), context(driver, device), multiprocessors(device.multiprocessors) {}
  ~Parts() {
    const CudaFunctions& cuda = driver->functions();
    cuda::Context ours = nullptr;
    const bool pushed = cuda.context_push(context.handle()) == cuda::kSuccess;
    if (stream != nullptr) cuda.stream_destroy(stream);
    if (buffer != 0) cuda.memory_free(buffer);
    if (module != nullptr) cuda.module_unload(module);
    if (pushed) cuda.context_pop(&ours);
  }

  void check(int code, const char* call) const { driver->check(code, call); }
  void load_module() {
    int code = cuda::kInvalidPtx;
    for (const auto& [version, target] : kTargets) {
      code = driver->functions().module_load(&module, ptx(version, target).c_str());
      if (!is_about_ptx(code)) break;
    }
    check(code, "cuModuleLoadData");
    check(driver->functions().module_function(&fill, module, "pybench_fill"), "cuModuleGetFunction");
    check(driver->functions().module_function(&load, module, "pybench_load"), "cuModuleGetFunction");
  }
  // As large as there is room for: a smaller one stays in the cache and draws less power, which is still a load.
  void allocate() {
    std::size_t bytes = kBufferBytes;
    int code = driver->functions().memory_allocate(&buffer, bytes);
    while (code == cuda::kOutOfMemory && bytes > kSmallestBuffer) {
      bytes /= 2;
      code = driver->functions().memory_allocate(&buffer, bytes);
    }
    check(code, "cuMemAlloc");
    mask = static_cast<std::uint32_t>(bytes / kWordBytes - 1);  // a power of two of words
  }
  void launch(cuda::Function function, unsigned blocks, std::uint32_t rounds) {
    void* parameters[] = {&buffer, &mask, &rounds};
    check(driver->functions().launch_kernel(function, blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr),
          "cuLaunchKernel");
  }

  std::shared_ptr<CudaDriver> driver;
  PrimaryContext context;
  int multiprocessors;
  cuda::Stream stream = nullptr;
  cuda::Module module = nullptr;
  cuda::Function fill = nullptr, load = nullptr;
  cuda::DevicePointer buffer = 0;
  std::uint32_t mask = 0;
  double round_ns = 0;  // of one round, as last measured
};

// One run: what is queued, when the queue will be empty, what each kernel took.
class CudaLoad::Running {
 public:
  Running(Parts& parts, unsigned blocks)
      : parts_(parts), driver_(*parts.driver), blocks_(blocks), begins_(driver_, kSlots), ends_(driver_, kSlots) {}

  LoadRun keep_busy(std::int64_t duration_ns, const Interrupted& interrupted) {
    LoadRun run{};
    InterruptWatch watch(interrupted);
    run.begin_ns = monotonic_raw_ns();
    std::int64_t now_ns = run.begin_ns;
    empty_at_ns_ = now_ns;
    while (true) {
      run.interrupted = run.interrupted || watch.pressed(now_ns);
      const std::int64_t left_ns = run.begin_ns + duration_ns - std::max(empty_at_ns_, now_ns);
      const bool more = left_ns >= kShortest_ns && !run.interrupted;
      if (more && launched_ - finished_ < kQueued) {
        launch(std::min(left_ns, kKernel_ns));
      } else if (launched_ > finished_) {
        run.kernels_ns.push_back(finish());
      } else {
        break;
      }
      now_ns = monotonic_raw_ns();
    }
    run.end_ns = now_ns;
    run.busy_ns = std::llround(busy_ns_);
    return run;
  }

 private:
  void launch(std::int64_t wanted_ns) {
    const double rounds = std::clamp(std::round(static_cast<double>(wanted_ns) / parts_.round_ns), 1.0, 1e9);
    rounds_[launched_ % kSlots] = rounds;
    driver_.check(driver_.functions().event_record(begins_[launched_ % kSlots], parts_.stream), "cuEventRecord");
    parts_.launch(parts_.load, blocks_, static_cast<std::uint32_t>(rounds));
    driver_.check(driver_.functions().event_record(ends_[launched_ % kSlots], parts_.stream), "cuEventRecord");
    ++launched_;
    empty_at_ns_ = std::max(empty_at_ns_, monotonic_raw_ns()) + std::llround(rounds * parts_.round_ns);
  }

  // Waits for the oldest kernel and learns from it: clocks move under load. Returns its duration in ns.
  std::int64_t finish() {
    const std::size_t slot = finished_ % kSlots, before = (finished_ + kSlots - 1) % kSlots;
    driver_.check(driver_.functions().event_synchronize(ends_[slot]), "cuEventSynchronize");
    const std::int64_t now_ns = monotonic_raw_ns();
    const double kernel_ns = elapsed_ns(begins_[slot], ends_[slot]);
    busy_ns_ += finished_ == 0 ? kernel_ns : elapsed_ns(ends_[before], ends_[slot]);
    ++finished_;
    const bool whole = rounds_[slot] * parts_.round_ns > kKernel_ns / 2;  // a short one is mostly its launch
    if (whole && kernel_ns > 0) parts_.round_ns = kernel_ns / rounds_[slot];
    double queued_rounds = 0;
    for (std::size_t kernel = finished_; kernel < launched_; ++kernel) queued_rounds += rounds_[kernel % kSlots];
    empty_at_ns_ = now_ns + std::llround(queued_rounds * parts_.round_ns);
    return std::llround(kernel_ns);
  }

  double elapsed_ns(cuda::Event from, cuda::Event to) const {
    float elapsed_ms = 0;
    driver_.check(driver_.functions().event_elapsed_ms(&elapsed_ms, from, to), "cuEventElapsedTime");
    return static_cast<double>(elapsed_ms) * kNanosecondsPerMillisecond;
  }

  static constexpr std::size_t kSlots = kQueued + 1;  // the queue, and the kernel before it

  Parts& parts_;
  const CudaDriver& driver_;
  unsigned blocks_;
  EventPool begins_, ends_;
  std::array<double, kSlots> rounds_{};
  std::size_t launched_ = 0, finished_ = 0;
  double busy_ns_ = 0;
  std::int64_t empty_at_ns_ = 0;  // when what is queued will have run
};

CudaLoad::CudaLoad(std::shared_ptr<CudaDriver> driver, const CudaDevice& device)
    : parts_(std::make_unique<Parts>(driver, device)) {
  Parts& parts = *parts_;
  const CudaFunctions& cuda = driver->functions();
  const CurrentContext current(*driver, parts.context.handle());
  driver->check(cuda.stream_create(&parts.stream, cuda::kStreamNonBlocking), "cuStreamCreate");
  const IdleAtExit idle(*driver, parts.stream);
  parts.load_module();
  parts.allocate();
  const auto blocks = static_cast<unsigned>(parts.multiprocessors);
  parts.launch(parts.fill, blocks, 0);
  const EventPool events(*driver, 2);
  for (std::uint32_t rounds = 16;; rounds *= 4) {
    float elapsed_ms = 0;
    driver->check(cuda.event_record(events[0], parts.stream), "cuEventRecord");
    parts.launch(parts.load, blocks, rounds);
    driver->check(cuda.event_record(events[1], parts.stream), "cuEventRecord");
    driver->check(cuda.event_synchronize(events[1]), "cuEventSynchronize");
    driver->check(cuda.event_elapsed_ms(&elapsed_ms, events[0], events[1]), "cuEventElapsedTime");
    const double elapsed_ns = static_cast<double>(elapsed_ms) * kNanosecondsPerMillisecond;
    parts.round_ns = std::max(elapsed_ns, 1.0) / rounds;
    if (elapsed_ns > kKernel_ns / 4 || rounds > (1u << 24)) break;
  }
  Running(parts, blocks).keep_busy(kSettle_ns, [] { return false; });
}

CudaLoad::~CudaLoad() = default;

LoadRun CudaLoad::run(std::int64_t duration_ns, double level, const Interrupted& interrupted) {
  Parts& parts = *parts_;
  const CurrentContext current(*parts.driver, parts.context.handle());
  const IdleAtExit idle(*parts.driver, parts.stream);
  const double blocks = std::max(1.0, std::round(level * parts.multiprocessors));
  return Running(parts, static_cast<unsigned>(blocks)).keep_busy(duration_ns, interrupted);
}

}  // namespace pybench
