// SPDX-License-Identifier: Apache-2.0

package options_test

import (
	"strings"
	"testing"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/options"
)

const complete = "--tokenizer-object a.so --tokenizer t.json --files-from m --batch 4 --seq-len 128 --workers 2 " +
	"--ring-fd 3 --filled-fd 4 --free-fd 5 --consumer-pid 1"

func TestACompleteCommandLineIsTaken(t *testing.T) {
	parsed, err := options.Parse(strings.Fields(complete + " --epochs 0"))
	if err != nil {
		t.Fatal(err)
	}
	want := options.Options{TokenizerObject: "a.so", Tokenizer: "t.json", FilesFrom: "m", Batch: 4, SeqLen: 128, Workers: 2,
		Epochs: 0, CacheEntries: 1 << 17, RingFD: 3, FilledFD: 4, FreeFD: 5, ConsumerPID: 1}
	if *parsed != want {
		t.Fatalf("got %+v, want %+v", *parsed, want)
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
		"--tokenizer=":                  "--tokenizer is empty",
		"--batch 65536 --seq-len 65536": "--batch times --seq-len",
	} {
		_, err := options.Parse(strings.Fields(complete + " " + extra))
		if fault.ExitCode(err) != fault.ExitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", extra, err, want)
		}
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
	for _, word := range strings.Fields(complete + " --epochs --cache-entries --version --help") {
		if strings.HasPrefix(word, "--") && !strings.Contains(help.String(), word+" ") {
			t.Errorf("%s is not in the help", word)
		}
	}
}
