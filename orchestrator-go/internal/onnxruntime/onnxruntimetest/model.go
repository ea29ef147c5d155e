// SPDX-License-Identifier: Apache-2.0

// Package onnxruntimetest finds the real library for tests, and writes small models; there is no stand-in for either.
package onnxruntimetest

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

const libraryVariable = "PYBENCH_ONNXRUNTIME_LIBRARY"

// Library skips the test when the environment names none; one that is named and broken is a failure.
func Library(t *testing.T) string {
	t.Helper()
	path := os.Getenv(libraryVariable)
	if path == "" {
		t.Skipf("NOT TESTED against the real ONNX Runtime: set %s", libraryVariable)
	}
	return path
}

// Element types of a tensor in ONNX's own numbering, which is the C API's.
const (
	float32Kind = 1
	int64Kind   = 7
)

// Model writes a file of the input "ids", int64 [N, T], cast to FP32, then one operator after another; the output is
// "logits". Fields are numbered as in onnx.proto.
func Model(t *testing.T, operators ...string) string {
	t.Helper()
	graph := join(node("Cast", "ids", "value0", attribute("to", float32Kind)))
	last := "value0"
	for _, operator := range operators {
		next := last + "+"
		graph = join(graph, node(operator, last, next, nil))
		last = next
	}
	graph = join(graph, node("Identity", last, "logits", nil), text(2, "graph"),
		message(11, declared("ids", int64Kind)), message(12, declared("logits", float32Kind)))
	model := join(number(1, 10), message(7, graph), message(8, number(2, 20))) // ir_version, graph, opset 20
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, model, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func node(operator, input, output string, attribute []byte) []byte {
	return message(1, join(text(1, input), text(2, output), text(4, operator), attribute))
}

func attribute(name string, value uint64) []byte {
	return message(5, join(text(1, name), number(3, value), number(20, 2))) // an integer
}

func declared(name string, kind uint64) []byte {
	free := func(name string) []byte { return message(1, text(2, name)) }
	tensor := join(number(1, kind), message(2, join(free("N"), free("T"))))
	return join(text(1, name), message(2, message(1, tensor)))
}

func number(field, value uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, field<<3), value)
}

func message(field uint64, content []byte) []byte {
	header := binary.AppendUvarint(binary.AppendUvarint(nil, field<<3|2), uint64(len(content)))
	return append(header, content...)
}

func text(field uint64, content string) []byte { return message(field, []byte(content)) }

func join(parts ...[]byte) []byte {
	var whole []byte
	for _, part := range parts {
		whole = append(whole, part...)
	}
	return whole
}
