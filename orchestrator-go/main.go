// SPDX-License-Identifier: Apache-2.0

// pybench-orchestrator preprocesses text outside Python: it reads a corpus and tokenizes it through the same shared
// object that Python uses. It packs batches into shared memory that the GPU's process reads without a copy
// (docs/formats/ring.md). Or it runs the model itself, through ONNX Runtime (docs/formats/native.md).
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/inference"
	"pybench/orchestrator/internal/lifetime"
	"pybench/orchestrator/internal/options"
	"pybench/orchestrator/internal/packing"
	"pybench/orchestrator/internal/pipeline"
	"pybench/orchestrator/internal/ring"
	"pybench/orchestrator/internal/tokenizer"
)

const version = "0.1.0"

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(arguments []string, stdin io.Reader, stdout, stderr io.Writer) int {
	parsed, err := options.Parse(arguments)
	switch {
	case err != nil:
	case parsed.Help:
		options.WriteHelp(stdout)
	case parsed.Version:
		fmt.Fprintf(stdout, "%s %s (tokenizer ABI %d)\n", options.Program, version, tokenizer.ABIVersion)
	case parsed.ControlFD != 0:
		err = infer(parsed)
	default:
		parsed.Selection.Input = stdin
		report := newReport(stdout, parsed.Workers, len(parsed.FilledFDs))
		defer lifetime.OnRequest(report.writeProgress)()
		err = deliver(parsed, report)
		report.writeEnd(err)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", options.Program, err)
		return fault.ExitCode(err)
	}
	return 0
}

// infer runs a model for a consumer, until it is gone, or SIGTERM comes.
func infer(parsed *options.Options) error {
	if err := lifetime.BindToParent(parsed.ConsumerPID); err != nil {
		return err
	}
	ctx, _ := lifetime.Context()
	// Whoever waits for a question is asleep in a read, which the end of the stream alone wakes.
	defer context.AfterFunc(ctx, func() { _ = unix.Shutdown(parsed.ControlFD, unix.SHUT_RDWR) })()
	if err := inference.Serve(ctx, os.NewFile(uintptr(parsed.ControlFD), "control")); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// deliver brings the corpus through the ring.
func deliver(parsed *options.Options, report *report) error {
	library, err := tokenizer.Open(parsed.TokenizerObject)
	if err != nil {
		return err
	}
	report.set(func(record *record) { record.Tokenizer = library.BuildID })
	if err := lifetime.BindToParent(parsed.ConsumerPID); err != nil {
		return err
	}
	ctx, cancel := lifetime.Context()
	producer, err := ring.Open(parsed.RingFD, parsed.FilledFDs, parsed.FreeFDs, parsed.Shape)
	if err != nil {
		return err
	}
	report.counters.CreditWait = producer.CreditWait.Load
	producer.Watch(cancel)
	model, err := library.Load(parsed.Tokenizer)
	if err != nil {
		return err
	}
	defer model.Close()
	packer, err := newPacker(parsed, producer, model)
	if err != nil {
		return err
	}
	documents, err := corpus.Open(parsed.Selection, &report.counters.Read)
	if err != nil {
		return err
	}
	encoding, err := pipeline.New(documents, model, parsed.Workers, parsed.CacheEntries, &report.counters)
	if err != nil {
		return err
	}
	if err := producer.Ready(model.IDBytes); err != nil {
		return err
	}
	report.loaded(documents.EmptyFiles, producer)
	if err := encoding.Run(ctx, parsed.Epochs, packer); err != nil {
		return err
	}
	report.packed(packer.Counters())
	encoding.Close()
	return producer.End()
}

func newPacker(parsed *options.Options, producer *ring.Producer, model *tokenizer.Model) (packing.Packer, error) {
	separator, err := model.FirstID(parsed.EndsOfText)
	if err != nil {
		return nil, err
	}
	shape := parsed.Shape
	if shape.Ragged {
		return packing.NewRagged(producer, shape.Batch, shape.SeqLen, separator, model.IDBytes)
	}
	return packing.NewFixed(producer, shape.Batch, separator, model.IDBytes)
}
