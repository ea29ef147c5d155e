// SPDX-License-Identifier: Apache-2.0
// What the replayed devices were told to do: power limit and locked clocks. replay_nvml.cpp documents the library.
//
// The state is a log in the file PYBENCH_REPLAY_STATE, one line a successful setting:
//   <uuid> <realtime us> power_limit_mw <limit>
//   <uuid> <realtime us> sm_lock_mhz <minimum> <maximum>      · memory_lock_mhz likewise
//   <uuid> <realtime us> sm_reset                             · memory_reset likewise
// so every process sees what any process has set, and a test sees in which order. Without the variable nothing can be
// set or read (NOT_SUPPORTED). A device that nothing was set on has the limits of an H200: 200 to 700 W, at 700 W.
//   PYBENCH_REPLAY_SETTERS=N           a device takes N settings, then refuses (NO_PERMISSION); 0: the first one too
//   PYBENCH_REPLAY_REFUSED=WHAT        settings whose name begins so are refused likewise, as `sm_reset` or `memory_`
//   PYBENCH_REPLAY_SETTING_DELAY_MS=T  the limit in force and the clocks follow a setting after T ms
//   PYBENCH_REPLAY_POWER_STEP_W=S      limits are kept rounded down to multiples of S watts
//   PYBENCH_REPLAY_SM_CEILING_MHZ=F    the SM clock stays at or below F, as at the power cap, whatever it is locked to
#pragma once

#include "nvml_abi.hpp"

// The clock that shows: what was recorded (in `mhz`, where `recorded_code` is success) with what is locked. Returns
// NVML's code.
int replayed_clock_mhz(pybench::nvml::Device device, int clock, int recorded_code, unsigned* mhz);
