// SPDX-License-Identifier: Apache-2.0

package packing_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"pybench/orchestrator/internal/packing"
)

// collected keeps every batch; it fails on demand.
type collected struct {
	batchBytes int
	rows       int
	batches    [][]byte
	offsets    [][]byte
	filled     []packing.Filled
	refuseAt   int
}

var errRefused = errors.New("refused")

func (c *collected) Acquire(context.Context) (packing.Room, error) {
	if c.refuseAt > 0 && len(c.batches) == c.refuseAt {
		return packing.Room{}, errRefused
	}
	c.batches = append(c.batches, make([]byte, c.batchBytes))
	c.offsets = append(c.offsets, make([]byte, 8*(c.rows+1)))
	return packing.Room{IDs: c.batches[len(c.batches)-1], Offsets: c.offsets[len(c.offsets)-1]}, nil
}

func (c *collected) Publish(filled packing.Filled) error {
	c.filled = append(c.filled, filled)
	return nil
}

func encode(ids []uint32, idBytes int) []byte {
	var encoded []byte
	for _, id := range ids {
		if idBytes == 2 {
			encoded = binary.NativeEndian.AppendUint16(encoded, uint16(id))
		} else {
			encoded = binary.NativeEndian.AppendUint32(encoded, id)
		}
	}
	return encoded
}

func TestPackingEqualsConcatenatingAllAndCutting(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		idBytes := 2 + 2*(round%2)
		batchIDs := 1 + random.IntN(40)
		const separator = 31999
		sink := &collected{batchBytes: batchIDs * idBytes}
		packer, err := packing.NewFixed(sink, 1, separator, idBytes)
		if err != nil {
			t.Fatal(err)
		}
		var all []uint32
		var ends []int // in ids, after the separator
		for range random.IntN(30) {
			document := make([]uint32, random.IntN(100))
			for at := range document {
				document[at] = random.Uint32N(31999)
			}
			if err := packer.Document(t.Context(), encode(document, idBytes), 7); err != nil {
				t.Fatal(err)
			}
			all = append(append(all, document...), separator)
			ends = append(ends, len(all))
		}
		if err := packer.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		full := len(all) / batchIDs
		counted := packer.Counters()
		if counted != (packing.Counters{Tokens: uint64(len(all)), DroppedTokens: uint64(len(all) % batchIDs)}) ||
			len(sink.filled) != full {
			t.Fatalf("%d ids in batches of %d: %+v", len(all), batchIDs, counted)
		}
		for number := range full {
			if !slices.Equal(sink.batches[number], encode(all[number*batchIDs:(number+1)*batchIDs], idBytes)) {
				t.Fatalf("batch %d differs", number)
			}
			ended := uint64(0)
			for _, end := range ends {
				if end <= (number+1)*batchIDs {
					ended++
				}
			}
			if want := (packing.Filled{Rows: 1, Tokens: batchIDs, Documents: ended, TextBytes: 7 * ended}); sink.filled[number] != want {
				t.Fatalf("batch %d says %+v, want %+v", number, sink.filled[number], want)
			}
		}
	}
}

func TestASinkThatRefusesStopsThePacking(t *testing.T) {
	sink := &collected{batchBytes: 4, refuseAt: 2}
	packer, err := packing.NewFixed(sink, 1, 9, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := packer.Document(t.Context(), make([]byte, 100), 1); !errors.Is(err, errRefused) {
		t.Fatalf("got %v, want %v", err, errRefused)
	}
	if len(sink.filled) != 2 {
		t.Fatalf("%d batches, want the 2 before the refusal", len(sink.filled))
	}
}

func TestASeparatorThatDoesNotFitIsRefused(t *testing.T) {
	for _, bad := range []struct {
		id      uint32
		idBytes int
	}{{65536, 2}, {1, 3}, {1, 0}} {
		if _, err := packing.NewFixed(nil, 1, bad.id, bad.idBytes); err == nil {
			t.Errorf("id %d in %d bytes was taken", bad.id, bad.idBytes)
		}
	}
}

// raggedly is the definition in a few lines: every document with its separator, cut into rows, rows into batches.
func raggedly(documents [][]uint32, separator uint32, rows, seqLen int) [][][]uint32 {
	var all [][]uint32
	for _, document := range documents {
		all = slices.AppendSeq(all, slices.Chunk(append(slices.Clone(document), separator), seqLen))
	}
	return slices.Collect(slices.Chunk(all, rows))
}

func TestRaggedBatchesHaveARowADocumentAndLoseNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 300 {
		idBytes, rows, seqLen := 2+2*(round%2), 1+random.IntN(5), 1+random.IntN(40)
		const separator = 31999
		sink := &collected{batchBytes: rows * seqLen * idBytes, rows: rows}
		packer, err := packing.NewRagged(sink, rows, seqLen, separator, idBytes)
		if err != nil {
			t.Fatal(err)
		}
		var documents [][]uint32
		tokens := 0
		for range 1 + random.IntN(30) {
			document := make([]uint32, 1+random.IntN(100))
			for at := range document {
				document[at] = random.Uint32N(31999)
			}
			documents = append(documents, document)
			tokens += len(document) + 1
			if err := packer.Document(t.Context(), encode(document, idBytes), 7); err != nil {
				t.Fatal(err)
			}
		}
		if err := packer.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := raggedly(documents, separator, rows, seqLen)
		if len(sink.filled) != len(want) || packer.Counters() != (packing.Counters{Tokens: uint64(tokens)}) {
			t.Fatalf("%d batches, want %d; %+v", len(sink.filled), len(want), packer.Counters())
		}
		for number, batch := range want {
			flat := slices.Concat(batch...)
			offset := 0
			for row := range batch {
				offset += len(batch[row])
				if found := binary.LittleEndian.Uint64(sink.offsets[number][8*(row+1):]); found != uint64(offset) {
					t.Fatalf("batch %d: row %d ends at %d, want %d", number, row, found, offset)
				}
			}
			filled := sink.filled[number]
			if filled.Rows != len(batch) || filled.Tokens != len(flat) || !slices.Equal(sink.batches[number][:len(flat)*idBytes], encode(flat, idBytes)) {
				t.Fatalf("batch %d differs: %+v", number, filled)
			}
		}
		if last := sink.filled[len(want)-1]; last.Documents != uint64(len(documents)) || last.TextBytes != uint64(7*len(documents)) {
			t.Fatalf("the last batch says %+v of %d documents", last, len(documents))
		}
	}
}
