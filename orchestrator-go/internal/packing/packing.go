// SPDX-License-Identifier: Apache-2.0

// Package packing turns documents of ids into full batches: each document followed by the end-of-text id, all
// concatenated, cut into equal batches. Rows need no work: a batch of rows is a run of batch * seq_len ids. It knows
// neither the tokenizer nor the ring; ids are bytes to it.
package packing

import (
	"context"
	"encoding/binary"
	"math"

	"pybench/orchestrator/internal/fault"
)

// Slots is where full batches go.
type Slots interface {
	// Acquire waits for room and returns the memory of one batch.
	Acquire(ctx context.Context) ([]byte, error)
	// Publish hands over the batch acquired last; progress counts all documents that have ended by then.
	Publish(progress Progress) error
}

// Progress counts the documents whose ids, end-of-text included, lie wholly in the batches so far.
type Progress struct {
	Documents uint64
	TextBytes uint64
}

// Packer fills one batch at a time. Tokens counts all ids appended, separators included.
type Packer struct {
	Tokens  uint64
	Batches uint64

	slots     Slots
	idBytes   int
	separator []byte
	progress  Progress
	open      []byte // the batch being filled; nil when none is
	filled    int    // bytes of it
}

// NewPacker: separator is the end-of-text id; idBytes is 2 or 4.
func NewPacker(slots Slots, separator uint32, idBytes int) (*Packer, error) {
	packer := &Packer{slots: slots, idBytes: idBytes}
	switch {
	case idBytes == 4:
		packer.separator = binary.NativeEndian.AppendUint32(nil, separator)
	case idBytes == 2 && separator <= math.MaxUint16:
		packer.separator = binary.NativeEndian.AppendUint16(nil, uint16(separator))
	default:
		return nil, fault.New(fault.Internal, "", "id %d does not fit into ids of %d bytes", separator, idBytes)
	}
	return packer, nil
}

// Document appends one document's ids and the separator, and publishes every batch that becomes full.
func (p *Packer) Document(ctx context.Context, ids []byte, textBytes uint64) error {
	if err := p.append(ctx, ids); err != nil {
		return err
	}
	// The separator may be the id that fills a batch; the document then has ended in that batch.
	p.progress.Documents++
	p.progress.TextBytes += textBytes
	return p.append(ctx, p.separator)
}

// DroppedTokens is how many ids wait in an incomplete batch; at the end of the corpus they are dropped.
func (p *Packer) DroppedTokens() uint64 { return uint64(p.filled / p.idBytes) }

func (p *Packer) append(ctx context.Context, ids []byte) error {
	p.Tokens += uint64(len(ids) / p.idBytes)
	for len(ids) > 0 {
		if p.open == nil {
			slot, err := p.slots.Acquire(ctx)
			if err != nil {
				return err
			}
			p.open = slot
		}
		copied := copy(p.open[p.filled:], ids)
		ids = ids[copied:]
		p.filled += copied
		if p.filled == len(p.open) {
			p.open, p.filled = nil, 0
			p.Batches++
			if err := p.slots.Publish(p.progress); err != nil {
				return err
			}
		}
	}
	return nil
}
