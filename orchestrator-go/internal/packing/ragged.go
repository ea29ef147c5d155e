// SPDX-License-Identifier: Apache-2.0

package packing

import (
	"context"
	"encoding/binary"
)

// Ragged gives every document a row of its own, the end-of-text id at its end; one that is longer than a row may be
// goes on in the next. Nothing is padded and nothing dropped: the last batch may have fewer rows.
type Ragged struct {
	counters  Counters
	slots     Slots
	rows      int // most in a batch
	rowBytes  int // most in a row
	idBytes   int
	separator []byte
	document  []byte // ids and separator end to end
	open      Room
	isOpen    bool
	filled    int // bytes of ids
	count     int // rows
	documents uint64
	textBytes uint64
}

// NewRagged: separator is the end-of-text id; idBytes is 2 or 4.
func NewRagged(slots Slots, rows, seqLen int, separator uint32, idBytes int) (*Ragged, error) {
	encoded, err := separatorOf(separator, idBytes)
	return &Ragged{slots: slots, rows: rows, rowBytes: seqLen * idBytes, idBytes: idBytes, separator: encoded}, err
}

// Document appends one document.
func (r *Ragged) Document(ctx context.Context, ids []byte, textBytes uint64) error {
	r.document = append(append(r.document[:0], ids...), r.separator...)
	r.counters.Tokens += uint64(len(r.document) / r.idBytes)
	for rest := r.document; len(rest) > 0; {
		row := rest[:min(len(rest), r.rowBytes)]
		rest = rest[len(row):]
		if len(rest) == 0 {
			r.documents++
			r.textBytes += textBytes
		}
		if err := r.row(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

func (r *Ragged) row(ctx context.Context, ids []byte) error {
	if !r.isOpen {
		room, err := r.slots.Acquire(ctx)
		if err != nil {
			return err
		}
		r.open, r.isOpen, r.filled, r.count = room, true, 0, 0
		r.mark()
	}
	r.filled += copy(r.open.IDs[r.filled:], ids)
	r.count++
	r.mark()
	if r.count == r.rows {
		return r.publish()
	}
	return nil
}

// mark writes where the next row begins, in ids.
func (r *Ragged) mark() {
	binary.LittleEndian.PutUint64(r.open.Offsets[8*r.count:], uint64(r.filled/r.idBytes))
}

func (r *Ragged) publish() error {
	r.isOpen = false
	return r.slots.Publish(Filled{r.count, r.filled / r.idBytes, r.documents, r.textBytes})
}

// Finish publishes the last batch with the rows that it has.
func (r *Ragged) Finish(context.Context) error {
	if !r.isOpen {
		return nil
	}
	return r.publish()
}

// Counters is what was packed so far.
func (r *Ragged) Counters() Counters { return r.counters }
