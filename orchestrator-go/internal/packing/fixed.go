// SPDX-License-Identifier: Apache-2.0

package packing

import "context"

// Fixed concatenates all documents, each followed by the end-of-text id, and cuts them into equal batches. Rows need
// no work: a batch of rows is a run of batch * seq_len ids. What is left after the last full batch is dropped.
type Fixed struct {
	counters  Counters
	slots     Slots
	rows      int
	idBytes   int
	separator []byte
	documents uint64
	textBytes uint64
	open      []byte // the batch being filled; nil when none is
	filled    int    // bytes of it
}

// NewFixed: separator is the end-of-text id; idBytes is 2 or 4.
func NewFixed(slots Slots, rows int, separator uint32, idBytes int) (*Fixed, error) {
	encoded, err := separatorOf(separator, idBytes)
	return &Fixed{slots: slots, rows: rows, idBytes: idBytes, separator: encoded}, err
}

// Document appends one document.
func (f *Fixed) Document(ctx context.Context, ids []byte, textBytes uint64) error {
	if err := f.append(ctx, ids); err != nil {
		return err
	}
	// The separator may be the id that fills a batch; the document then has ended in that batch.
	f.documents++
	f.textBytes += textBytes
	return f.append(ctx, f.separator)
}

// Finish drops what is left.
func (f *Fixed) Finish(context.Context) error {
	f.counters.DroppedTokens = uint64(f.filled / f.idBytes)
	return nil
}

// Counters is what was packed so far.
func (f *Fixed) Counters() Counters { return f.counters }

func (f *Fixed) append(ctx context.Context, ids []byte) error {
	f.counters.Tokens += uint64(len(ids) / f.idBytes)
	for len(ids) > 0 {
		if f.open == nil {
			room, err := f.slots.Acquire(ctx)
			if err != nil {
				return err
			}
			f.open = room.IDs
		}
		copied := copy(f.open[f.filled:], ids)
		ids = ids[copied:]
		f.filled += copied
		if f.filled == len(f.open) {
			tokens := f.filled / f.idBytes
			f.open, f.filled = nil, 0
			if err := f.slots.Publish(Filled{f.rows, tokens, f.documents, f.textBytes}); err != nil {
				return err
			}
		}
	}
	return nil
}
