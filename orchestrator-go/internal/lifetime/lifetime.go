// SPDX-License-Identifier: Apache-2.0

// Package lifetime ties this process to the one that reads the ring: it never outlives it, and SIGTERM ends it.
package lifetime

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"pybench/orchestrator/internal/fault"
)

// BindToParent asks the kernel to kill this process when its parent dies. A parent that died before the request took
// effect has left this process to another one, so the parent is compared afterwards. Its pid is given: in a container
// the rightful parent may well be 1. The end of file on the free pipe does the same work a second time. It fails when a
// fork of the consumer still holds the pipe, and this one when the consumer is not the parent.
func BindToParent(consumerPID int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fault.New(fault.Internal, "", "prctl(PR_SET_PDEATHSIG): %v", err)
	}
	if parent := os.Getppid(); parent != consumerPID {
		return fault.New(fault.Consumer, "start it as a child of the process that reads the ring",
			"the parent is process %d, not the consumer %d", parent, consumerPID)
	}
	return nil
}

// Context is cancelled with a cause by SIGTERM, or by the returned function. SIGINT is ignored: a terminal sends it to
// the whole process group, and what a Ctrl-C means is the consumer's decision.
func Context() (context.Context, context.CancelCauseFunc) {
	signal.Ignore(unix.SIGINT)
	ctx, cancel := context.WithCancelCause(context.Background())
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, unix.SIGTERM)
	go func() {
		<-terminated
		cancel(fault.New(fault.Stopped, "", "stopped by SIGTERM"))
	}()
	return ctx, cancel
}

// OnRequest calls answer for each SIGUSR1, which would otherwise end the process, until the returned function is called.
func OnRequest(answer func()) (stop func()) {
	requests := make(chan os.Signal, 1)
	signal.Notify(requests, unix.SIGUSR1)
	go func() {
		for range requests {
			answer()
		}
	}()
	return func() {
		signal.Stop(requests)
		close(requests)
	}
}
