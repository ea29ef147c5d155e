// SPDX-License-Identifier: Apache-2.0

// Package fault has the one error type that this program shows: what failed, on what, and what to do about it.
package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// Kind says whose fault it is; the consumer chooses its own error by it.
type Kind string

const (
	Usage    Kind = "usage"    // the command line asks for something impossible
	Input    Kind = "input"    // a file of the user's is missing, malformed or not UTF-8
	Consumer Kind = "consumer" // the process that reads the ring is gone or breaks the protocol
	Stopped  Kind = "stopped"  // a signal asked this process to end
	Internal Kind = "internal" // anything else: the installation, the machine, a defect

	Unsupported Kind = "unsupported" // the installed ONNX Runtime lacks what was asked for
	Memory      Kind = "memory"      // memory ran out
	Output      Kind = "output"      // a model gave a number that is none
)

const (
	ExitFailed = 1
	ExitUsage  = 2
)

// Error is one line of text for a person, and a Kind for a program.
type Error struct {
	Kind Kind
	What string
	Hint string
}

// New makes an Error; what is formatted as by fmt.Sprintf and has to name the thing that failed. Without a hint of its
// own, an internal error has the one of all of them.
func New(kind Kind, hint string, what string, arguments ...any) *Error {
	if hint == "" && kind == Internal {
		hint = "run `pybench doctor`; report what it does not explain"
	}
	return &Error{Kind: kind, What: fmt.Sprintf(what, arguments...), Hint: hint}
}

// Unreadable is the error for a file of the user's, which it names once: the system's own text would do so again.
func Unreadable(name string, err error) *Error {
	if system, is := errors.AsType[*fs.PathError](err); is {
		err = system.Err
	}
	return New(Input, "name a file that exists and that you may read", "%s cannot be read: %v", name, err)
}

// Error is always a single line: line breaks inside become spaces, so that a reader of stderr gets one line an error.
func (e *Error) Error() string {
	text := e.What
	if e.Hint != "" {
		text += " (hint: " + e.Hint + ")"
	}
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}

// KindOf is Internal for errors that nobody has classified.
func KindOf(err error) Kind {
	if classified, found := errors.AsType[*Error](err); found {
		return classified.Kind
	}
	return Internal
}

// ExitCode is what the process returns for err.
func ExitCode(err error) int {
	if KindOf(err) == Usage {
		return ExitUsage
	}
	return ExitFailed
}
