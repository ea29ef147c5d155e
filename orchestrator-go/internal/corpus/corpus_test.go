// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
)

func write(t *testing.T, path string, text []byte) string {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func manifest(t *testing.T, paths ...string) string {
	t.Helper()
	return write(t, filepath.Join(t.TempDir(), "manifest"), []byte(strings.Join(paths, "\x00")))
}

func TestChunksHoldEveryDocumentOnceInOrderAndEmptyFilesAreSkipped(t *testing.T) {
	directory := t.TempDir()
	var paths []string
	var want []byte
	empty := 0
	for number := range 200 {
		text := bytes.Repeat([]byte{byte('a' + number%26)}, number*number%50_000)
		paths = append(paths, write(t, filepath.Join(directory, fmt.Sprintf("a line\nbreak %03d", number)), text))
		want = append(want, text...)
		if len(text) == 0 {
			empty++
		}
	}
	documents, err := corpus.Open(manifest(t, paths...))
	if err != nil {
		t.Fatal(err)
	}
	if documents.EmptyFiles != empty || len(documents.Documents) != 200-empty {
		t.Fatalf("%d documents and %d empty files, want %d empty", len(documents.Documents), documents.EmptyFiles, empty)
	}
	if len(documents.Chunks) < 2 {
		t.Fatalf("%d chunks, the test needs several", len(documents.Chunks))
	}
	var got, text []byte
	var offsets []uint64
	next := 0
	for _, chunk := range documents.Chunks {
		if chunk.First != next {
			t.Fatalf("a chunk begins at document %d, want %d", chunk.First, next)
		}
		next = chunk.End
		if text, offsets, err = documents.Read(chunk, text, offsets); err != nil {
			t.Fatal(err)
		}
		if len(offsets) != chunk.End-chunk.First+1 || offsets[len(offsets)-1] != uint64(len(text)) {
			t.Fatalf("%d offsets for %d documents", len(offsets), chunk.End-chunk.First)
		}
		got = append(got, text...)
	}
	if next != len(documents.Documents) || !bytes.Equal(got, want) {
		t.Fatal("the chunks are not the corpus")
	}
}

func TestAPositionInAChunkIsFoundInItsDocument(t *testing.T) {
	directory := t.TempDir()
	first := write(t, filepath.Join(directory, "first"), []byte("abc"))
	second := write(t, filepath.Join(directory, "second"), []byte("de"))
	documents, err := corpus.Open(manifest(t, first, second))
	if err != nil {
		t.Fatal(err)
	}
	for position, want := range []string{first + " 0", first + " 1", first + " 2", second + " 0", second + " 1", second + " 2"} {
		document, within := documents.Locate(documents.Chunks[0], int64(position))
		if got := fmt.Sprint(document.Path, " ", within); got != want {
			t.Errorf("position %d is at %s, want %s", position, got, want)
		}
	}
}

func TestABadManifestNamesWhatIsWrong(t *testing.T) {
	directory := t.TempDir()
	good := write(t, filepath.Join(directory, "good"), []byte("text"))
	empty := write(t, filepath.Join(directory, "empty"), nil)
	for want, path := range map[string]string{
		"no such file or directory": manifest(t, good, filepath.Join(directory, "gone")),
		"not a regular file":        manifest(t, directory),
		"entry 2 is empty":          manifest(t, good, "", good),
		"entry 1 is empty":          manifest(t),
		"all of its files are":      manifest(t, empty),
		"the manifest":              filepath.Join(directory, "nowhere"),
	} {
		if _, err := corpus.Open(path); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an input fault with %q", err, want)
		}
	}
}

func TestAFileThatChangesAfterItWasListedIsRefused(t *testing.T) {
	for _, text := range []string{"longer than before", "ab", ""} {
		path := write(t, filepath.Join(t.TempDir(), "file"), []byte("four"))
		documents, err := corpus.Open(manifest(t, path))
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, []byte(text))
		if _, _, err = documents.Read(documents.Chunks[0], nil, nil); err == nil || !strings.Contains(err.Error(), "changed its size of 4 bytes") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
