// SPDX-License-Identifier: Apache-2.0
// The few calls of the CUDA driver that the plain loops of these benchmarks make, opened at run time: no toolkit
// needed.
#pragma once

#include <dlfcn.h>

namespace plain {

struct Driver {
  int (*launch)(void*, void*);
  int (*synchronize)(void*);
  int (*stream_context)(void*, void**);
  int (*push)(void*);
  int (*pop)(void**);
  int (*create)(void**, unsigned);
  int (*destroy)(void*);
  int (*record)(void*, void*);
  int (*wait)(void*);
  int (*elapsed_ms)(float*, void*, void*);
};

template <typename Function>
bool find(void* library, const char* name, Function& into) {
  into = reinterpret_cast<Function>(dlsym(library, name));
  return into != nullptr;
}

// Whether the library is there and has all of them. The newer name of cuEventElapsedTime came with CUDA 12.8.
inline bool open(const char* path, Driver& cuda) {
  void* library = dlopen(path, RTLD_NOW);
  return library != nullptr && find(library, "cuGraphLaunch", cuda.launch) &&
         find(library, "cuStreamSynchronize", cuda.synchronize) &&
         find(library, "cuStreamGetCtx", cuda.stream_context) && find(library, "cuCtxPushCurrent_v2", cuda.push) &&
         find(library, "cuCtxPopCurrent_v2", cuda.pop) && find(library, "cuEventCreate", cuda.create) &&
         find(library, "cuEventDestroy_v2", cuda.destroy) && find(library, "cuEventRecord", cuda.record) &&
         find(library, "cuEventSynchronize", cuda.wait) &&
         (find(library, "cuEventElapsedTime_v2", cuda.elapsed_ms) ||
          find(library, "cuEventElapsedTime", cuda.elapsed_ms));
}

}  // namespace plain
