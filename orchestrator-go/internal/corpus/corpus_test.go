// SPDX-License-Identifier: Apache-2.0

package corpus_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
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

// pack compresses as the name asks.
func pack(t *testing.T, name string, text []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	var into io.WriteCloser
	switch filepath.Ext(name) {
	case ".gz":
		into = gzip.NewWriter(&packed)
	case ".zst":
		into, _ = zstd.NewWriter(&packed)
	default:
		return text
	}
	if _, err := into.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func named(paths ...string) corpus.Selection {
	return corpus.Selection{Inputs: paths, Field: "text", World: 1}
}

// read goes through a corpus as one worker would: the documents with text, and the first error.
func read(t *testing.T, selection corpus.Selection) (documents []string, err error) {
	t.Helper()
	var counters corpus.Counters
	opened, err := corpus.Open(selection, &counters)
	if err != nil {
		return nil, err
	}
	reader := opened.Reader()
	defer reader.Close()
	var chunk corpus.Chunk
	for {
		more, err := reader.Fill(&chunk)
		if err == nil && more {
			err = chunk.Load()
		}
		if err != nil || !more {
			if counted := counters.Documents.Load(); err == nil && counted != uint64(len(documents)) {
				t.Fatalf("%d documents counted, %d read", counted, len(documents))
			}
			return documents, err
		}
		for at := range chunk.Documents() {
			documents = append(documents, string(chunk.Text[chunk.Offsets[at]:chunk.Offsets[at+1]]))
		}
	}
}

func mustRead(t *testing.T, selection corpus.Selection) []string {
	t.Helper()
	documents, err := read(t, selection)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// texts are several chunks of documents, some empty, with everything that JSON has to escape.
func texts() []string {
	var all []string
	for number := range 300 {
		all = append(all, strings.Repeat(fmt.Sprintf("%d \"naïve\" \\ 漢字 🎈\tline\n", number), number%97))
	}
	return all
}

func jsonLines(t *testing.T, documents []string) []byte {
	t.Helper()
	var lines bytes.Buffer
	for number, text := range documents {
		line, err := json.Marshal(map[string]any{"id": number, "text": text, "meta": map[string]string{"text": "another"}})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, "\n\n"[:1+number%2]...))
	}
	return lines.Bytes()
}

func withText(documents []string) []string {
	return slices.DeleteFunc(slices.Clone(documents), func(text string) bool { return text == "" })
}

func TestEveryFormHoldsTheSameDocumentsInTheSameOrder(t *testing.T) {
	documents := texts()
	for _, suffix := range []string{"", ".gz", ".zst"} {
		folder := t.TempDir()
		for number, text := range documents {
			name := fmt.Sprintf("%04d a line\nbreak.txt%s", number, suffix)
			write(t, filepath.Join(folder, name), pack(t, name, []byte(text)))
		}
		if got := mustRead(t, named(folder)); !slices.Equal(got, withText(documents)) {
			t.Errorf("files%s: %d documents differ", suffix, len(got))
		}
		lines := write(t, filepath.Join(t.TempDir(), "x.jsonl"+suffix), pack(t, suffix, jsonLines(t, documents)))
		if got := mustRead(t, named(lines)); !slices.Equal(got, withText(documents)) {
			t.Errorf("lines%s: %d documents differ", suffix, len(got))
		}
		upper := write(t, filepath.Join(t.TempDir(), "X.JSONL"+strings.ToUpper(suffix)), pack(t, suffix, jsonLines(t, documents)))
		if got := mustRead(t, named(upper)); !slices.Equal(got, withText(documents)) {
			t.Errorf("lines%s in capitals: %d documents differ", suffix, len(got))
		}
		stdin := named(corpus.Stdin)
		stdin.StdinAs, stdin.Input = "x.ndjson"+suffix, bytes.NewReader(pack(t, suffix, jsonLines(t, documents)))
		if got := mustRead(t, stdin); !slices.Equal(got, withText(documents)) {
			t.Errorf("standard input%s: %d documents differ", suffix, len(got))
		}
	}
}

