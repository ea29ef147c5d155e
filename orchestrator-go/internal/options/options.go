// SPDX-License-Identifier: Apache-2.0

// Package options reads the command line: every flag named, typed and checked once, so that the rest trusts it.
package options

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/ring"
	"pybench/orchestrator/internal/tokenizer"
)

const Program = "pybench-orchestrator"

// Options is a command line that has passed every check that needs no file.
type Options struct {
	Help    bool
	Version bool

	TokenizerObject string   // shared object with the C ABI
	Tokenizer       string   // tokenizer.json
	EndsOfText      []string // the first that the vocabulary has follows every document
	Selection       corpus.Selection
	Shape           ring.Shape
	Workers         int
	Epochs          int // 0: endless
	CacheEntries    int // of each worker

	RingFD      int
	FilledFDs   []int // one a reader
	FreeFDs     []int
	ConsumerPID int

	ControlFD int // of a consumer that asks for inference; 0: it reads a ring
}

const introduction = `Usage: pybench-orchestrator FLAGS

Reads text, tokenizes it on a fixed pool of workers, packs the ids into batches and hands these to the processes that
hold the other ends of a ring in shared memory (docs/formats/ring.md defines it).

A file is one document; of a .jsonl or .ndjson file each line is one. Either may be compressed (.gz, .zst). Folders are
walked in the order of their files' relative paths, without names that begin with a dot.

With --control-fd it runs a model on the text as well, and times it: the flags are then messages (docs/formats/native.md).

Flags:
`

