// SPDX-License-Identifier: Apache-2.0
// A load that pybench makes itself: a kernel that keeps every multiprocessor and the memory busy for a wanted time.
//
// It is PTX text, compiled by the driver, so that no toolkit is needed and any GPU since Maxwell runs it. Each thread
// reads 32 bytes from a buffer larger than the second-level cache and makes 128 fused multiply-adds. So both the
// arithmetic and the memory draw power; what they compute stays finite and means nothing. Kernels of half a millisecond
// run back to back with at most four queued, and the last is cut to fit. It sets nothing on the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda_driver.hpp"
#include "pace.hpp"

namespace pybench {

// One run. The GPU worked for `busy_ns` between the begin of the first kernel and the end of the last (its own events).
// Those lie somewhere between `begin_ns` (before the first launch) and `end_ns` (when the host saw the stream idle),
// both of the raw clock. What is missing from `busy_ns` to the sum of the kernels is gaps between them.
struct LoadRun {
  std::int64_t begin_ns;
  std::int64_t end_ns;
  std::int64_t busy_ns;
  std::vector<std::int64_t> kernels_ns;
  bool interrupted;
};

class CudaLoad {
 public:
  // Takes the device's primary context, a stream, a buffer of up to 256 MiB, and calibrates for some tens of
  // milliseconds under load. Throws CudaError.
  CudaLoad(std::shared_ptr<CudaDriver> driver, const CudaDevice& device);
  ~CudaLoad();
  CudaLoad(const CudaLoad&) = delete;
  CudaLoad& operator=(const CudaLoad&) = delete;

  // Keeps `level` (0 < level <= 1) of the multiprocessors busy for `duration_ns`.
  LoadRun run(std::int64_t duration_ns, double level, const Interrupted& interrupted);

  // The kernel's text for one version of PTX and one target architecture, as in ("4.3", "sm_50").
  static std::string ptx(const std::string& version, const std::string& target);

 private:
  struct Parts;
  class Running;
  std::unique_ptr<Parts> parts_;
};

}  // namespace pybench
