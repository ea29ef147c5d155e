// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pybench/orchestrator/internal/ring/ringtest"
	"pybench/orchestrator/internal/tokenizer"
	"pybench/orchestrator/internal/tokenizer/tokenizertest"
)

const endOfText = "<|endoftext|>"

// corpusOf writes documents to files and names them in a manifest.
func corpusOf(t *testing.T, documents ...string) (manifest string, paths []string) {
	t.Helper()
	directory := t.TempDir()
	for number, text := range documents {
		path := filepath.Join(directory, fmt.Sprintf("%04d.txt", number))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	manifest = filepath.Join(directory, "manifest")
	if err := os.WriteFile(manifest, []byte(strings.Join(paths, "\x00")), 0o600); err != nil {
		t.Fatal(err)
	}
	return manifest, paths
}

// sources is this program's own text, over and over: real words, several chunks, some documents empty.
func sources(t *testing.T) []string {
	t.Helper()
	var documents []string
	names, err := filepath.Glob("internal/*/*.go")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d source files, %v", len(names), err)
	}
	for repeat := range 12 {
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, strings.Repeat("漢", repeat)+string(text))
		}
		documents = append(documents, "")
	}
	return documents
}

// slowly encodes every document alone, without a cache, and concatenates.
func slowly(t *testing.T, model *tokenizer.Model, documents []string) []uint32 {
	t.Helper()
	worker, err := model.NewWorker(0)
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	separator, err := model.FirstID([]string{endOfText})
	if err != nil {
		t.Fatal(err)
	}
	var all []uint32
	for _, text := range documents {
		if text == "" {
			continue
		}
		ids := make([]byte, len(text)*model.IDBytes)
		count, err := worker.Encode([]byte(text), []uint64{0, uint64(len(text))}, ids, make([]uint64, 2))
		if err != nil {
			t.Fatal(err)
		}
		for at := range count {
			if model.IDBytes == 2 {
				all = append(all, uint32(binary.NativeEndian.Uint16(ids[2*at:])))
			} else {
				all = append(all, binary.NativeEndian.Uint32(ids[4*at:]))
			}
		}
		all = append(all, separator)
	}
	return all
}

// started is the program in this process; its result comes through the channel.
type started struct {
	batch, seqLen, workers int
	inputs                 []string // further flags
	stdin                  io.Reader
}

func (s started) run(t *testing.T, consumer *ringtest.Consumer) <-chan finished {
	t.Helper()
	object, vocabulary := tokenizertest.Paths(t)
	arguments := append([]string{"--tokenizer-object", object, "--tokenizer", vocabulary, "--end-of-text", endOfText,
		"--filled-fd", joined(consumer.FilledFDs), "--free-fd", joined(consumer.FreeFDs)}, s.inputs...)
	for _, flag := range []struct {
		name  string
		value int
	}{{"--batch", s.batch}, {"--seq-len", s.seqLen}, {"--workers", s.workers}, {"--ring-fd", consumer.RingFD}, {"--consumer-pid", os.Getppid()}} {
		arguments = append(arguments, flag.name, strconv.Itoa(flag.value))
	}
	done := make(chan finished, 1)
	go func() {
		var stdout, stderr bytes.Buffer
		code := run(arguments, s.stdin, &stdout, &stderr)
		result := finished{code: code, stderr: stderr.String()}
		result.malformed = json.Unmarshal(stdout.Bytes(), &result.record)
		done <- result
	}()
	return done
}

func joined(numbers []int) string {
	words := make([]string, len(numbers))
	for at, number := range numbers {
		words[at] = strconv.Itoa(number)
	}
	return strings.Join(words, ",")
}

// start reads a manifest.
func start(t *testing.T, consumer *ringtest.Consumer, manifest string, batch, seqLen, workers, epochs int) <-chan finished {
	t.Helper()
	return started{batch, seqLen, workers, []string{"--files-from", manifest, "--epochs", strconv.Itoa(epochs)}, nil}.run(t, consumer)
}

type finished struct {
	code      int
	stderr    string
	record    record
	malformed error
}

