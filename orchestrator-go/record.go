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
	"pybench/orchestrator/internal/ring"
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

	mutex    sync.Mutex // a request may come while the run ends
	out      io.Writer
	record   record
	began    time.Time
	ready    time.Time
	producer *ring.Producer // nil until it is open
}

func newReport(out io.Writer, workers, readers int) *report {
	return &report{out: out, began: time.Now(), record: record{SchemaVersion: 2, Workers: workers, Readers: readers}}
}

func (r *report) set(change func(*record)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	change(&r.record)
}

// loaded marks `ready`.
func (r *report) loaded(emptyFiles int, producer *ring.Producer) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.ready, r.producer = time.Now(), producer
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
	c, s := &r.counters, &r.record.Stages
	s.Read = reading{c.Read.Bytes.Load(), c.Read.Documents.Load(), c.Read.EmptyDocuments.Load(), c.Read.Busy.Load(), c.ReadWait.Load()}
	s.Tokenize = working{c.Encoded.TextBytes.Load(), c.Encoded.Documents.Load(), c.Encoded.IDs.Load(), c.Encoded.Busy.Load(), c.EncodingWait.Load()}
	s.Pack = packed{c.Packed.TextBytes.Load(), c.Packed.Documents.Load(), c.Packed.IDs.Load(), s.Pack.DroppedIDs, c.Packed.Busy.Load(), c.PackingWait.Load()}
	if r.producer != nil {
		s.Deliver = delivery{r.producer.Batches.Load(), r.producer.CreditWait.Load()}
	}
	// A consumer that is gone reads no counters either, so a failed write has nobody to be told to.
	_ = json.NewEncoder(r.out).Encode(r.record)
}
