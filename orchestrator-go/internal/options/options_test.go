// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pybench/orchestrator/internal/corpus"
	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/options"
	"pybench/orchestrator/internal/ring"
)

const complete = "--tokenizer-object a.so --tokenizer t.json --end-of-text <e> --batch 4 --seq-len 128 --workers 2 " +
	"--ring-fd 3 --filled-fd 4 --free-fd 5 --consumer-pid 1"

func TestACompleteCommandLineIsTaken(t *testing.T) {
	parsed, err := options.Parse(strings.Fields(complete + " --end-of-text <f> --files-from m --epochs 0"))
	if err != nil {
		t.Fatal(err)
	}
	want := options.Options{TokenizerObject: "a.so", Tokenizer: "t.json", EndsOfText: []string{"<e>", "<f>"}, Workers: 2, CacheEntries: 1 << 17,
		Selection: corpus.Selection{Manifest: "m", Field: "text", World: 1}, Shape: ring.Shape{Batch: 4, SeqLen: 128},
		RingFD: 3, FilledFDs: []int{4}, FreeFDs: []int{5}, ConsumerPID: 1}
	if !reflect.DeepEqual(*parsed, want) {
		t.Fatalf("got %+v, want %+v", *parsed, want)
	}
}

func TestSeveralInputsRanksAndReadersAreTaken(t *testing.T) {
	parsed, err := options.Parse(strings.Fields(complete + " --input a --input - --stdin-as x.jsonl.gz --field body --documents 9" +
		" --rank 2 --world 3 --ragged --filled-fd 6,8 --free-fd 7,9"))
	if err != nil {
		t.Fatal(err)
	}
	selection := corpus.Selection{Inputs: []string{"a", "-"}, StdinAs: "x.jsonl.gz", Field: "body", Documents: 9, Rank: 2, World: 3}
	if !reflect.DeepEqual(parsed.Selection, selection) || !parsed.Shape.Ragged ||
		!slices.Equal(parsed.FilledFDs, []int{6, 8}) || !slices.Equal(parsed.FreeFDs, []int{7, 9}) {
		t.Fatalf("got %+v", *parsed)
	}
}

func TestABadCommandLineIsAUsageFaultThatNamesTheFlag(t *testing.T) {
	for extra, want := range map[string]string{
		"--nope 1":                      "unknown flag --nope",
		"word":                          `unexpected argument "word"`,
		"--batch x":                     "batch",
		"--batch 0":                     "--batch is 0",
		"--seq-len -1":                  "--seq-len is -1",
		"--workers 0":                   "--workers is 0",
		"--epochs -1":                   "--epochs is -1",
		"--cache-entries 3":             "not a power of two",
		"--ring-fd 1":                   "--ring-fd is 1",
		"--filled-fd 4,1":               "--filled-fd is 1",
		"--filled-fd 4,":                "not a number, or numbers with commas",
		"--filled-fd 4,6":               "--filled-fd has 2 pipes, --free-fd 1",
		"--tokenizer=":                  "--tokenizer is empty",
		"--field=":                      "--field is empty",
		"--input=":                      "--input is empty",
		"--rank 1":                      "--rank is 1, outside 0 to 0",
		"--world 0":                     "--world is 0",
		"--documents -1":                "--documents is -1",
		"--batch 65536 --seq-len 65536": "--batch times --seq-len",
		"--input - --input -":           "--input - is given 2 times",
		"--input - --epochs 2":          "--epochs is 2, and standard input can be read once",
		"--stdin-as x.gz":               "without --input -",
	} {
		_, err := options.Parse(strings.Fields(complete + " --files-from m " + extra))
		if fault.ExitCode(err) != fault.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", extra, err, want)
		}
	}
	if _, err := options.Parse(strings.Fields(complete)); err == nil || !strings.Contains(err.Error(), "--input is missing") {
		t.Errorf("without any input: got %v", err)
	}
}

func TestEveryRequiredFlagIsAskedFor(t *testing.T) {
	words := strings.Fields(complete)
	for at := 0; at < len(words); at += 2 {
		_, err := options.Parse(append(append([]string{}, words[:at]...), words[at+2:]...))
		if err == nil || !strings.Contains(err.Error(), words[at]+" is missing") {
			t.Errorf("without %s: got %v", words[at], err)
		}
	}
}

func TestHelpNamesEveryFlag(t *testing.T) {
	parsed, err := options.Parse([]string{"--help"})
	if err != nil || !parsed.Help {
		t.Fatalf("got %+v, %v", parsed, err)
	}
	var help strings.Builder
	options.WriteHelp(&help)
	for _, word := range strings.Fields(complete + " --epochs --cache-entries --version --help --input --files-from --stdin-as --field --documents --rank --world --ragged") {
		if strings.HasPrefix(word, "--") && !strings.Contains(help.String(), word+" ") {
			t.Errorf("%s is not in the help", word)
		}
	}
}

func TestACommandLineForInferenceTakesNothingElse(t *testing.T) {
	parsed, err := options.Parse([]string{"--control-fd", "5", "--consumer-pid", "77"})
	if err != nil || parsed.ControlFD != 5 || parsed.ConsumerPID != 77 {
		t.Fatalf("%+v, %v", parsed, err)
	}
	for want, arguments := range map[string][]string{
		"--batch does not go with --control-fd": {"--control-fd", "5", "--consumer-pid", "77", "--batch", "4"},
		"--control-fd is 2":                     {"--control-fd", "2", "--consumer-pid", "77"},
		"--consumer-pid 0":                      {"--control-fd", "5"},
	} {
		if _, err := options.Parse(arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", arguments, err, want)
		}
	}
}
