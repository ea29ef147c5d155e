// SPDX-License-Identifier: Apache-2.0

// Package pipeline is the way of a chunk: listed, read and encoded by one of a fixed pool of workers, handed over in the
// order of the corpus, packed. Everything waits on channels; memory is bounded by twice as many chunks as workers.
package pipeline

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/packing"
	"pybench/orchestrator/internal/tokenizer"
)

// Counters has what each stage has done. Reading and Tokenizing are summed over the workers.
type Counters struct {
	Documents  uint64
	TextBytes  uint64
	Reading    time.Duration
	Tokenizing time.Duration
}

// Pipeline is a corpus and the workers that encode it.
type Pipeline struct {
	Counters Counters

	corpus  *corpus.Corpus
	idBytes int
	workers []*tokenizer.Worker
}

// job is one chunk on its way, with the buffers that it lives in. They are reused by later chunks.
type job struct {
	chunk     corpus.Chunk
	text      []byte
	offsets   []uint64
	ids       []byte
	idOffsets []uint64

	reading    time.Duration
	tokenizing time.Duration
	err        error
	encoded    chan struct{} // one token when everything above is set
}

// New makes the pool: each worker has a cache of its own.
func New(documents *corpus.Corpus, model *tokenizer.Model, workers, cacheEntries int) (*Pipeline, error) {
	pipeline := &Pipeline{corpus: documents, idBytes: model.IDBytes}
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

// Run packs the corpus epochs times, endlessly for 0. It returns the first error in the order of the corpus, so the same
// corpus gives the same batches and the same error whatever the timing. On an error it does not wait for the workers:
// one may be inside a large document, and the process is about to end.
func (p *Pipeline) Run(ctx context.Context, epochs int, packer *packing.Packer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	depth := 2 * len(p.workers)
	spare := make(chan *job, depth)   // buffers that nobody uses
	todo := make(chan *job, depth)    // for the workers, in any order
	ordered := make(chan *job, depth) // the same jobs for the packer, in the order of the corpus
	for range depth {
		spare <- &job{encoded: make(chan struct{}, 1)}
	}
	var pool sync.WaitGroup
	for _, worker := range p.workers {
		pool.Go(func() { p.work(worker, todo) })
	}
	go p.dispatch(ctx, epochs, spare, todo, ordered)
	for next := range ordered {
		if err := p.pack(ctx, next, packer); err != nil {
			return err
		}
		spare <- next
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	pool.Wait()
	return nil
}

// dispatch never runs ahead of the buffers. It takes them before it hands out a chunk, so the oldest chunk always has
// one and the packer always gets on.
func (p *Pipeline) dispatch(ctx context.Context, epochs int, spare <-chan *job, todo, ordered chan<- *job) {
	defer close(todo)
	defer close(ordered)
	for epoch := 0; epochs == 0 || epoch < epochs; epoch++ {
		for _, chunk := range p.corpus.Chunks {
			select {
			case next := <-spare:
				next.chunk = chunk
				todo <- next
				ordered <- next
			case <-ctx.Done():
				return
			}
		}
	}
}

func (p *Pipeline) work(worker *tokenizer.Worker, todo <-chan *job) {
	for next := range todo {
		p.encode(worker, next)
		next.encoded <- struct{}{}
	}
}

func (p *Pipeline) encode(worker *tokenizer.Worker, next *job) {
	began := time.Now()
	next.text, next.offsets, next.err = p.corpus.Read(next.chunk, next.text, next.offsets)
	next.reading, next.tokenizing = time.Since(began), 0
	if next.err != nil {
		return
	}
	next.ids = grown(next.ids, len(next.text)*p.idBytes)
	next.idOffsets = grown(next.idOffsets, len(next.offsets))
	began = time.Now()
	_, next.err = worker.Encode(next.text, next.offsets, next.ids, next.idOffsets)
	next.tokenizing = time.Since(began)
	if broken, is := errors.AsType[*tokenizer.UTF8Error](next.err); is {
		document, position := p.corpus.Locate(next.chunk, broken.Position)
		next.err = fault.New(fault.Input, "convert it, as in: iconv -f latin1 -t utf-8 "+filepath.Base(document.Path),
			"%s is not UTF-8: byte %d begins no character", document.Path, position)
	}
}

func (p *Pipeline) pack(ctx context.Context, next *job, packer *packing.Packer) error {
	select {
	case <-next.encoded:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p.Counters.Reading += next.reading
	p.Counters.Tokenizing += next.tokenizing
	if next.err != nil {
		return next.err
	}
	idBytes := uint64(p.idBytes)
	for index := range next.chunk.End - next.chunk.First {
		ids := next.ids[next.idOffsets[index]*idBytes : next.idOffsets[index+1]*idBytes]
		textBytes := next.offsets[index+1] - next.offsets[index]
		if err := packer.Document(ctx, ids, textBytes); err != nil {
			return err
		}
		p.Counters.Documents++
		p.Counters.TextBytes += textBytes
	}
	return nil
}

// grown returns a slice of that length, the same memory when it suffices; contents are undefined.
func grown[T any](buffer []T, length int) []T {
	if cap(buffer) < length {
		return make([]T, length)
	}
	return buffer[:length]
}
