// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
	giant := write(t, filepath.Join(directory, "giant"), nil)
	if err := os.Truncate(giant, 1<<32); err != nil { // a hole: it takes no room
		t.Fatal(err)
	}
	for want, path := range map[string]string{
		"has 4294967296 bytes":      manifest(t, giant),
		"no such file or directory": manifest(t, good, filepath.Join(directory, "gone")),
		"not a regular file":        manifest(t, directory),
		"entry 2 is empty":          manifest(t, good, "", good),
		"entry 1 is empty":          manifest(t),
		"all of its files are":      manifest(t, empty),
		"nowhere cannot be read":    filepath.Join(directory, "nowhere"),
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

func TestAFileWithoutPermissionIsNamed(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "secret"), []byte("text"))
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	documents, err := corpus.Open(manifest(t, path))
	if err != nil {
		t.Fatal(err)
	}
	// Root reads everything; as nobody, for files alone and in this thread alone, it does not. The thread ends with the
	// goroutine that has locked it.
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		_ = unix.Setfsuid(65534)
		_, _, err := documents.Read(documents.Chunks[0], nil, nil)
		failed <- err
	}()
	if err := <-failed; fault.KindOf(err) != fault.Input || err.Error() != path+" cannot be read: permission denied" {
		t.Fatalf("got %v", err)
	}
}