func TestTheRingCarriesTheIDsOfTheSlowWayForEveryShape(t *testing.T) {
	model := tokenizertest.Model(t)
	documents := sources(t)
	manifest, _ := corpusOf(t, documents...)
	want := slowly(t, model, documents)
	for _, shape := range []struct{ batch, seqLen, workers, slots, epochs int }{
		{1, 1024, 1, 1, 1}, {8, 128, 2, 4, 1}, {3, 77, 5, 1, 1}, {16, 512, 3, 2, 3}, {1, 100_000_000, 2, 1, 1},
	} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			consumer := ringtest.New(t, shape.batch, shape.seqLen, shape.slots)
			consumer.GiveAll(t)
			done := start(t, consumer, manifest, shape.batch, shape.seqLen, shape.workers, shape.epochs)
			got, messages := drain(t, consumer)
			result := <-done
			all := slices.Repeat(want, shape.epochs)
			full := len(all) / (shape.batch * shape.seqLen) * shape.batch * shape.seqLen
			if !slices.Equal(got, all[:full]) {
				t.Fatalf("%d ids, want %d, and the same ones", len(got), full)
			}
			if messages[0] != ringtest.Ready || messages[len(messages)-1] != ringtest.End || result.code != 0 || result.stderr != "" {
				t.Fatalf("messages %x, exit %d, %s", messages, result.code, result.stderr)
			}
			counted := result.record
			stages := counted.Stages
			if result.malformed != nil || counted.Ended != "complete" || stages.Pack.IDs != uint64(len(all)) ||
				stages.Pack.DroppedIDs != uint64(len(all)-full) || counted.EmptyFiles != 12 ||
				stages.Read.BusyNs <= 0 || stages.Tokenize.BusyNs <= 0 || stages.Pack.BusyNs <= 0 ||
				stages.Read.Documents != stages.Pack.Documents || stages.Tokenize.Documents != stages.Pack.Documents ||
				stages.Tokenize.IDs+stages.Pack.Documents != stages.Pack.IDs || stages.Read.Bytes != stages.Pack.Bytes ||
				stages.Deliver.Batches != uint64(full/(shape.batch*shape.seqLen)) {
				t.Fatalf("counters %+v, %v", counted, result.malformed)
			}
		})
	}
}

// drain reads everything and gives every slot back at once.
func drain(t *testing.T, consumer *ringtest.Consumer) (ids []uint32, messages []uint32) {
	t.Helper()
	for {
		message, open := consumer.Next(t)
		if !open {
			return ids, messages
		}
		messages = append(messages, message)
		if message == ringtest.Ready {
			continue
		}
		if message == ringtest.End {
			return ids, messages
		}
		ids = append(ids, consumer.Read(t, message).IDs...)
		consumer.Give(t, message)
	}
}

func TestABadDocumentIsNamedAfterEverythingBeforeItWasDelivered(t *testing.T) {
	tokenizertest.Paths(t)
	long := strings.Repeat("some words that fill more than a chunk. ", 20_000)
	manifest, paths := corpusOf(t, long, long, "good until h\xe9re", "never seen")
	full := len(slowly(t, tokenizertest.Model(t), []string{long, long})) / (4 * 64)
	consumer := ringtest.New(t, 4, 64, 2)
	consumer.GiveAll(t)
	done := start(t, consumer, manifest, 4, 64, 3, 1)
	consumer.Next(t)
	for range full {
		message, _ := consumer.Next(t)
		consumer.Give(t, message)
	}
	result := <-done
	want := paths[2] + " is not UTF-8: byte 12 begins no character"
	if result.code != 1 || !strings.Contains(result.stderr, want) || strings.Count(result.stderr, "\n") != 1 {
		t.Fatalf("exit %d, %q, want one line with %q", result.code, result.stderr, want)
	}
	if result.record.Ended != "input" || result.record.Stages.Pack.Documents != 2 {
		t.Fatalf("counters %+v", result.record)
	}
}

func TestAConsumerThatLeavesEndsAnEndlessRun(t *testing.T) {
	manifest, _ := corpusOf(t, "a few words, again and again")
	consumer := ringtest.New(t, 2, 8, 2)
	consumer.GiveAll(t)
	done := start(t, consumer, manifest, 2, 8, 2, 0)
	for range 5 {
		if message, _ := consumer.Next(t); message != ringtest.Ready {
			consumer.Give(t, message)
		}
	}
	consumer.Close()
	result := <-done
	if result.code != 1 || result.record.Ended != "consumer" || !strings.Contains(result.stderr, "the consumer closed the ring") {
		t.Fatalf("exit %d, %q, %+v", result.code, result.stderr, result.record)
	}
}

func TestUsageIsExitCodeTwoAndOneLine(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"--nope"}, nil, &stdout, &stderr); code != 2 || stdout.Len() != 0 || strings.Count(stderr.String(), "\n") != 1 {
		t.Fatalf("exit %d, stdout %q, stderr %q", code, &stdout, &stderr)
	}
}

func TestVersionNamesTheTokenizerABI(t *testing.T) {
	var stdout, stderr bytes.Buffer
	want := fmt.Sprintf("pybench-orchestrator %s (tokenizer ABI %d)\n", version, tokenizer.ABIVersion)
	if code := run([]string{"--version"}, nil, &stdout, &stderr); code != 0 || stdout.String() != want {
		t.Fatalf("exit %d, %q, want %q", code, &stdout, want)
	}
}

