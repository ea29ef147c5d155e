// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/onnxruntime"
)

const nsPerS = 1_000_000_000

// Clock reads CLOCK_MONOTONIC_RAW, the one clock of every time in pybench. It belongs to one goroutine.
//
// Through libc, whose clock needs no call of the kernel: measured 185 ns, where the call itself took 460 in a virtual machine.
// Go's own clock is another one.
type Clock struct {
	function  uintptr
	now       *unix.Timespec
	arguments [2]uintptr // made once: a reading allocates nothing
}

// NewClock finds the function in the libc that purego has loaded.
func NewClock() (*Clock, error) {
	library, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	if err == nil {
		var function uintptr
		if function, err = purego.Dlsym(library, "clock_gettime"); err == nil {
			memory, err := onnxruntime.NewMemory(int(unsafe.Sizeof(unix.Timespec{})))
			if err != nil {
				return nil, err
			}
			now := unsafe.Pointer(unsafe.SliceData([]byte(memory)))
			return &Clock{function, (*unix.Timespec)(now), [2]uintptr{unix.CLOCK_MONOTONIC_RAW, uintptr(now)}}, nil
		}
	}
	return nil, fault.New(fault.Internal, "", "no clock_gettime in libc: %v", err)
}

// Now is ns of the clock.
func (c *Clock) Now() int64 {
	purego.SyscallN(c.function, c.arguments[:]...)
	return c.now.Nano()
}

// SleepUntil blocks, never spins. The kernel sleeps on another clock, so what is left is slept again.
func (c *Clock) SleepUntil(due int64) {
	for left := due - c.Now(); left > 0; left = due - c.Now() {
		pause := unix.NsecToTimespec(left)
		// An interruption by a signal ends a sleep early: the loop goes on.
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &pause, nil)
	}
}
