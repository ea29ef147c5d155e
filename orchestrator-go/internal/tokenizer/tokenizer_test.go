// SPDX-License-Identifier: Apache-2.0

package tokenizer_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/tokenizer"
	"pybench/orchestrator/internal/tokenizer/tokenizertest"
)

func TestWhatIsNotTheTokenizerIsRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(text, []byte("not an object"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/nonexistent/object.so": "cannot open the tokenizer",
		text:                     "cannot open the tokenizer",
		"libc.so.6":              "libc.so.6 is not the tokenizer",
	} {
		if _, err := tokenizer.Open(path); fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
}

func TestABadVocabularyIsAnInputFaultThatNamesTheFile(t *testing.T) {
	object, _ := tokenizertest.Paths(t)
	library, err := tokenizer.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"empty": "", "truncated": `{"version": "1.0", "model": {`, "other": `{"a": 1}`} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := library.Load(path); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	const missing = "tokenizer /nonexistent cannot be read: no such file or directory (hint: name a file that exists and that you may read)"
	if _, err := library.Load("/nonexistent"); fault.KindOf(err) != fault.Input || err.Error() != missing {
		t.Errorf("missing: got %v, want %s", err, missing)
	}
}

func TestTwoDocumentsAtOnceGiveTheIDsOfEachAlone(t *testing.T) {
	model := tokenizertest.Model(t)
	first, second := []byte("Hello, wide world: naïve 漢字 1234\n\n"), []byte("  def f(x):\n\treturn x<|endoftext|> tail")
	text := append(slices.Clone(first), second...)
	both, offsets := encode(t, model, 1<<10, text, []uint64{0, uint64(len(first)), uint64(len(text))})
	alone, _ := encode(t, model, 0, first, []uint64{0, uint64(len(first))})
	rest, _ := encode(t, model, 0, second, []uint64{0, uint64(len(second))})
	if !slices.Equal(both, append(slices.Clone(alone), rest...)) || offsets[1] != uint64(len(alone)/model.IDBytes) {
		t.Fatalf("ids differ: %v, then %v and %v", both, alone, rest)
	}
	separator, err := model.FirstID([]string{"<|endoftext|>"})
	if err != nil {
		t.Fatal(err)
	}
	if model.IDBytes != 2 {
		t.Skip("the rest reads ids of two bytes")
	}
	found := false
	for at := 0; at < len(rest); at += 2 {
		found = found || uint32(binary.NativeEndian.Uint16(rest[at:])) == separator
	}
	if !found {
		t.Fatal("the special token in the text did not become its id")
	}
}

func encode(t *testing.T, model *tokenizer.Model, cacheEntries int, text []byte, offsets []uint64) ([]byte, []uint64) {
	t.Helper()
	worker, err := model.NewWorker(cacheEntries)
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	ids, idOffsets := make([]byte, len(text)*model.IDBytes), make([]uint64, len(offsets))
	count, err := worker.Encode(text, offsets, ids, idOffsets)
	if err != nil {
		t.Fatal(err)
	}
	if idOffsets[0] != 0 || idOffsets[len(idOffsets)-1] != uint64(count) {
		t.Fatalf("%d ids, offsets %v", count, idOffsets)
	}
	return ids[:count*model.IDBytes], idOffsets
}

func TestTextThatIsNotUTF8GivesThePositionOfTheFirstBadByte(t *testing.T) {
	model := tokenizertest.Model(t)
	worker, err := model.NewWorker(0)
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	for text, want := range map[string]int64{"ab\xff": 2, "\xc3": 0, "fine \xed\xa0\x80": 5} {
		ids, idOffsets := make([]byte, len(text)*model.IDBytes), make([]uint64, 2)
		_, err := worker.Encode([]byte(text), []uint64{0, uint64(len(text))}, ids, idOffsets)
		if broken, is := errors.AsType[*tokenizer.UTF8Error](err); !is || broken.Position != want {
			t.Errorf("%q: got %v, want position %d", text, err, want)
		}
	}
}

func TestBuffersThatDoNotFitNeverReachTheObject(t *testing.T) {
	model := tokenizertest.Model(t)
	worker, err := model.NewWorker(0)
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	text := []byte("text")
	room := len(text) * model.IDBytes
	for name, call := range map[string]func() (int, error){
		"few ids": func() (int, error) {
			return worker.Encode(text, []uint64{0, 4}, make([]byte, room-1), make([]uint64, 2))
		},
		"few id offsets":  func() (int, error) { return worker.Encode(text, []uint64{0, 4}, make([]byte, room), make([]uint64, 1)) },
		"no document":     func() (int, error) { return worker.Encode(text, []uint64{0}, make([]byte, room), make([]uint64, 1)) },
		"beyond the text": func() (int, error) { return worker.Encode(text, []uint64{0, 5}, make([]byte, room), make([]uint64, 2)) },
		"no text":         func() (int, error) { return worker.Encode(nil, []uint64{0, 0}, make([]byte, room), make([]uint64, 2)) },
	} {
		if _, err := call(); err == nil || !strings.Contains(err.Error(), "buffers do not fit") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAnUnknownTokenAndABadCacheAreRefused(t *testing.T) {
	model := tokenizertest.Model(t)
	if _, err := model.FirstID([]string{"<|no such token|>"}); fault.KindOf(err) != fault.Input {
		t.Errorf("unknown token: got %v", err)
	}
	if _, err := model.NewWorker(3); err == nil {
		t.Error("a cache of 3 entries was taken")
	}
}