// raggedSlots drains a ragged ring.
func raggedSlots(t *testing.T, consumer *ringtest.Consumer) (slots []ringtest.Slot) {
	t.Helper()
	for {
		message, open := consumer.Next(t)
		if !open || message == ringtest.End {
			return slots
		}
		if message != ringtest.Ready {
			slots = append(slots, consumer.Read(t, message))
			consumer.Give(t, message)
		}
	}
}

func TestRaggedBatchesCarryEveryIDInRowsOfDocuments(t *testing.T) {
	documents := sources(t)[:40]
	manifest, _ := corpusOf(t, documents...)
	want := slowly(t, tokenizertest.Model(t), documents)
	const batch, seqLen = 5, 700
	consumer := ringtest.NewShaped(t, ringtest.Shape{Batch: batch, SeqLen: seqLen, Slots: 3, Ragged: true})
	consumer.GiveAll(t)
	done := started{batch, seqLen, 3, []string{"--ragged", "--files-from", manifest}, nil}.run(t, consumer)
	slots := raggedSlots(t, consumer)
	result := <-done
	if result.code != 0 || result.record.Stages.Pack.DroppedIDs != 0 {
		t.Fatalf("exit %d, %s, %+v", result.code, result.stderr, result.record)
	}
	separator := want[len(want)-1]
	var got []uint32
	for number, slot := range slots {
		if number < len(slots)-1 && slot.Rows != batch {
			t.Fatalf("batch %d has %d rows", number, slot.Rows)
		}
		for row := range slot.Rows {
			ids := slot.IDs[slot.Offsets[row]:slot.Offsets[row+1]]
			if ended := ids[len(ids)-1] == separator; !ended && len(ids) != seqLen {
				t.Fatalf("batch %d: row %d of %d ids ends inside a document", number, row, len(ids))
			}
			got = append(got, ids...)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%d ids, want %d, and the same ones", len(got), len(want))
	}
}

func TestStandardInputGivesTheIDsOfTheFile(t *testing.T) {
	documents := sources(t)[:40]
	var lines bytes.Buffer
	for _, text := range documents {
		if err := json.NewEncoder(&lines).Encode(map[string]string{"body": text}); err != nil {
			t.Fatal(err)
		}
	}
	consumer := ringtest.New(t, 1, 100, 4)
	consumer.GiveAll(t)
	flags := []string{"--input", "-", "--stdin-as", "x.jsonl", "--field", "body"}
	done := started{1, 100, 2, flags, &lines}.run(t, consumer)
	got, _ := drain(t, consumer)
	if result := <-done; result.code != 0 {
		t.Fatalf("exit %d, %s", result.code, result.stderr)
	}
	want := slowly(t, tokenizertest.Model(t), documents)
	if !slices.Equal(got, want[:len(want)/100*100]) {
		t.Fatalf("%d ids of %d, or others", len(got), len(want))
	}
}

func TestACorpusWithoutTextEndsAnEndlessRunInsteadOfReadingForEver(t *testing.T) {
	lines := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(lines, []byte(`{"text": ""}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, flags := range map[string][]string{
		"no document of the corpus has any text": {"--input", lines, "--epochs", "0"},
		"this rank has no document":              {"--input", lines, "--epochs", "0", "--rank", "1", "--world", "2"},
	} {
		consumer := ringtest.New(t, 1, 4, 1)
		consumer.GiveAll(t)
		result := <-started{1, 4, 1, flags, nil}.run(t, consumer)
		if result.code != 1 || result.record.Ended != "input" || !strings.Contains(result.stderr, want) {
			t.Errorf("exit %d, %q, want %q", result.code, result.stderr, want)
		}
	}
}

func TestStandardInputThatNobodyEndsKeepsNoConsumersDeathFromEndingTheRun(t *testing.T) {
	silent, writer := io.Pipe()
	defer writer.Close()
	consumer := ringtest.New(t, 1, 4, 1)
	consumer.GiveAll(t)
	done := started{1, 4, 1, []string{"--input", "-"}, silent}.run(t, consumer)
	if message, _ := consumer.Next(t); message != ringtest.Ready {
		t.Fatalf("the first message is %#x, want ready", message)
	}
	consumer.Close()
	select {
	case result := <-done:
		if result.code != 1 || result.record.Ended != "consumer" {
			t.Fatalf("exit %d, %+v", result.code, result.record)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it waits for standard input although the consumer is gone")
	}
}
