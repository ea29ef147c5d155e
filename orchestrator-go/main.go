// SPDX-License-Identifier: Apache-2.0

// pybench-orchestrator preprocesses text outside Python: it reads a corpus, tokenizes it through the same shared object
// that Python uses, and packs batches into shared memory that the GPU's process reads without a copy (docs/ring.md).
package main

import (
	"fmt"
	"io"
	"os"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/lifetime"
	"pybench/orchestrator/internal/options"
	"pybench/orchestrator/internal/packing"
	"pybench/orchestrator/internal/pipeline"
	"pybench/orchestrator/internal/ring"
	"pybench/orchestrator/internal/tokenizer"
)

const (
	version   = "0.1.0"
	endOfText = "<|endoftext|>" // follows every document
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(arguments []string, stdout, stderr io.Writer) int {
	parsed, err := options.Parse(arguments)
	switch {
	case err != nil:
	case parsed.Help:
		options.WriteHelp(stdout)
	case parsed.Version:
		fmt.Fprintf(stdout, "%s %s (tokenizer ABI %d)\n", options.Program, version, tokenizer.ABIVersion)
	default:
		err = deliver(parsed, stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", options.Program, err)
		return fault.ExitCode(err)
	}
	return 0
}

// deliver brings the corpus through the ring and writes the counters, also when it fails on the way.
func deliver(parsed *options.Options, stdout io.Writer) (err error) {
	record := newRecord(parsed.Workers)
	defer func() { record.write(stdout, err) }()
	library, err := tokenizer.Open(parsed.TokenizerObject)
	if err != nil {
		return err
	}
	record.Tokenizer = library.BuildID
	if err := lifetime.BindToParent(parsed.ConsumerPID); err != nil {
		return err
	}
	ctx, cancel := lifetime.Context()
	producer, err := ring.Open(parsed.RingFD, parsed.FilledFD, parsed.FreeFD, parsed.Batch, parsed.SeqLen)
	if err != nil {
		return err
	}
	go producer.Watch(cancel)
	model, err := library.Load(parsed.Tokenizer)
	if err != nil {
		return err
	}
	defer model.Close()
	separator, err := model.ID(endOfText)
	if err != nil {
		return err
	}
	documents, err := corpus.Open(parsed.FilesFrom)
	if err != nil {
		return err
	}
	packer, err := packing.NewPacker(producer, separator, model.IDBytes)
	if err != nil {
		return err
	}
	encoding, err := pipeline.New(documents, model, parsed.Workers, parsed.CacheEntries)
	if err != nil {
		return err
	}
	defer func() { record.fill(documents, encoding, packer, producer) }()
	if err := producer.Ready(model.IDBytes); err != nil {
		return err
	}
	record.loaded()
	if err := encoding.Run(ctx, parsed.Epochs, packer); err != nil {
		return err
	}
	encoding.Close()
	return producer.End()
}
