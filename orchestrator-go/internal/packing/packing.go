// SPDX-License-Identifier: Apache-2.0

// Package packing turns documents of ids into batches: fixed ones, all equally large, or ragged ones, whose rows are as
// long as the documents. It knows neither the tokenizer nor the ring; ids are bytes to it.
package packing

import (
	"context"
	"encoding/binary"
	"math"

	"pybench/orchestrator/internal/fault"
)

// Slots is where batches go.
type Slots interface {
	// Acquire waits for room for one batch.
	Acquire(ctx context.Context) (Room, error)
	// Publish hands over the batch acquired last.
	Publish(filled Filled) error
}

// Room is the memory of one batch. Offsets has place for one number more than there may be rows; nil for fixed batches.
type Room struct {
	IDs     []byte
	Offsets []byte
}

// Filled says what a batch holds, and counts the documents whose ids, end-of-text included, lie wholly in the batches
// so far.
type Filled struct {
	Rows      int
	Tokens    int
	Documents uint64
	TextBytes uint64
}

// Counters of packing. Tokens counts all ids that were put into a batch, separators included.
type Counters struct {
	Tokens        uint64
	DroppedTokens uint64 // of an incomplete fixed batch at the end
}

// Packer takes documents one by one.
type Packer interface {
	// Document appends one document's ids and the separator, and publishes every batch that becomes full.
	Document(ctx context.Context, ids []byte, textBytes uint64) error
	// Finish ends the last batch.
	Finish(ctx context.Context) error
	Counters() Counters
}

// separatorOf is the end-of-text id as it stands in a batch.
func separatorOf(id uint32, idBytes int) ([]byte, error) {
	switch {
	case idBytes == 4:
		return binary.NativeEndian.AppendUint32(nil, id), nil
	case idBytes == 2 && id <= math.MaxUint16:
		return binary.NativeEndian.AppendUint16(nil, uint16(id)), nil
	}
	return nil, fault.New(fault.Internal, "", "id %d does not fit into ids of %d bytes", id, idBytes)
}