func TestAFileOfSeveralCompressedPartsIsReadWhole(t *testing.T) {
	for _, suffix := range []string{".gz", ".zst"} {
		parts := append(pack(t, suffix, []byte("first, ")), pack(t, suffix, []byte("second"))...)
		path := write(t, filepath.Join(t.TempDir(), "x.txt"+suffix), parts)
		if got := mustRead(t, named(path)); !slices.Equal(got, []string{"first, second"}) {
			t.Errorf("%s: got %q", suffix, got)
		}
	}
}

func TestOnlyTheLastEndingOfANameIsOpened(t *testing.T) {
	for range 20 { // whatever order a map would have
		for _, name := range []string{"x.gz.zst", "x.zst.gz"} {
			path := write(t, filepath.Join(t.TempDir(), name), pack(t, name, []byte("text")))
			if got := mustRead(t, named(path)); !slices.Equal(got, []string{"text"}) {
				t.Fatalf("%s: got %q", name, got)
			}
		}
	}
}

func TestRanksShareTheDocumentsByNumberWhateverTheirForm(t *testing.T) {
	documents := texts()
	folder := t.TempDir()
	for number, text := range documents[:100] {
		write(t, filepath.Join(folder, fmt.Sprintf("%04d.txt", number)), []byte(text+"x")) // files of no bytes are not numbered
	}
	write(t, filepath.Join(folder, "1.jsonl"), jsonLines(t, documents[100:200]))
	write(t, filepath.Join(folder, "2.jsonl.gz"), pack(t, ".gz", jsonLines(t, documents[200:])))
	all := slices.Clone(documents)
	for number := range 100 {
		all[number] += "x"
	}
	for _, first := range []int{0, 7, 150, 250} {
		wanted := all
		if first > 0 {
			wanted = all[:first]
		}
		const world = 3
		for rank := range world {
			selection := named(folder)
			selection.Rank, selection.World, selection.Documents = rank, world, first
			var want []string
			for number := rank; number < len(wanted); number += world {
				want = append(want, wanted[number])
			}
			if got := mustRead(t, selection); !slices.Equal(got, withText(want)) {
				t.Errorf("rank %d of the first %d: %d documents, want %d", rank, first, len(got), len(withText(want)))
			}
		}
	}
}

func TestAFolderIsWalkedInTheOrderOfRelativePathsWithoutHiddenNamesAndLinksToFolders(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b", "a/z", "c/a/x", "c/b", "c.txt", "B", ".hidden", ".git/x"} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, path, []byte(name))
	}
	if err := os.Symlink(folder, filepath.Join(folder, "loop")); err != nil {
		t.Fatal(err)
	}
	if got, want := mustRead(t, named(folder)), []string{"B", "a/z", "b", "c.txt", "c/a/x", "c/b"}; !reflect.DeepEqual(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestABadInputNamesThePlaceAndWhatIsWrong(t *testing.T) {
	folder := t.TempDir()
	good := write(t, filepath.Join(folder, "good"), []byte("text"))
	giant := write(t, filepath.Join(folder, "giant"), nil)
	if err := os.Truncate(giant, 1<<32); err != nil { // a hole: it takes no room
		t.Fatal(err)
	}
	file := func(name, text string) corpus.Selection {
		return named(write(t, filepath.Join(t.TempDir(), name), []byte(text)))
	}
	manifested := func(paths ...string) corpus.Selection {
		return corpus.Selection{Manifest: manifest(t, paths...), Field: "text", World: 1}
	}
	half := string(pack(t, ".gz", jsonLines(t, texts())))
	for want, selection := range map[string]corpus.Selection{
		"giant has more bytes":                               manifested(giant),
		"gone cannot be read: no such file or directory":     manifested(good, filepath.Join(folder, "gone")),
		"is not a regular file":                              manifested(folder),
		"entry 2 is empty":                                   manifested(good, "", good),
		"entry 1 is empty":                                   manifested(),
		"the corpus is empty":                                manifested(write(t, filepath.Join(folder, "empty"), nil)),
		"nowhere cannot be read":                             {Manifest: filepath.Join(folder, "nowhere"), World: 1},
		"away cannot be read":                                named(filepath.Join(folder, "away")),
		"x.gz is not a complete gzip file: gzip: invalid":    file("x.gz", "plain text"),
		"y.jsonl.gz is not a complete gzip file: it is inc":  file("y.jsonl.gz", half[:len(half)/2]),
		"z.gz is not a complete gzip file: it is incomplete": file("z.gz", half[:5]),
		"x.zst is not a complete zstd file: invalid input":   file("x.zst", "plain text"),
		"a.jsonl line 2 is not a JSON object":                file("a.jsonl", `{"text": "x"}`+"\n[1]\n"),
		"b.jsonl line 1 is not a JSON object":                file("b.jsonl", "words\n"),
		"n.jsonl line 1 is not a JSON object":                file("n.jsonl", "null\n"),
		"c.jsonl line 3 has no field text (it has: a, b)":    file("c.jsonl", "\n\n"+`{"b": 1, "a": 2}`),
		"d.jsonl line 1: field text is not a string":         file("d.jsonl", `{"text": ["x"]}`),
		"e.jsonl line 1: field text contains half a":         file("e.jsonl", `{"text": "x \\\ud83c y"}`),
		"f.jsonl line 1: field text contains half a":         file("f.jsonl", `{"text": "\udf88\ud83c"}`),
		"g.jsonl line 1: field text contains half a":         file("g.jsonl", `{"text": "\ud83c\ud83c\udf88"}`),
		"h.jsonl line 2 is not UTF-8: byte 10 begins no":     file("h.jsonl", `{"text": ""}`+"\n{\"text\": \"\xff\"}"),
	} {
		if documents, err := read(t, selection); fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v after %q, want an input fault with %q", err, documents, want)
		}
	}
}

