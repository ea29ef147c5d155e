// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/packing"
	"pybench/orchestrator/internal/pipeline"
)

const (
	endedComplete = "complete"
	stillRunning  = "running"
)

// record is one line of JSON on stdout: what every stage has done so far. Times of several threads are summed.
type record struct {
	SchemaVersion int     `json:"schema_version"`
	Ended         string  `json:"ended"` // "complete", "running", or a fault.Kind
	Error         string  `json:"error,omitempty"`
	Hint          string  `json:"hint,omitempty"`
	Tokenizer     string  `json:"tokenizer"`
	Workers       int     `json:"workers"`
	Readers       int     `json:"readers"`
	EmptyFiles    int     `json:"empty_files"`
	LoadingSec    float64 `json:"loading_s"` // from the start to `ready`
	WallSec       float64 `json:"wall_s"`    // from `ready` on
	Stages        stages  `json:"stages"`
}

type stages struct {
	Read     reading  `json:"read"`
	Tokenize working  `json:"tokenize"`
	Pack     packed   `json:"pack"`
	Deliver  delivery `json:"deliver"`
}

type reading struct {
	Bytes          uint64 `json:"bytes"` // decompressed, with the JSON around the text
	Documents      uint64 `json:"documents"`
	EmptyDocuments uint64 `json:"empty_documents"`
	BusyNs         int64  `json:"busy_ns"`
	WaitNs         int64  `json:"wait_ns"` // for a free buffer
}

type working struct {
	Bytes     uint64 `json:"bytes"`
	Documents uint64 `json:"documents"`
	IDs       uint64 `json:"ids"`
	BusyNs    int64  `json:"busy_ns"`
	WaitNs    int64  `json:"wait_ns"` // workers for a chunk, reading it left out
}

type packed struct {
	Bytes      uint64 `json:"bytes"` // of text
	Documents  uint64 `json:"documents"`
	IDs        uint64 `json:"ids"` // separators and dropped ones included
	DroppedIDs uint64 `json:"dropped_ids"`
	BusyNs     int64  `json:"busy_ns"`
	WaitNs     int64  `json:"wait_ns"` // for the next chunk in the order of the corpus
}

type delivery struct {
	Batches uint64 `json:"batches"`
	WaitNs  int64  `json:"wait_ns"` // for a reader to give back a slot
}

// report knows where the numbers of a run are and writes them down whenever it is asked to.
type report struct {
	counters pipeline.Counters

	mutex      sync.Mutex // a request may come while the run ends
	out        io.Writer
	record     record
	began      time.Time
	ready      time.Time
	creditWait func() int64
}

func newReport(out io.Writer, workers, readers int) *report {
	return &report{
		out: out, began: time.Now(), creditWait: func() int64 { return 0 },
		record: record{SchemaVersion: 2, Workers: workers, Readers: readers},
	}
}

func (r *report) set(change func(*record)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change(&r.record)
}

// loaded marks `ready`; creditWait is the ring's own count, in ns.
func (r *report) loaded(emptyFiles int, creditWait func() int64) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.ready, r.creditWait = time.Now(), creditWait
	r.record.EmptyFiles = emptyFiles
	r.record.LoadingSec = r.ready.Sub(r.began).Seconds()
}

func (r *report) packed(counters packing.Counters) {
	r.set(func(record *record) { record.Stages.Pack.DroppedIDs = counters.DroppedTokens })
}

// writeEnd is the last line, whatever the end.
func (r *report) writeEnd(err error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.record.Ended = endedComplete
	if err != nil {
		r.record.Ended, r.record.Error = string(fault.KindOf(err)), err.Error()
		if classified, is := errors.AsType[*fault.Error](err); is {
			r.record.Error, r.record.Hint = classified.What, classified.Hint
		}
	}
	r.write()
}

// writeProgress is a line on request.
func (r *report) writeProgress() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.record.Ended == "" {
		r.record.Ended = stillRunning
		r.write()
		r.record.Ended = ""
	}
}

func (r *report) write() {
	if !r.ready.IsZero() {
		r.record.WallSec = time.Since(r.ready).Seconds()
	}
	c, s, credits := &r.counters, &r.record.Stages, r.creditWait()
	s.Read = reading{c.Read.Bytes.Load(), c.Read.Documents.Load(), c.Read.EmptyDocuments.Load(), c.Read.Busy.Load(), c.ReadWait.Load()}
	s.Tokenize = working{c.Encoded.TextBytes.Load(), c.Encoded.Documents.Load(), c.Encoded.IDs.Load(), c.Encoded.Busy.Load(), c.EncodingWait.Load()}
	// Packing goes on while it waits for a slot; that wait is the reader's and has a place of its own.
	busy := max(0, c.Packed.Busy.Load()-credits)
	s.Pack = packed{c.Packed.TextBytes.Load(), c.Packed.Documents.Load(), c.Packed.IDs.Load(), s.Pack.DroppedIDs, busy, c.PackingWait.Load()}
	s.Deliver = delivery{c.Packed.Batches.Load(), credits}
	// A consumer that is gone reads no counters either, so a failed write has nobody to be told to.
	_ = json.NewEncoder(r.out).Encode(r.record)
}