const ending = `
SIGUSR1 asks for a line of counters on stdout, in JSON; the last line comes at the end by itself. SIGTERM ends it.
Exit codes: 0 the whole corpus was delivered, 2 usage, 1 anything else.
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
	fmt.Fprint(out, ending)
}

func define(into *Options) *flag.FlagSet {
	flags := flag.NewFlagSet(Program, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	flags.StringVar(&into.TokenizerObject, "tokenizer-object", "", "`FILE` with the C ABI of the tokenizer, a shared object")
	flags.StringVar(&into.Tokenizer, "tokenizer", "", "`FILE` of the vocabulary, tokenizer.json")
	flags.Func("end-of-text", "`TOKEN` that follows every document; may be repeated: the first that the vocabulary has", func(token string) error {
		into.EndsOfText = append(into.EndsOfText, token)
		return nil
	})
	flags.Func("input", "`PATH` of a file or folder with documents, or - for standard input; may be repeated", func(path string) error {
		into.Selection.Inputs = append(into.Selection.Inputs, path)
		return nil
	})
	flags.StringVar(&into.Selection.Manifest, "files-from", "", "`FILE` that names the files of documents, separated by NUL bytes")
	flags.StringVar(&into.Selection.StdinAs, "stdin-as", "", "`NAME` that standard input is read as, as in x.jsonl.zst (default: one document of text)")
	flags.StringVar(&into.Selection.Field, "field", "text", "`NAME` of the field of a JSON line that holds the text (default text)")
	flags.IntVar(&into.Selection.Documents, "documents", 0, "`N` documents at the beginning of the corpus are read (default 0: all)")
	flags.IntVar(&into.Selection.Rank, "rank", 0, "`N`, from 0: read the documents whose number leaves N when divided by --world")
	flags.IntVar(&into.Selection.World, "world", 1, "`N` ranks that share the corpus (default 1)")
	flags.IntVar(&into.Shape.Batch, "batch", 0, "`N` rows in a batch")
	flags.IntVar(&into.Shape.SeqLen, "seq-len", 0, "`N` ids in a row")
	flags.BoolVar(&into.Shape.Ragged, "ragged", false, "a document a row, up to --seq-len ids, with offsets and without padding")
	flags.IntVar(&into.Workers, "workers", 0, "`N` threads that tokenize")
	flags.IntVar(&into.Epochs, "epochs", 1, "`N` passes over the corpus (default 1; 0: until the reader has enough)")
	flags.IntVar(&into.CacheEntries, "cache-entries", tokenizer.CacheEntries, "`N` cached words of each worker, 0 or a power of two (default 131072)")
	flags.IntVar(&into.RingFD, "ring-fd", -1, "`FD` of the shared memory, inherited")
	flags.Func("filled-fd", "`FD` of the pipe that announces filled slots, inherited; of several readers, with commas", numbers(&into.FilledFDs))
	flags.Func("free-fd", "`FD` of the pipe that gives slots back, inherited; of several readers, with commas", numbers(&into.FreeFDs))
	flags.IntVar(&into.ConsumerPID, "consumer-pid", 0, "`PID` of the process that has started this one: it ends with it")
	flags.IntVar(&into.ControlFD, "control-fd", 0, "`FD` of a stream socket, inherited, whose requests are answered; goes with --consumer-pid alone")
	flags.BoolVar(&into.Version, "version", false, "print versions and exit")
	return flags
}

// numbers reads `5` or `5,7,9`.
func numbers(into *[]int) func(string) error {
	return func(list string) error {
		*into = nil
		for word := range strings.SplitSeq(list, ",") {
			number, err := strconv.Atoi(word)
			if err != nil {
				return errors.New("not a number, or numbers with commas")
			}
			*into = append(*into, number)
		}
		return nil
	}
}

func check(flags *flag.FlagSet, parsed *Options) error {
	given := map[string]bool{}
	flags.Visit(func(one *flag.Flag) { given[one.Name] = true })
	if given["control-fd"] {
		return checkControl(given, parsed)
	}
	for _, name := range []string{"tokenizer-object", "tokenizer", "end-of-text", "batch", "seq-len", "workers",
		"ring-fd", "filled-fd", "free-fd", "consumer-pid"} {
		if !given[name] {
			return usage("--%s is missing", name)
		}
	}
	for _, text := range []struct{ name, value string }{
		{"tokenizer-object", parsed.TokenizerObject}, {"tokenizer", parsed.Tokenizer}, {"field", parsed.Selection.Field}} {
		if text.value == "" {
			return usage("--%s is empty", text.name)
		}
	}
	if err := checkNumbers(parsed); err != nil {
		return err
	}
	return checkSelection(parsed)
}

// checkControl is of a command line for inference: whatever else it takes comes in messages.
func checkControl(given map[string]bool, parsed *Options) error {
	for name := range given {
		if name != "control-fd" && name != "consumer-pid" {
			return usage("--%s does not go with --control-fd", name)
		}
	}
	if parsed.ControlFD < 3 || parsed.ConsumerPID < 1 {
		return usage("--control-fd is %d and --consumer-pid %d, at least 3 and 1 expected", parsed.ControlFD, parsed.ConsumerPID)
	}
	return nil
}

func checkNumbers(parsed *Options) error {
	type bounded struct {
		name         string
		value        int
		least, limit int
	}
	all := []bounded{
		{"batch", parsed.Shape.Batch, 1, ring.MaxSlotTokens}, {"seq-len", parsed.Shape.SeqLen, 1, ring.MaxSlotTokens},
		{"workers", parsed.Workers, 1, 1024}, {"epochs", parsed.Epochs, 0, math.MaxInt32},
		{"cache-entries", parsed.CacheEntries, 0, 1 << 24}, {"documents", parsed.Selection.Documents, 0, math.MaxInt},
		{"world", parsed.Selection.World, 1, math.MaxInt32}, {"rank", parsed.Selection.Rank, 0, parsed.Selection.World - 1},
		{"ring-fd", parsed.RingFD, 3, math.MaxInt32}, {"consumer-pid", parsed.ConsumerPID, 1, math.MaxInt32},
	}
	for _, fd := range parsed.FilledFDs {
		all = append(all, bounded{"filled-fd", fd, 3, math.MaxInt32})
	}
	for _, fd := range parsed.FreeFDs {
		all = append(all, bounded{"free-fd", fd, 3, math.MaxInt32})
	}
	for _, number := range all {
		if number.value < number.least || number.value > number.limit {
			return usage("--%s is %d, outside %d to %d", number.name, number.value, number.least, number.limit)
		}
	}
	if parsed.CacheEntries&(parsed.CacheEntries-1) != 0 {
		return usage("--cache-entries is %d, not a power of two", parsed.CacheEntries)
	}
	if parsed.Shape.Batch*parsed.Shape.SeqLen > ring.MaxSlotTokens {
		return usage("--batch times --seq-len is %d ids, more than %d", parsed.Shape.Batch*parsed.Shape.SeqLen, ring.MaxSlotTokens)
	}
	if len(parsed.FilledFDs) != len(parsed.FreeFDs) {
		return usage("--filled-fd has %d pipes, --free-fd %d", len(parsed.FilledFDs), len(parsed.FreeFDs))
	}
	return nil
}

func checkSelection(parsed *Options) error {
	selection := parsed.Selection
	if len(selection.Inputs) == 0 && selection.Manifest == "" {
		return usage("--input is missing")
	}
	stdin := 0
	for _, input := range selection.Inputs {
		if input == "" {
			return usage("--input is empty")
		}
		if input == corpus.Stdin {
			stdin++
		}
	}
	switch {
	case stdin > 1:
		return usage("--input - is given %d times, and standard input can be read once", stdin)
	case stdin == 1 && parsed.Epochs != 1:
		return usage("--epochs is %d, and standard input can be read once", parsed.Epochs)
	case stdin == 0 && selection.StdinAs != "":
		return usage("--stdin-as is given without --input -")
	}
	return nil
}

func usage(what string, arguments ...any) error {
	return fault.New(fault.Usage, Program+" --help lists the flags", what, arguments...)
}
