// SPDX-License-Identifier: Apache-2.0

// Package pipeline is the way of a chunk: read, encoded by one of a fixed pool of workers, handed over in the order of
// the corpus, packed. Everything waits on channels; memory is bounded by twice as many chunks as workers, so a consumer
// that takes nothing stops the packer, then the workers, then the reader.
package pipeline

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/packing"
	"pybench/orchestrator/internal/tokenizer"
)

// Counters may be read while a pipeline runs. Times are in ns, those of workers summed over them.
type Counters struct {
	Read corpus.Counters
	// ReadWait: the reader waited for a buffer, because everything behind it was slower.
	ReadWait atomic.Int64

	Encoded      Work
	EncodingWait atomic.Int64 // workers waited for text

	Packed      Work
	PackingWait atomic.Int64 // the packer waited for the next chunk in order

	// CreditWait asks the ring how long the packer has waited for readers: that is no work of its own.
	CreditWait func() int64
}

// Work is what a stage has done.
type Work struct {
	Documents atomic.Uint64
	TextBytes atomic.Uint64
	IDs       atomic.Uint64
	Busy      atomic.Int64 // ns
}

// Pipeline is a corpus and the workers that encode it.
type Pipeline struct {
	counters *Counters
	corpus   *corpus.Corpus
	idBytes  int
	workers  []*tokenizer.Worker
}

// job is one chunk on its way, with the buffers that it lives in. They are reused by later chunks.
type job struct {
	chunk     corpus.Chunk
	epoch     int
	ids       []byte
	idOffsets []uint64
	err       error
	encoded   chan struct{} // one token when everything above is set
}

// New makes the pool: each worker has a cache of its own.
func New(documents *corpus.Corpus, model *tokenizer.Model, workers, cacheEntries int, counters *Counters) (*Pipeline, error) {
	pipeline := &Pipeline{counters: counters, corpus: documents, idBytes: model.IDBytes}
	for range workers {
		worker, err := model.NewWorker(cacheEntries)
		if err != nil {
			pipeline.Close()
			return nil, err
		}
		pipeline.workers = append(pipeline.workers, worker)
	}
	return pipeline, nil
}

// Close frees the workers. Only after a Run that returned nil: otherwise some may still be encoding.
func (p *Pipeline) Close() {
	for _, worker := range p.workers {
		worker.Close()
	}
}

// Run packs the corpus epochs times, endlessly for 0. It returns the first error in the order of the corpus. So the
// same corpus gives the same batches and the same error whatever the timing. On an error it does not wait for the
// workers: one may be inside a large document, and the process is about to end.
func (p *Pipeline) Run(ctx context.Context, epochs int, packer packing.Packer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	depth := 2 * len(p.workers)
	lanes := lanes{make(chan *job, depth), make(chan *job, depth), make(chan *job, depth)}
	for range depth {
		lanes.spare <- &job{encoded: make(chan struct{}, 1)}
	}
	var pool errgroup.Group
	for _, worker := range p.workers {
		pool.Go(func() error { return p.work(worker, lanes.todo) })
	}
	pool.Go(func() error { return p.read(ctx, epochs, lanes) })
	for {
		// The reader may be inside a read of standard input that nobody ends, so its channel alone is not waited for.
		next, open := awaited(ctx, &p.counters.PackingWait, lanes.ordered)
		if !open {
			break
		}
		if err := p.pack(ctx, next, packer); err != nil {
			return err
		}
		lanes.spare <- next
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := pool.Wait(); err != nil {
		return err
	}
	return packer.Finish(ctx)
}

// lanes are where jobs wait; each has room for all of them.
type lanes struct {
	spare   chan *job // buffers that nobody uses
	todo    chan *job // for the workers, in any order
	ordered chan *job // the same jobs for the packer, in the order of the corpus
}

// read never runs ahead of the buffers. It takes them before it hands out a chunk, so the oldest chunk always has one
// and the packer always gets on.
func (p *Pipeline) read(ctx context.Context, epochs int, lanes lanes) error {
	defer close(lanes.todo)
	defer close(lanes.ordered)
	for epoch := 0; epochs == 0 || epoch < epochs; epoch++ {
		chunks, err := p.readOnce(ctx, epoch, lanes)
		if err != nil {
			return err
		}
		if chunks == 0 {
			p.fail(lanes, fault.New(fault.Input, "give every rank at least one document", "this rank has no document of the corpus"))
			return nil
		}
	}
	return nil
}

// readOnce hands out the chunks of one epoch, and how many they were. What cannot be read becomes an error in the place
// of its chunk: everything before it is still delivered.
func (p *Pipeline) readOnce(ctx context.Context, epoch int, lanes lanes) (chunks int, err error) {
	reader := p.corpus.Reader()
	defer reader.Close()
	for {
		began := time.Now()
		var next *job
		select {
		case next = <-lanes.spare:
		case <-ctx.Done():
			return chunks, context.Cause(ctx)
		}
		p.counters.ReadWait.Add(int64(time.Since(began)))
		next.epoch, next.err = epoch, nil
		more, err := reader.Fill(&next.chunk)
		if err != nil {
			lanes.spare <- next
			p.fail(lanes, err)
			return chunks, err
		}
		if !more {
			lanes.spare <- next
			return chunks, nil
		}
		chunks++
		lanes.todo <- next
		lanes.ordered <- next
	}
}

// fail lets the packer meet an error in its turn.
func (p *Pipeline) fail(lanes lanes, err error) {
	failed := <-lanes.spare
	failed.err = err
	failed.encoded <- struct{}{}
	lanes.ordered <- failed
}

func (p *Pipeline) work(worker *tokenizer.Worker, todo <-chan *job) error {
	// One thread for one worker: its cache stays near the core that uses it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		next, open := awaited(context.Background(), &p.counters.EncodingWait, todo)
		if !open {
			return nil
		}
		next.err = p.encode(worker, next)
		next.encoded <- struct{}{}
	}
}

