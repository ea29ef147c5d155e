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
	batches    [][]byte
	progress   []packing.Progress
	refuseAt   int
}

var errRefused = errors.New("refused")

func (c *collected) Acquire(context.Context) ([]byte, error) {
	if c.refuseAt > 0 && len(c.batches) == c.refuseAt {
		return nil, errRefused
	}
	c.batches = append(c.batches, make([]byte, c.batchBytes))
	return c.batches[len(c.batches)-1], nil
}

func (c *collected) Publish(progress packing.Progress) error {
	c.progress = append(c.progress, progress)
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
		packer, err := packing.NewPacker(sink, separator, idBytes)
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
		full := len(all) / batchIDs
		if packer.Batches != uint64(full) || len(sink.progress) != full || packer.Tokens != uint64(len(all)) ||
			packer.DroppedTokens() != uint64(len(all)%batchIDs) {
			t.Fatalf("%d ids in batches of %d: %d batches, %d dropped", len(all), batchIDs, packer.Batches, packer.DroppedTokens())
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
			if want := (packing.Progress{Documents: ended, TextBytes: 7 * ended}); sink.progress[number] != want {
				t.Fatalf("batch %d says %+v, want %+v", number, sink.progress[number], want)
			}
		}
	}
}

func TestASinkThatRefusesStopsThePacking(t *testing.T) {
	packer, err := packing.NewPacker(&collected{batchBytes: 4, refuseAt: 2}, 9, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := packer.Document(t.Context(), make([]byte, 100), 1); !errors.Is(err, errRefused) {
		t.Fatalf("got %v, want %v", err, errRefused)
	}
	if packer.Batches != 2 {
		t.Fatalf("%d batches, want the 2 before the refusal", packer.Batches)
	}
}

func TestASeparatorThatDoesNotFitIsRefused(t *testing.T) {
	for _, bad := range []struct {
		id      uint32
		idBytes int
	}{{65536, 2}, {1, 3}, {1, 0}} {
		if _, err := packing.NewPacker(nil, bad.id, bad.idBytes); err == nil {
			t.Errorf("id %d in %d bytes was taken", bad.id, bad.idBytes)
		}
	}
}
