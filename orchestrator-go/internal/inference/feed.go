// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"context"
	"encoding/binary"
	"unsafe"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/onnxruntime"
	"pybench/orchestrator/internal/packing"
	"pybench/orchestrator/internal/pipeline"
	"pybench/orchestrator/internal/tokenizer"
)

// FeedOptions is what text is read, and how it becomes batches. The stream has no end: epochs follow one another.
type FeedOptions struct {
	TokenizerObject string   `json:"tokenizer_object"`
	Tokenizer       string   `json:"tokenizer"`
	EndsOfText      []string `json:"ends_of_text"` // the first that the vocabulary has follows every document
	Field           string   `json:"field"`
	Documents       int      `json:"documents"`
	Rank            int      `json:"rank"`
	World           int      `json:"world"`
	Workers         int      `json:"workers"`
	Batch           int      `json:"batch"`
	SeqLen          int      `json:"seq_len"`
	Slots           int      `json:"slots"`          // batches that the tokenizer may be ahead
	HashedBatches   int      `json:"hashed_batches"` // the first batches, which are kept
}

// Feed is tokenized text in this process, batch by batch: what the ring is between two processes.
type Feed struct {
	TextBytes uint64 // of documents that ended in a batch that was taken
	WaitNs    int64  // how long Next has waited for a batch

	clock   *Clock
	idBytes int
	tokens  int
	free    chan int
	filled  chan filledSlot
	slots   [][]byte
	open    int   // the slot that was acquired last
	read    []int // slots that were read, and not yet given back
	failed  chan error
	first   []uint32 // the batches to be hashed
	kept    int
}

type filledSlot struct {
	index     int
	textBytes uint64
}

// Start opens tokenizer and corpus and begins to tokenize ahead.
func Start(ctx context.Context, clock *Clock, options FeedOptions, files []string) (*Feed, error) {
	library, err := tokenizer.Open(options.TokenizerObject)
	if err != nil {
		return nil, err
	}
	model, err := library.Load(options.Tokenizer)
	if err != nil {
		return nil, err
	}
	separator, err := model.FirstID(options.EndsOfText)
	if err != nil {
		return nil, err
	}
	feed := newFeed(clock, options, model.IDBytes)
	packer, err := packing.NewFixed(feed, options.Batch, separator, model.IDBytes)
	if err != nil {
		return nil, err
	}
	var counters pipeline.Counters
	counters.CreditWait = func() int64 { return 0 } // nobody asks for it here
	documents, err := corpus.Open(corpus.Selection{Inputs: files, Field: options.Field, Documents: options.Documents,
		Rank: options.Rank, World: options.World}, &counters.Read)
	if err != nil {
		return nil, err
	}
	encoding, err := pipeline.New(documents, model, options.Workers, tokenizer.CacheEntries, &counters)
	if err != nil {
		return nil, err
	}
	go func() { feed.failed <- encoding.Run(ctx, 0, packer) }()
	return feed, nil
}

func newFeed(clock *Clock, options FeedOptions, idBytes int) *Feed {
	tokens := options.Batch * options.SeqLen
	feed := &Feed{clock: clock, idBytes: idBytes, tokens: tokens, free: make(chan int, options.Slots),
		filled: make(chan filledSlot, options.Slots), failed: make(chan error, 1),
		first: make([]uint32, options.HashedBatches*tokens)}
	for index := range options.Slots {
		feed.slots = append(feed.slots, make([]byte, tokens*idBytes))
		feed.free <- index
	}
	return feed
}

// Acquire waits for a slot that nobody reads.
func (f *Feed) Acquire(ctx context.Context) (packing.Room, error) {
	select {
	case f.open = <-f.free:
		return packing.Room{IDs: f.slots[f.open]}, nil
	case <-ctx.Done():
		return packing.Room{}, context.Cause(ctx)
	}
}

// Publish hands over the slot acquired last.
func (f *Feed) Publish(filled packing.Filled) error {
	f.filled <- filledSlot{f.open, filled.TextBytes}
	return nil
}

// Next widens the next batch into `into`, int64 [batch, seq_len], waiting for it if need be.
func (f *Feed) Next(into onnxruntime.Memory) error {
	var next filledSlot
	select {
	case next = <-f.filled:
	default:
		f.giveBack()
		began := f.clock.Now()
		select {
		case next = <-f.filled:
		case err := <-f.failed:
			f.failed <- err // told each time
			if err == nil {
				err = fault.New(fault.Internal, "", "the endless corpus ended")
			}
			return err
		}
		f.WaitNs += f.clock.Now() - began
	}
	ids := f.slots[next.index]
	f.widen(unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData([]byte(into)))), f.tokens), ids)
	f.TextBytes = next.textBytes
	// Each slot that is given back may wake the packer, on a processor that the model wants. So a quarter of them
	// is given back at a time, as the reader of a ring does.
	if f.read = append(f.read, next.index); len(f.read) >= len(f.slots)/4 {
		f.giveBack()
	}
	return nil
}

func (f *Feed) giveBack() {
	for _, index := range f.read {
		f.free <- index
	}
	f.read = f.read[:0]
}

// widen also keeps the first batches.
func (f *Feed) widen(into []int64, ids []byte) {
	if f.idBytes == 2 {
		for at, id := range unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(ids))), f.tokens) {
			into[at] = int64(id)
		}
	} else {
		for at, id := range unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(ids))), f.tokens) {
			into[at] = int64(id)
		}
	}
	if f.kept < len(f.first) {
		for at, id := range into {
			f.first[f.kept+at] = uint32(id)
		}
		f.kept += len(into)
	}
}

// First is the ids of the first batches, 4 bytes each, little-endian. What was not taken yet is taken now.
func (f *Feed) First() ([]byte, error) {
	into, err := onnxruntime.NewMemory(f.tokens * int(unsafe.Sizeof(int64(0))))
	if err != nil {
		return nil, err
	}
	for f.kept < len(f.first) {
		if err := f.Next(into); err != nil {
			return nil, err
		}
	}
	var bytes []byte
	for _, id := range f.first {
		bytes = binary.LittleEndian.AppendUint32(bytes, id)
	}
	return bytes, nil
}
