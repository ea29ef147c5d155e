// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/packing"
	"pybench/orchestrator/internal/pipeline"
	"pybench/orchestrator/internal/tokenizer"
	"pybench/orchestrator/internal/tokenizer/tokenizertest"
)

const (
	cacheEntries = 1 << 10
	// patience is how long a test waits for what must come.
	patience = 10 * time.Second
)

// recorder is a packer that keeps what it is given. meet, if there is one, is asked before each document.
type recorder struct {
	documents [][]byte // ids
	textBytes []uint64
	finished  int
	meet      func(ctx context.Context, number int) error
}

func (r *recorder) Document(ctx context.Context, ids []byte, textBytes uint64) error {
	if r.meet != nil {
		if err := r.meet(ctx, len(r.documents)); err != nil {
			return err
		}
	}
	r.documents = append(r.documents, bytes.Clone(ids))
	r.textBytes = append(r.textBytes, textBytes)
	return nil
}

func (r *recorder) Finish(context.Context) error { r.finished++; return nil }

func (r *recorder) Counters() packing.Counters { return packing.Counters{} }

// setting is a pipeline over files, whose contents are given by their names.
type setting struct {
	folder   string
	pipeline *pipeline.Pipeline
	counters *pipeline.Counters
}

func set(t *testing.T, model *tokenizer.Model, workers int, files map[string][]byte) setting {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	built := over(t, model, workers, corpus.Selection{Inputs: []string{folder}, Field: "text", World: 1})
	built.folder = folder
	return built
}

func over(t *testing.T, model *tokenizer.Model, workers int, selection corpus.Selection) setting {
	t.Helper()
	counters := &pipeline.Counters{CreditWait: func() int64 { return 0 }}
	documents, err := corpus.Open(selection, &counters.Read)
	if err != nil {
		t.Fatal(err)
	}
	built, err := pipeline.New(documents, model, workers, cacheEntries, counters)
	if err != nil {
		t.Fatal(err)
	}
	return setting{pipeline: built, counters: counters}
}

// run fails the test where Run does not return.
func (s setting) run(t *testing.T, ctx context.Context, epochs int, packer packing.Packer) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.pipeline.Run(ctx, epochs, packer) }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("the pipeline does not end")
		return nil
	}
}

// line is a file of one document, and so a chunk of its own, however short.
func line(text string) []byte {
	encoded, _ := json.Marshal(map[string]string{"text": text})
	return append(encoded, '\n')
}

// slow is a file that takes a worker many times as long as a line does.
func slow(t *testing.T, text string) []byte {
	t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := io.WriteString(writer, text); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// words are two MB that compress to little, so that they are a chunk of their own.
func words() string { return strings.Repeat("some words, again and again; ", 80_000) }

func TestDocumentsComeInTheOrderOfTheCorpusWhicheverWorkerIsDoneFirst(t *testing.T) {
	model := tokenizertest.Model(t)
	chance := rand.New(rand.NewPCG(1, 2))
	files, texts := map[string][]byte{}, []string{}
	for number := range 60 {
		text := strings.Repeat(fmt.Sprintf("document %d ", number), 1+chance.IntN(20))
		name := fmt.Sprintf("%02d.jsonl", number)
		if number%20 == 0 {
			text = words()
			files[name+".gz"] = slow(t, string(line(text)))
		} else {
			files[name] = line(text)
		}
		texts = append(texts, text)
	}
	const epochs = 2
	built, packer := set(t, model, 4, files), &recorder{}
	if err := built.run(t, t.Context(), epochs, packer); err != nil {
		t.Fatal(err)
	}
	built.pipeline.Close()
	alone, err := model.NewWorker(0)
	if err != nil {
		t.Fatal(err)
	}
	defer alone.Close()
	for number, text := range slices.Repeat(texts, epochs) {
		ids := make([]byte, len(text)*model.IDBytes)
		count, err := alone.Encode([]byte(text), []uint64{0, uint64(len(text))}, ids, make([]uint64, 2))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(packer.documents[number], ids[:count*model.IDBytes]) || packer.textBytes[number] != uint64(len(text)) {
			t.Fatalf("document %d is another, or has other ids", number)
		}
	}
	if len(packer.documents) != epochs*len(texts) || packer.finished != 1 {
		t.Fatalf("%d documents, finished %d times", len(packer.documents), packer.finished)
	}
}

func TestAPackerThatFailsEndsTheReaderAndEveryWorker(t *testing.T) {
	built := set(t, tokenizertest.Model(t), 3, map[string][]byte{"x.jsonl": line("text"), "y.jsonl": line("more text")})
	before := runtime.NumGoroutine()
	refused := errors.New("no room")
	packer := &recorder{meet: func(_ context.Context, number int) error {
		if number == 7 {
			return refused
		}
		return nil
	}}
	if err := built.run(t, t.Context(), 0, packer); !errors.Is(err, refused) {
		t.Fatalf("got %v, want %v", err, refused)
	}
	if len(packer.documents) != 7 || packer.finished != 0 {
		t.Fatalf("%d documents, finished %d times", len(packer.documents), packer.finished)
	}
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left over", runtime.NumGoroutine()-before)
		}
	}
}

func TestOfSeveralErrorsTheFirstInTheOrderOfTheCorpusIsReturned(t *testing.T) {
	model := tokenizertest.Model(t)
	for range 5 {
		built := set(t, model, 3, map[string][]byte{
			"0.jsonl":  line("a good one"),
			"1.txt.gz": slow(t, words()+"\xff"), // found last
			"2.jsonl":  []byte("no JSON\n"),
			"3.jsonl":  []byte("{}\n"),
			"4.jsonl":  line("never seen"),
		})
		packer := &recorder{}
		err := built.run(t, t.Context(), 1, packer)
		if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "1.txt.gz is not UTF-8") {
			t.Fatalf("got %v", err)
		}
		if len(packer.documents) != 1 || packer.finished != 0 {
			t.Fatalf("%d documents came before it, finished %d times", len(packer.documents), packer.finished)
		}
	}
}

