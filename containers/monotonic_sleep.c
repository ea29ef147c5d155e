// SPDX-License-Identifier: Apache-2.0
// Preloaded before libfaketime, which refuses to sleep until a time of the monotonic clock that it does not shift
// (EINVAL): Python's sleep is one, and so is its wait for a program. The builder compiles it (steps.py). Sleeps until a
// time of the other clocks go to the kernel, too, unshifted: no program of a build sleeps so.

#define _GNU_SOURCE
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request, struct timespec *rest) {
    return syscall(SYS_clock_nanosleep, clock, flags, request, rest) == 0 ? 0 : errno;
}
