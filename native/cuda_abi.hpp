// SPDX-License-Identifier: Apache-2.0
// The part of the CUDA driver's binary interface that pybench calls, written out, because the driver is opened at run
// time and no NVIDIA header is needed to build. Source: cuda.h of CUDA 12.4, whose names and numbers are stable across
// releases; the runtime's handles (cudaStream_t, cudaGraphExec_t) are these very pointers.
#pragma once

#include <cstdint>

namespace pybench::cuda {

using Device = int;     // CUdevice, an ordinal among the devices that this process sees
using Context = void*;  // CUcontext and the others are opaque pointers
using Stream = void*;
using Event = void*;
using GraphExec = void*;
using Module = void*;
using Function = void*;
using DevicePointer = unsigned long long;  // CUdeviceptr

struct Uuid {
  unsigned char bytes[16];
};
static_assert(sizeof(Uuid) == 16);

// CUresult; the codes that this project produces or tells apart.
constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;
constexpr int kNotInitialised = 3;
constexpr int kNoDevice = 100;
constexpr int kInvalidContext = 201;
constexpr int kNoBinaryForGpu = 209;
constexpr int kInvalidPtx = 218;
constexpr int kUnsupportedPtxVersion = 222;
constexpr int kInvalidHandle = 400;
constexpr int kNotFound = 500;
constexpr int kNotReady = 600;

constexpr unsigned kEventDefault = 0;       // with timing; waiting for it spins
constexpr unsigned kStreamNonBlocking = 1;  // takes no part in the legacy default stream's ordering
constexpr int kMultiprocessorCount = 16;    // CUdevice_attribute

}  // namespace pybench::cuda