func (p *Pipeline) encode(worker *tokenizer.Worker, next *job) error {
	chunk := &next.chunk
	if err := chunk.Load(); err != nil {
		return err
	}
	if chunk.Documents() == 0 {
		return nil
	}
	next.ids = grown(next.ids, len(chunk.Text)*p.idBytes)
	next.idOffsets = grown(next.idOffsets, len(chunk.Offsets))
	began := time.Now()
	count, err := worker.Encode(chunk.Text, chunk.Offsets, next.ids, next.idOffsets)
	encoded := &p.counters.Encoded
	encoded.Busy.Add(int64(time.Since(began)))
	if broken, is := errors.AsType[*tokenizer.UTF8Error](err); is {
		return chunk.NotUTF8(broken.Position)
	}
	if err != nil {
		return err
	}
	encoded.Documents.Add(uint64(chunk.Documents()))
	encoded.TextBytes.Add(uint64(len(chunk.Text)))
	encoded.IDs.Add(uint64(count))
	return nil
}

func (p *Pipeline) pack(ctx context.Context, next *job, packer packing.Packer) error {
	began := time.Now()
	select {
	case <-next.encoded:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.counters.PackingWait.Add(int64(time.Since(began)))
	if next.err != nil {
		return next.err
	}
	if next.epoch > 0 && p.counters.Packed.Documents.Load() == 0 { // else an endless run would read for ever
		return fault.New(fault.Input, "name at least one file with text", "no document of the corpus has any text")
	}
	return p.packDocuments(ctx, next, packer)
}

func (p *Pipeline) packDocuments(ctx context.Context, next *job, packer packing.Packer) error {
	packed, idBytes, offsets := &p.counters.Packed, uint64(p.idBytes), next.chunk.Offsets
	began, waited := time.Now(), p.counters.CreditWait()
	for index := range next.chunk.Documents() {
		ids := next.ids[next.idOffsets[index]*idBytes : next.idOffsets[index+1]*idBytes]
		textBytes := offsets[index+1] - offsets[index]
		if err := packer.Document(ctx, ids, textBytes); err != nil {
			return err
		}
		packed.Documents.Add(1)
		packed.TextBytes.Add(textBytes)
		packed.IDs.Store(packer.Counters().Tokens)
		ended, wait := time.Now(), p.counters.CreditWait()
		packed.Busy.Add(int64(ended.Sub(began)) - (wait - waited))
		began, waited = ended, wait
	}
	return nil
}

// awaited receives, and counts how long that took; false: there is nothing more to come, or ctx has ended.
func awaited(ctx context.Context, wait *atomic.Int64, jobs <-chan *job) (next *job, open bool) {
	began := time.Now()
	select {
	case next, open = <-jobs:
	case <-ctx.Done():
	}
	wait.Add(int64(time.Since(began)))
	return next, open
}

// grown returns a slice of that length, the same memory when it suffices; contents are undefined.
func grown[T any](buffer []T, length int) []T {
	if cap(buffer) < length {
		return make([]T, length)
	}
	return buffer[:length]
}
