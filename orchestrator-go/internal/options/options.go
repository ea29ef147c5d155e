// SPDX-License-Identifier: Apache-2.0

// Package options reads the command line: every flag named, typed and checked once, so that the rest trusts it.
package options

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strings"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/ring"
)

const Program = "pybench-orchestrator"

// Options is a command line that has passed every check that needs no file.
type Options struct {
	Help    bool
	Version bool

	TokenizerObject string // shared object with the C ABI
	Tokenizer       string // tokenizer.json
	FilesFrom       string // NUL-separated paths
	Batch           int    // rows
	SeqLen          int    // ids in a row
	Workers         int
	Epochs          int // 0: endless
	CacheEntries    int // of each worker

	RingFD      int
	FilledFD    int
	FreeFD      int
	ConsumerPID int
}

const introduction = `Usage: pybench-orchestrator FLAGS

Reads text files, tokenizes them on a fixed pool of workers, packs the ids into batches and hands these to the
process that started it, through shared memory and two pipes (docs/ring.md defines both).

Flags:
`

// Parse reads the arguments after the program's name. All errors are of kind Usage.
func Parse(arguments []string) (*Options, error) {
	parsed := &Options{}
	flags := define(parsed)
	err := flags.Parse(arguments)
	switch {
	case errors.Is(err, flag.ErrHelp):
		parsed.Help = true
		return parsed, nil
	case err != nil:
		return nil, usage("%s", strings.Replace(err.Error(), "flag provided but not defined: -", "unknown flag --", 1))
	case flags.NArg() > 0:
		return nil, usage("unexpected argument %q", flags.Arg(0))
	case parsed.Version:
		return parsed, nil
	}
	if err := check(flags, parsed); err != nil {
		return nil, err
	}
	return parsed, nil
}

// WriteHelp lists every flag.
func WriteHelp(out io.Writer) {
	fmt.Fprint(out, introduction)
	define(&Options{}).VisitAll(func(one *flag.Flag) {
		kind, text := flag.UnquoteUsage(one)
		fmt.Fprintf(out, "  %-28s %s\n", strings.TrimRight("--"+one.Name+" "+kind, " "), text)
	})
	fmt.Fprintf(out, "  %-28s %s\n", "--help", "print this and exit")
	fmt.Fprint(out, "\nExit codes: 0 the whole corpus was delivered, 2 usage, 1 anything else.\n")
}

func define(into *Options) *flag.FlagSet {
	flags := flag.NewFlagSet(Program, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.StringVar(&into.TokenizerObject, "tokenizer-object", "", "`FILE` with the C ABI of the tokenizer, a shared object")
	flags.StringVar(&into.Tokenizer, "tokenizer", "", "`FILE` of the vocabulary, tokenizer.json")
	flags.StringVar(&into.FilesFrom, "files-from", "", "`FILE` that names the documents, separated by NUL bytes")
	flags.IntVar(&into.Batch, "batch", 0, "`N` rows in a batch")
	flags.IntVar(&into.SeqLen, "seq-len", 0, "`N` ids in a row")
	flags.IntVar(&into.Workers, "workers", 0, "`N` threads that tokenize")
	flags.IntVar(&into.Epochs, "epochs", 1, "`N` passes over the corpus (default 1; 0: until the reader has enough)")
	// 2^17 entries of 32 bytes: the fastest size on text that was not seen before, of 2^14 to 2^20 tried.
	flags.IntVar(&into.CacheEntries, "cache-entries", 1<<17, "`N` cached words of each worker, 0 or a power of two (default 131072)")
	flags.IntVar(&into.RingFD, "ring-fd", -1, "`FD` of the shared memory, inherited")
	flags.IntVar(&into.FilledFD, "filled-fd", -1, "`FD` of the pipe that announces filled slots, inherited")
	flags.IntVar(&into.FreeFD, "free-fd", -1, "`FD` of the pipe that gives slots back, inherited")
	flags.IntVar(&into.ConsumerPID, "consumer-pid", 0, "`PID` of the reader: this process ends with it")
	flags.BoolVar(&into.Version, "version", false, "print versions and exit")
	return flags
}

func check(flags *flag.FlagSet, parsed *Options) error {
	given := map[string]bool{}
	flags.Visit(func(one *flag.Flag) { given[one.Name] = true })
	for _, name := range []string{"tokenizer-object", "tokenizer", "files-from", "batch", "seq-len", "workers",
		"ring-fd", "filled-fd", "free-fd", "consumer-pid"} {
		if !given[name] {
			return usage("--%s is missing", name)
		}
	}
	for _, path := range []struct{ name, value string }{
		{"tokenizer-object", parsed.TokenizerObject}, {"tokenizer", parsed.Tokenizer}, {"files-from", parsed.FilesFrom}} {
		if path.value == "" {
			return usage("--%s is empty", path.name)
		}
	}
	for _, number := range []struct {
		name         string
		value        int
		least, limit int
	}{
		{"batch", parsed.Batch, 1, ring.MaxSlotTokens}, {"seq-len", parsed.SeqLen, 1, ring.MaxSlotTokens},
		{"workers", parsed.Workers, 1, 1024}, {"epochs", parsed.Epochs, 0, math.MaxInt32},
		{"cache-entries", parsed.CacheEntries, 0, 1 << 24},
		{"ring-fd", parsed.RingFD, 3, math.MaxInt32}, {"filled-fd", parsed.FilledFD, 3, math.MaxInt32},
		{"free-fd", parsed.FreeFD, 3, math.MaxInt32}, {"consumer-pid", parsed.ConsumerPID, 1, math.MaxInt32},
	} {
		if number.value < number.least || number.value > number.limit {
			return usage("--%s is %d, outside %d to %d", number.name, number.value, number.least, number.limit)
		}
	}
	if parsed.CacheEntries&(parsed.CacheEntries-1) != 0 {
		return usage("--cache-entries is %d, not a power of two", parsed.CacheEntries)
	}
	if parsed.Batch*parsed.SeqLen > ring.MaxSlotTokens {
		return usage("--batch times --seq-len is %d ids, more than %d", parsed.Batch*parsed.SeqLen, ring.MaxSlotTokens)
	}
	return nil
}

func usage(what string, arguments ...any) error {
	return fault.New(fault.Usage, Program+" --help lists the flags", what, arguments...)
}
