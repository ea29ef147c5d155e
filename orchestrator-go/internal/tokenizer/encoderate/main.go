// SPDX-License-Identifier: Apache-2.0

// encoderate measures the seconds that the tokenizer takes to encode a corpus when Go calls it, for
// bench/tokenizer/through_go.py. tokenizer-rs/examples/encode_rate.rs is the same program in Rust, without a boundary.
//
//	encoderate OBJECT VOCABULARY CORPUS LIMIT_BYTES CACHE_ENTRIES
//
// Each line on standard input asks for one pass over the corpus, `cold` with a new worker, anything else with the one
// there is. Each is answered by one line of JSON.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"pybench/orchestrator/internal/tokenizer"
)

// chunkBytes is that of the orchestrator's chunks.
const chunkBytes = 1 << 20

type result struct {
	Bytes   int     `json:"bytes"`
	IDs     int     `json:"ids"`
	CPUSec  float64 `json:"cpu_s"`
	WallSec float64 `json:"wall_s"`
}

func main() {
	if err := measure(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "encoderate:", err)
		os.Exit(1)
	}
}

func measure(arguments []string) error {
	if len(arguments) != 5 {
		return fmt.Errorf("%d arguments; OBJECT VOCABULARY CORPUS LIMIT_BYTES CACHE_ENTRIES are five", len(arguments))
	}
	limit, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	entries, err := strconv.Atoi(arguments[4])
	if err != nil {
		return err
	}
	chunks, err := readChunks(arguments[2], limit)
	if err != nil {
		return err
	}
	library, err := tokenizer.Open(arguments[0])
	if err != nil {
		return err
	}
	model, err := library.Load(arguments[1])
	if err != nil {
		return err
	}
	return answer(model, entries, chunks)
}

// answer makes a pass for each line.
func answer(model *tokenizer.Model, entries int, chunks []chunk) error {
	worker, err := model.NewWorker(entries)
	if err != nil {
		return err
	}
	buffers := newBuffers(chunks, model.IDBytes)
	lines, answers := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if lines.Text() == "cold" {
			worker.Close()
			if worker, err = model.NewWorker(entries); err != nil {
				return err
			}
		}
		found, err := encode(worker, buffers, chunks)
		if err != nil {
			return err
		}
		if err := answers.Encode(found); err != nil {
			return err
		}
	}
	worker.Close()
	return lines.Err()
}

// chunk is a run of documents and where each begins and ends in its text.
type chunk struct {
	text    []byte
	offsets []uint64
}

// readChunks reads whole documents of at most limit bytes together.
func readChunks(path string, limit int) ([]chunk, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	numbers, err := os.ReadFile(strings.TrimSuffix(path, ".bin") + ".off")
	if err != nil {
		return nil, err
	}
	var chunks []chunk
	begin, offsets := uint64(0), []uint64{0}
	for at := 8; at < len(numbers); at += 8 {
		end := binary.LittleEndian.Uint64(numbers[at:])
		if end > uint64(limit) {
			break
		}
		offsets = append(offsets, end-begin)
		if end-begin >= chunkBytes {
			chunks = append(chunks, chunk{text[begin:end], offsets})
			begin, offsets = end, []uint64{0}
		}
	}
	if last := offsets[len(offsets)-1]; last > 0 {
		chunks = append(chunks, chunk{text[begin : begin+last], offsets})
	}
	return chunks, nil
}

// buffers hold what one call gives.
type buffers struct {
	ids       []byte
	idOffsets []uint64
}

func newBuffers(chunks []chunk, idBytes int) buffers {
	longest, most := 0, 0
	for _, one := range chunks {
		longest, most = max(longest, len(one.text)), max(most, len(one.offsets))
	}
	return buffers{make([]byte, longest*idBytes), make([]uint64, most)}
}

// encode stays on one thread, as the orchestrator's workers do.
func encode(worker *tokenizer.Worker, into buffers, chunks []chunk) (*result, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	found := &result{}
	cpu, began := cpuTime(), time.Now()
	for _, one := range chunks {
		count, err := worker.Encode(one.text, one.offsets, into.ids, into.idOffsets[:len(one.offsets)])
		if err != nil {
			return nil, err
		}
		found.IDs += count
		found.Bytes += len(one.text)
	}
	found.CPUSec, found.WallSec = (cpuTime() - cpu).Seconds(), time.Since(began).Seconds()
	return found, nil
}

// cpuTime is that of this process, all its threads together.
func cpuTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(now.Nano())
}
