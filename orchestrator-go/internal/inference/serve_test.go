// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pybench/orchestrator/internal/onnxruntime/onnxruntimetest"
	"pybench/orchestrator/internal/tokenizer/tokenizertest"
)

// consumer is docs/formats/native.md written down a second time, as the worker's side has it.
type consumer struct {
	stream net.Conn
	ended  chan error
}

func serve(t *testing.T) *consumer {
	t.Helper()
	ours, theirs := net.Pipe()
	asking := &consumer{ours, make(chan error, 1)}
	go func() { asking.ended <- Serve(t.Context(), theirs) }()
	t.Cleanup(func() { ours.Close() })
	return asking
}

func (c *consumer) ask(t *testing.T, question map[string]any, raw string) (map[string]any, []byte) {
	t.Helper()
	text, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	message := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	message = binary.LittleEndian.AppendUint64(message, uint64(len(raw)))
	if _, err := c.stream.Write(append(append(message, text...), raw...)); err != nil {
		t.Fatal(err)
	}
	header := make([]byte, 12)
	if _, err := io.ReadFull(c.stream, header); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, binary.LittleEndian.Uint32(header))
	behind := make([]byte, binary.LittleEndian.Uint64(header[4:]))
	for _, part := range [][]byte{said, behind} {
		if _, err := io.ReadFull(c.stream, part); err != nil {
			t.Fatal(err)
		}
	}
	answer := map[string]any{}
	if err := json.Unmarshal(said, &answer); err != nil {
		t.Fatal(err)
	}
	return answer, behind
}

func (c *consumer) open(t *testing.T, operators ...string) {
	t.Helper()
	answer, _ := c.ask(t, map[string]any{"do": "open", "open": map[string]any{
		"library": onnxruntimetest.Library(t), "model": onnxruntimetest.Model(t, operators...), "threads": 1, "optimise": true,
		"providers": []any{map[string]any{"name": "CPUExecutionProvider", "options": []any{}}}}}, "")
	if answer["error"] != nil {
		t.Fatal(answer)
	}
}

func (c *consumer) feed(t *testing.T, batch, seqLen int, documents ...string) map[string]any {
	t.Helper()
	object, vocabulary := tokenizertest.Paths(t)
	var paths []string
	for number, text := range documents {
		path := filepath.Join(t.TempDir(), string(rune('a'+number))+".txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	answer, _ := c.ask(t, map[string]any{"do": "feed", "feed": map[string]any{"tokenizer_object": object,
		"tokenizer": vocabulary, "ends_of_text": []string{"<|endoftext|>"}, "field": "text", "world": 1, "workers": 1, "batch": batch, "seq_len": seqLen, "slots": 4,
		"hashed_batches": 2}}, strings.Join(paths, "\x00"))
	return answer
}

func TestTextIsFedAndEveryIterationIsTimed(t *testing.T) {
	asking := serve(t)
	asking.open(t, "Neg")
	if answer := asking.feed(t, 2, 4, "one two three four five", "six seven eight nine ten"); answer["error"] != nil {
		t.Fatal(answer)
	}
	answer, raw := asking.ask(t, map[string]any{"do": "replay", "replay": map[string]any{"iterations": 50, "minimum_ns": 0}}, "")
	if answer["error"] != nil || len(raw) != 50*3*8 {
		t.Fatalf("%v, %d bytes of times", answer, len(raw))
	}
	if answer["text_bytes"].(float64) <= 0 {
		t.Errorf("no text was taken: %v", answer)
	}
	_, ids := asking.ask(t, map[string]any{"do": "first"}, "")
	if len(ids) != 2*2*4*4 {
		t.Errorf("%d bytes of first ids", len(ids))
	}
}

func TestNaNIsRefusedAndTheProcessGoesOn(t *testing.T) {
	asking := serve(t)
	asking.open(t, "Neg", "Sqrt")
	asking.feed(t, 1, 4, "one two three four five")
	for range 2 {
		answer, _ := asking.ask(t, map[string]any{"do": "replay", "replay": map[string]any{"iterations": 1}}, "")
		if answer["kind"] != "output" || !strings.Contains(answer["error"].(string), "of the output logits are NaN") {
			t.Errorf("got %v", answer)
		}
	}
}

func TestQuestionsOutOfTurnAreRefused(t *testing.T) {
	asking := serve(t)
	refused := func(question map[string]any) {
		t.Helper()
		if answer, _ := asking.ask(t, question, ""); answer["kind"] != "consumer" || answer["hint"] == nil {
			t.Errorf("%v: got %v", question, answer)
		}
	}
	refused(map[string]any{"do": "replay"})
	asking.open(t, "Neg")
	refused(map[string]any{"do": "replay"})
	refused(map[string]any{"do": "first"})
	refused(map[string]any{"do": "dance"})
	refused(map[string]any{"do": "run", "inputs": []any{map[string]any{"name": "other", "kind": 7, "dimensions": []int{1, 1}}}})
	refused(map[string]any{"do": "feed", "feed": map[string]any{"batch": 0}})
}

func TestATextThatCannotBeUsedIsAnInputError(t *testing.T) {
	asking := serve(t)
	asking.open(t, "Neg")
	if answer := asking.feed(t, 1, 4, "\xff\xff\xff"); answer["kind"] != "input" {
		t.Errorf("got %v", answer)
	}
}

func TestItEndsWithItsConsumer(t *testing.T) {
	asking := serve(t)
	asking.stream.Close()
	if err := <-asking.ended; err != nil {
		t.Errorf("got %v", err)
	}
}
