// SPDX-License-Identifier: Apache-2.0

// Package onnxruntime is the whole boundary to ONNX Runtime's C API: it opens the shared library of the installed wheel,
// converts, calls, and makes errors of statuses. Of the API it knows what a forward pass needs, and nothing else.
//
// dlopen through purego rather than linking through cgo: the very file of the installed wheel is opened, and the build
// needs no C compiler. The wheel has no header, so the places of functions are a generated table (table.py). A call
// costs about 0.2 us more than from C, which is why the timed loop makes as few as it can.
package onnxruntime

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"pybench/orchestrator/internal/fault"
)

const pointerBytes = 8

const hint = "install onnxruntime from its wheel, whose folder capi holds the library"

// Library is an opened ONNX Runtime of at least apiVersion.
type Library struct {
	Version string // as it says itself, "1.31.1"

	table uintptr // OrtApi, a struct of function pointers
}

// Open loads the library by its path.
func Open(path string) (*Library, error) {
	object, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fault.New(fault.Unsupported, hint, "cannot open ONNX Runtime: %v", err)
	}
	entry, err := purego.Dlsym(object, "OrtGetApiBase")
	if err != nil {
		return nil, fault.New(fault.Unsupported, hint, "%s is not ONNX Runtime: %v", path, err)
	}
	// OrtApiBase is two function pointers: GetApi(version), and GetVersionString().
	base, _, _ := purego.SyscallN(entry)
	version, _, _ := purego.SyscallN(wordAt(base, 1))
	table, _, _ := purego.SyscallN(wordAt(base, 0), apiVersion)
	library := &Library{Version: textAt(version), table: table}
	if table == 0 {
		return nil, fault.New(fault.Unsupported, "install onnxruntime 1.24 or later",
			"%s is ONNX Runtime %s, which lacks version %d of the C API", path, library.Version, apiVersion)
	}
	return library, nil
}

// function is the address of one function of the API.
func (l *Library) function(place int) uintptr { return wordAt(l.table, place) }

// call calls a function that returns a status. what: for the error.
func (l *Library) call(what string, place int, arguments ...uintptr) error {
	status, _, _ := purego.SyscallN(l.function(place), arguments...)
	return l.failure(what, status)
}

// release calls a function that returns nothing. Zero is released by doing nothing.
func (l *Library) release(place int, handle uintptr) {
	if handle != 0 {
		purego.SyscallN(l.function(place), handle)
	}
}

// failure is what a status says, nil for a good one.
func (l *Library) failure(what string, status uintptr) error {
	if status == 0 {
		return nil
	}
	code, _, _ := purego.SyscallN(l.function(atGetErrorCode), status)
	message, _, _ := purego.SyscallN(l.function(atGetErrorMessage), status)
	found := &StatusError{What: what, Code: int32(code), Message: textAt(message)}
	l.release(atReleaseStatus, status)
	return found
}

// StatusError is a status of ONNX Runtime that is not good. Code is OrtErrorCode.
type StatusError struct {
	What    string
	Code    int32
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s failed: %s (%s)", e.What, e.Message, e.Name())
}

// Name is that of the code in the C API.
func (e *StatusError) Name() string {
	names := []string{"OK", "FAIL", "INVALID_ARGUMENT", "NO_SUCHFILE", "NO_MODEL", "ENGINE_ERROR", "RUNTIME_EXCEPTION",
		"INVALID_PROTOBUF", "MODEL_LOADED", "NOT_IMPLEMENTED", "INVALID_GRAPH", "EP_FAIL"}
	if int(e.Code) < len(names) {
		return names[e.Code]
	}
	return fmt.Sprintf("status %d", e.Code)
}

// pointerTo turns an address that C gave into a pointer. Its memory is C's: the collector neither moves nor frees it.
func pointerTo(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}

// wordAt is one word of a struct of words.
func wordAt(address uintptr, index int) uintptr {
	return *(*uintptr)(unsafe.Add(pointerTo(address), index*pointerBytes))
}

// textAt copies a C string; "" for none.
func textAt(address uintptr) string {
	if address == 0 {
		return ""
	}
	start := (*byte)(pointerTo(address))
	length := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(start), length)) != 0 {
		length++
	}
	return string(unsafe.Slice(start, length))
}
