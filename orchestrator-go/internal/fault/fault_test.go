// SPDX-License-Identifier: Apache-2.0

package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"pybench/orchestrator/internal/fault"
)

func TestAnErrorIsOneLineWhateverItIsMadeOf(t *testing.T) {
	for want, err := range map[string]*fault.Error{
		"x has 2 of 3":                  fault.New(fault.Input, "", "x has %d of %d", 2, 3),
		"x is bad (hint: mend it)":      fault.New(fault.Input, "mend it", "x is bad"),
		"a name in two lines is bad":    fault.New(fault.Input, "", "a name\nin two\r\nlines is bad"),
		"x is bad (hint: one then two)": fault.New(fault.Input, "one\nthen two", "x is bad"),
		"100% of x (hint: 50% will do)": fault.New(fault.Input, "50% will do", "100%% of x"),
		"x broke (hint: run `pybench doctor`; report what it does not explain)": fault.New(fault.Internal, "", "x broke"),
	} {
		if got := err.Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestTheKindOfAnErrorIsFoundThroughWhatIsWrappedAroundIt(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Usage, fault.Input, fault.Consumer, fault.Stopped, fault.Internal} {
		want := fault.ExitFailed
		if kind == fault.Usage {
			want = fault.ExitUsage
		}
		bare := fault.New(kind, "", "it failed")
		for _, err := range []error{bare, fmt.Errorf("while reading: %w", errors.Join(errors.New("another"), bare))} {
			if got := fault.KindOf(err); got != kind {
				t.Errorf("%v is %s, want %s", err, got, kind)
			}
			if got := fault.ExitCode(err); got != want {
				t.Errorf("%v: exit code %d, want %d", err, got, want)
			}
		}
	}
	if got := fault.KindOf(os.ErrClosed); got != fault.Internal {
		t.Errorf("an error that nobody has classified is %s", got)
	}
}

func TestAnUnreadableFileIsNamedOnce(t *testing.T) {
	system := &fs.PathError{Op: "open", Path: "/some/file", Err: syscall.EACCES}
	for _, err := range []error{system, fmt.Errorf("opening: %w", system), syscall.EACCES} {
		unreadable := fault.Unreadable("/some/file", err)
		if got, want := unreadable.Error(), "/some/file cannot be read: permission denied (hint: name a file that exists and that you may read)"; got != want || unreadable.Kind != fault.Input {
			t.Errorf("got %q of kind %s, want %q", got, unreadable.Kind, want)
		}
	}
}
