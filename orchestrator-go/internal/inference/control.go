// SPDX-License-Identifier: Apache-2.0

package inference

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/onnxruntime"
)

// A message is a header of 12 bytes, a JSON object, and raw bytes: docs/formats/native.md.
const (
	headerBytes  = 12
	maxJSONBytes = 1 << 24
	maxRawBytes  = 1 << 40
)

// sameRelease is what to do about a consumer that breaks the protocol.
const sameRelease = "install pybench and pybench-orchestrator of the same release"

// channel is the stream between the consumer, which asks, and this process, which answers.
type channel struct{ stream io.ReadWriter }

// request is what the consumer asks. Which of its parts count depends on Do.
type request struct {
	Do     string             `json:"do"`
	Open   openRequest        `json:"open"`
	Feed   FeedOptions        `json:"feed"`
	Replay Pace               `json:"replay"`
	Inputs []onnxruntime.Port `json:"inputs"`
	raw    []byte
}

type openRequest struct {
	Library string `json:"library"`
	onnxruntime.Options
}

// reply is an answer, or an error in its place.
type reply struct {
	Error  string `json:"error,omitempty"`
	Kind   string `json:"kind,omitempty"` // a fault.Kind
	Hint   string `json:"hint,omitempty"`
	Status string `json:"status,omitempty"` // ONNX Runtime's name of what went wrong

	Version     string             `json:"version,omitempty"`
	CUDAOptions string             `json:"cuda_options,omitempty"`
	Inputs      []onnxruntime.Port `json:"inputs,omitempty"`
	Outputs     []onnxruntime.Port `json:"outputs,omitempty"`
	TextBytes   uint64             `json:"text_bytes,omitempty"`
	WaitNs      int64              `json:"wait_ns,omitempty"`

	raw []byte
}

// receive returns io.EOF once the consumer is gone.
func (c channel) receive() (*request, error) {
	header := make([]byte, headerBytes)
	if _, err := io.ReadFull(c.stream, header); err != nil {
		if errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, io.EOF
		}
		return nil, err
	}
	text, raw := binary.LittleEndian.Uint32(header), binary.LittleEndian.Uint64(header[4:])
	if text > maxJSONBytes || raw > maxRawBytes {
		return nil, fault.New(fault.Consumer, sameRelease, "a message of %d and %d bytes", text, raw)
	}
	content := make([]byte, uint64(text)+raw)
	if _, err := io.ReadFull(c.stream, content); err != nil {
		return nil, io.EOF
	}
	asked := &request{raw: content[text:]}
	if err := json.Unmarshal(content[:text], asked); err != nil {
		return nil, fault.New(fault.Consumer, sameRelease, "a message is malformed: %v", err)
	}
	return asked, nil
}

func (c channel) send(answer *reply) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return fault.New(fault.Internal, "", "an answer cannot be written: %v", err)
	}
	message := binary.LittleEndian.AppendUint32(nil, uint32(len(text)))
	message = binary.LittleEndian.AppendUint64(message, uint64(len(answer.raw)))
	if _, err := c.stream.Write(slices.Concat(message, text, answer.raw)); err != nil {
		return io.EOF
	}
	return nil
}

// refusal is an error as an answer.
func refusal(err error) *reply {
	answer := &reply{Error: err.Error(), Kind: string(fault.KindOf(err))}
	if classified, is := errors.AsType[*fault.Error](err); is {
		answer.Error, answer.Hint = classified.What, classified.Hint
	}
	if status, is := errors.AsType[*onnxruntime.StatusError](err); is {
		answer.Error, answer.Status = status.Message, status.Name()
	}
	return answer
}
