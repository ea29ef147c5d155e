// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/packing"
	"pybench/orchestrator/internal/pipeline"
	"pybench/orchestrator/internal/ring"
)

// record is the one line of JSON on stdout: what every stage did, in SI units.
type record struct {
	SchemaVersion int    `json:"schema_version"`
	Ended         string `json:"ended"` // "complete", or a fault.Kind
	Error         string `json:"error,omitempty"`
	Hint          string `json:"hint,omitempty"`
	Tokenizer     string `json:"tokenizer"`
	Workers       int    `json:"workers"`

	Documents     uint64 `json:"documents"` // encoded and packed, over all epochs
	EmptyFiles    int    `json:"empty_files"`
	TextBytes     uint64 `json:"text_bytes"` // of those documents
	Tokens        uint64 `json:"tokens"`     // ids packed, separators included
	Batches       uint64 `json:"batches"`
	DroppedTokens uint64 `json:"dropped_tokens"` // of an incomplete batch at the end

	LoadingSeconds    float64 `json:"loading_s"`     // from the start to `ready`
	ReadingSeconds    float64 `json:"reading_s"`     // of files, summed over workers
	TokenizingSeconds float64 `json:"tokenizing_s"`  // summed over workers
	CreditWaitSeconds float64 `json:"credit_wait_s"` // the packer waited for the consumer
	WallSeconds       float64 `json:"wall_s"`        // from `ready` to the end

	began time.Time
	ready time.Time
}

func newRecord(workers int) *record {
	return &record{SchemaVersion: 1, Workers: workers, began: time.Now()}
}

func (r *record) loaded() {
	r.ready = time.Now()
	r.LoadingSeconds = r.ready.Sub(r.began).Seconds()
}

func (r *record) fill(documents *corpus.Corpus, encoding *pipeline.Pipeline, packer *packing.Packer, producer *ring.Producer) {
	r.Documents = encoding.Counters.Documents
	r.EmptyFiles = documents.EmptyFiles
	r.TextBytes = encoding.Counters.TextBytes
	r.Tokens = packer.Tokens
	r.Batches = packer.Batches
	r.DroppedTokens = packer.DroppedTokens()
	r.ReadingSeconds = encoding.Counters.Reading.Seconds()
	r.TokenizingSeconds = encoding.Counters.Tokenizing.Seconds()
	r.CreditWaitSeconds = producer.CreditWait.Seconds()
}

func (r *record) write(stdout io.Writer, err error) {
	r.Ended = "complete"
	if err != nil {
		r.Ended, r.Error = string(fault.KindOf(err)), err.Error()
		if classified, is := errors.AsType[*fault.Error](err); is {
			r.Error, r.Hint = classified.What, classified.Hint
		}
	}
	if !r.ready.IsZero() {
		r.WallSeconds = time.Since(r.ready).Seconds()
	}
	// A consumer that is gone reads no counters either, so a failed write has nobody to be told to.
	_ = json.NewEncoder(stdout).Encode(r)
}