func TestAFileThatCannotBeOpenedIsAnErrorBehindEverythingBeforeIt(t *testing.T) {
	files := map[string][]byte{"9.jsonl": line("gone")}
	for number := range 9 {
		files[fmt.Sprintf("%d.jsonl", number)] = line("here")
	}
	built, packer := set(t, tokenizertest.Model(t), 2, files), &recorder{}
	if err := os.Remove(filepath.Join(built.folder, "9.jsonl")); err != nil {
		t.Fatal(err)
	}
	err := built.run(t, t.Context(), 1, packer)
	if fault.KindOf(err) != fault.Input || !strings.Contains(err.Error(), "9.jsonl cannot be read: no such file") {
		t.Fatalf("got %v", err)
	}
	if len(packer.documents) != 9 || packer.finished != 0 {
		t.Fatalf("%d documents came before it, finished %d times", len(packer.documents), packer.finished)
	}
}

func TestATokenizerThatFailsIsAnInternalErrorInItsPlace(t *testing.T) {
	built, packer := set(t, tokenizertest.Model(t), 2, map[string][]byte{"x": []byte("text")}), &recorder{}
	built.pipeline.Close() // to the shared object such workers are none
	err := built.run(t, t.Context(), 1, packer)
	if fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), "encoding 4 bytes failed (PBT_ERROR_ARGUMENT)") {
		t.Fatalf("got %v", err)
	}
	if len(packer.documents) != 0 || packer.finished != 0 {
		t.Fatalf("%d documents, finished %d times", len(packer.documents), packer.finished)
	}
}

func TestACancelledRunReturnsTheFirstCauseWhereverItWaits(t *testing.T) {
	model := tokenizertest.Model(t)
	first, later := fault.New(fault.Consumer, "", "gone"), fault.New(fault.Stopped, "", "stopped")
	for name, waits := range map[string]func(t *testing.T, cancel func()) (setting, *recorder){
		"for a slot": func(t *testing.T, cancel func()) (setting, *recorder) {
			return set(t, model, 2, map[string][]byte{"x.jsonl": line("text")}), &recorder{meet: func(ctx context.Context, number int) error {
				if number < 3 {
					return nil
				}
				cancel()
				<-ctx.Done() // as the ring does
				return context.Cause(ctx)
			}}
		},
		"for text": func(t *testing.T, cancel func()) (setting, *recorder) {
			silent, writer := io.Pipe()
			t.Cleanup(func() { writer.Close() })
			time.AfterFunc(20*time.Millisecond, cancel)
			selection := corpus.Selection{Inputs: []string{corpus.Stdin}, StdinAs: "x.jsonl", Input: silent, Field: "text", World: 1}
			return over(t, model, 2, selection), &recorder{}
		},
		"for a worker": func(t *testing.T, cancel func()) (setting, *recorder) {
			files := map[string][]byte{"0.jsonl": line("text"), "1.txt.gz": slow(t, words())}
			return set(t, model, 1, files), &recorder{meet: func(_ context.Context, number int) error {
				time.AfterFunc(5*time.Millisecond, cancel) // while the next one, which is slow, is being encoded
				return nil
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			built, packer := waits(t, func() { cancel(first); cancel(later) })
			if err := built.run(t, ctx, 0, packer); !errors.Is(err, first) {
				t.Fatalf("got %v, want %v", err, first)
			}
			if packer.finished != 0 {
				t.Fatal("a corpus that did not end was finished")
			}
		})
	}
}

func TestAPackerThatTakesNothingStopsTheReading(t *testing.T) {
	const workers = 2
	files := map[string][]byte{}
	for number := range 50 {
		files[fmt.Sprintf("%02d.jsonl", number)] = line("a chunk")
	}
	built := set(t, tokenizertest.Model(t), workers, files)
	read := &built.counters.Read.Documents
	packer := &recorder{meet: func(_ context.Context, number int) error {
		if number > 0 {
			return nil
		}
		for deadline := time.Now().Add(patience); read.Load() < 2*workers; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				return errors.New("it does not read ahead")
			}
		}
		time.Sleep(50 * time.Millisecond)
		if ahead := read.Load(); ahead != 2*workers {
			return fmt.Errorf("%d chunks were read for %d workers", ahead, workers)
		}
		return nil
	}}
	if err := built.run(t, t.Context(), 1, packer); err != nil {
		t.Fatal(err)
	}
	if len(packer.documents) != len(files) {
		t.Fatalf("%d documents", len(packer.documents))
	}
}

// A defect has to end the process, which every reader of the ring notices, and not to leave it waiting for a part of
// itself that is gone.
func TestAPanicInThePoolEndsTheProcess(t *testing.T) {
	const variable = "PYBENCH_PIPELINE_TEST_PANICS"
	model := tokenizertest.Model(t)
	if os.Getenv(variable) != "" {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		noWorld := corpus.Selection{Inputs: []string{path}} // the rank of a document is a division by zero
		_ = over(t, model, 1, noWorld).run(t, t.Context(), 1, &recorder{})
		return
	}
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), variable+"=1")
	said, err := child.CombinedOutput()
	if ended, is := errors.AsType[*exec.ExitError](err); !is || ended.ExitCode() != 2 || !bytes.Contains(said, []byte("integer divide by zero")) {
		t.Fatalf("%v: %s", err, said)
	}
}
