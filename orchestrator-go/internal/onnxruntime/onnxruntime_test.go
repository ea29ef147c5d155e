// SPDX-License-Identifier: Apache-2.0

package onnxruntime_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/onnxruntime"
	"pybench/orchestrator/internal/onnxruntime/onnxruntimetest"
)

func library(t *testing.T) *onnxruntime.Library {
	t.Helper()
	opened, err := onnxruntime.Open(onnxruntimetest.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func load(t *testing.T, model string) *onnxruntime.Session {
	t.Helper()
	session, err := library(t).Load(onnxruntime.Options{Model: model, Threads: 1, Optimise: true,
		Providers: []onnxruntime.Provider{{Name: onnxruntime.CPU}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

func bind(t *testing.T, session *onnxruntime.Session, rows int64, ids ...int64) onnxruntime.Memory {
	t.Helper()
	memory, err := onnxruntime.NewMemory(8 * len(ids))
	if err != nil {
		t.Fatal(err)
	}
	for at, id := range ids {
		binary.LittleEndian.PutUint64(memory[8*at:], uint64(id))
	}
	if err := session.Bind(0, memory, onnxruntime.KindInt64, []int64{rows, int64(len(ids)) / rows}); err != nil {
		t.Fatal(err)
	}
	return memory
}

func floats(t *testing.T, session *onnxruntime.Session) []float32 {
	t.Helper()
	found, err := session.Output(0)
	if err != nil {
		t.Fatal(err)
	}
	var values []float32
	for at := 0; at < len(found.Bytes); at += 4 {
		values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(found.Bytes[at:])))
	}
	return values
}

// The table of the API was generated from a header of another release: the calls behind it do what their names say.
func TestAModelIsDescribedAndRunsOnWhatItsMemoryHoldsAtThatTime(t *testing.T) {
	session := load(t, onnxruntimetest.Model(t, "Neg"))
	input, output := session.Inputs[0], session.Outputs[0]
	if input.Name != "ids" || input.Kind != onnxruntime.KindInt64 || len(input.Dimensions) != 2 || input.Dimensions[0] != -1 {
		t.Errorf("the input is %+v", input)
	}
	if output.Name != "logits" || output.Kind != onnxruntime.KindFloat32 {
		t.Errorf("the output is %+v", output)
	}
	memory := bind(t, session, 2, 1, 2, 3, 4, 5, 6)
	for _, first := range []float32{-1, -77} {
		binary.LittleEndian.PutUint64(memory, uint64(-first))
		if err := session.Run(); err != nil {
			t.Fatal(err)
		}
		if found := floats(t, session); len(found) != 6 || found[0] != first || found[5] != -6 {
			t.Errorf("got %v", found)
		}
	}
	// Another shape needs no other session.
	bind(t, session, 1, 9)
	if err := session.Run(); err != nil {
		t.Fatal(err)
	}
	if found := floats(t, session); len(found) != 1 || found[0] != -9 {
		t.Errorf("got %v", found)
	}
}

func TestTheLibraryTellsItsVersion(t *testing.T) {
	path := onnxruntimetest.Library(t)
	if found := library(t).Version; !strings.HasSuffix(path, ".so."+found) {
		t.Errorf("%s says that it is %s", path, found)
	}
}

func TestWhatCannotBeLoadedIsTold(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.onnx")
	if err := os.WriteFile(bad, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, name := range map[string]string{bad: "INVALID_PROTOBUF", bad + "x": "NO_SUCHFILE"} {
		_, err := library(t).Load(onnxruntime.Options{Model: path, Threads: 1})
		status, is := errors.AsType[*onnxruntime.StatusError](err)
		if !is || status.Name() != name || status.Message == "" {
			t.Errorf("%s: got %v, want %s", path, err, name)
		}
	}
	for _, provider := range []string{onnxruntime.CUDA, onnxruntime.TensorRT, "CoreMLExecutionProvider"} {
		_, err := library(t).Load(onnxruntime.Options{Model: onnxruntimetest.Model(t), Threads: 1,
			Providers: []onnxruntime.Provider{{Name: provider, Options: [][]string{{"device_id", "0"}}}}})
		if err == nil {
			t.Errorf("%s was started without a GPU", provider)
		}
	}
}

func TestAnObjectThatIsNotONNXRuntimeIsUnsupported(t *testing.T) {
	for _, path := range []string{"/nonexistent/libonnxruntime.so", "libc.so.6"} {
		if _, err := onnxruntime.Open(path); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: got %v", path, err)
		}
	}
}