func TestBothHalvesOfASurrogatePairAreOneCharacter(t *testing.T) {
	lines := write(t, filepath.Join(t.TempDir(), "x.jsonl"), []byte(`{"text": "\ud83c\udf88\\ud83c \u00e9"}`))
	if got := mustRead(t, named(lines)); !slices.Equal(got, []string{"🎈\\ud83c é"}) {
		t.Fatalf("got %q", got)
	}
}

func TestAPositionInAChunkIsFoundInItsDocument(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "first"), []byte("abc"))
	write(t, filepath.Join(folder, "second"), []byte("de"))
	opened, err := corpus.Open(named(folder), &corpus.Counters{})
	if err != nil {
		t.Fatal(err)
	}
	var chunk corpus.Chunk
	if more, err := opened.Reader().Fill(&chunk); !more || err != nil {
		t.Fatal(more, err)
	}
	if err := chunk.Load(); err != nil {
		t.Fatal(err)
	}
	for position, want := range []string{"first is not UTF-8: byte 0", "first is not UTF-8: byte 1", "first is not UTF-8: byte 2",
		"second is not UTF-8: byte 0", "second is not UTF-8: byte 1"} {
		if err := chunk.NotUTF8(int64(position)); !strings.Contains(err.Error(), want) {
			t.Errorf("position %d: %v, want %s", position, err, want)
		}
	}
}

func TestAFileThatChangesAfterItWasListedIsRefused(t *testing.T) {
	for _, text := range []string{"longer than before", "ab", ""} {
		path := write(t, filepath.Join(t.TempDir(), "file"), []byte("four"))
		opened, err := corpus.Open(named(path), &corpus.Counters{})
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, []byte(text))
		var chunk corpus.Chunk
		if _, err := opened.Reader().Fill(&chunk); err != nil {
			t.Fatal(err)
		}
		if err := chunk.Load(); err == nil || !strings.Contains(err.Error(), "changed its size of 4 bytes") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

func TestAFileWithoutPermissionIsNamed(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "secret"), []byte("text"))
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	opened, err := corpus.Open(named(path), &corpus.Counters{})
	if err != nil {
		t.Fatal(err)
	}
	// Root reads everything; as nobody, for files alone and in this thread alone, it does not. The thread ends with the
	// goroutine that has locked it.
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		_ = unix.Setfsuid(65534)
		var chunk corpus.Chunk
		_, err := opened.Reader().Fill(&chunk)
		if err == nil {
			err = chunk.Load()
		}
		failed <- err
	}()
	if err := <-failed; fault.KindOf(err) != fault.Input || !strings.HasPrefix(err.Error(), path+" cannot be read: permission denied (hint: ") {
		t.Fatalf("got %v", err)
	}
}
