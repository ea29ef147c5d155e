// SPDX-License-Identifier: Apache-2.0

// Package inference runs a model on tokenized text in this process, and times it, with no Python in the loop: the native
// backend. A consumer asks by messages; docs/formats/native.md defines them. Between the begin and the end of an
// iteration lie one run of the model and the fetching of the next batch, as in Python's loop.
package inference

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"runtime"
	"strings"
	"unsafe"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/onnxruntime"
)

// server answers one consumer.
type server struct {
	ctx     context.Context
	clock   *Clock
	session *onnxruntime.Session
	feed    *Feed
	ids     onnxruntime.Memory // the batch in hand
}

// Serve answers requests until the consumer is gone, and returns nil then.
func Serve(ctx context.Context, stream io.ReadWriter) error {
	runtime.LockOSThread() // the loop that is timed stays on its thread
	defer runtime.UnlockOSThread()
	clock, err := NewClock()
	if err != nil {
		return err
	}
	answering := &server{ctx: ctx, clock: clock}
	for talk := (channel{stream}); ; {
		asked, err := talk.receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := answering.answer(asked)
		if err != nil {
			answer = refusal(err)
		}
		if err := talk.send(answer); err != nil {
			return nil
		}
	}
}

func (s *server) answer(asked *request) (*reply, error) {
	if asked.Do == "open" {
		return s.load(asked.Open)
	}
	if s.session == nil {
		return nil, fault.New(fault.Consumer, sameRelease, "%s before a model was opened", asked.Do)
	}
	switch asked.Do {
	case "run":
		return s.run(asked.Inputs, asked.raw)
	case "feed":
		return s.start(asked.Feed, asked.raw)
	case "replay":
		return s.replay(asked.Replay, asked.raw)
	case "first":
		return s.first()
	}
	return nil, fault.New(fault.Consumer, sameRelease, "asked to do %q", asked.Do)
}

func (s *server) load(asked openRequest) (*reply, error) {
	library, err := onnxruntime.Open(asked.Library)
	if err != nil {
		return nil, err
	}
	session, err := library.Load(asked.Options)
	if err != nil {
		return nil, err
	}
	s.session = session
	return &reply{Version: library.Version, CUDAOptions: session.CUDAOptions, Inputs: session.Inputs, Outputs: session.Outputs}, nil
}

// run is one pass on inputs that the consumer gives, whose arrays follow one another in raw.
func (s *server) run(inputs []onnxruntime.Port, raw []byte) (*reply, error) {
	if s.feed != nil {
		return nil, fault.New(fault.Consumer, sameRelease, "a pass on given inputs while text is fed")
	}
	for index, declared := range s.session.Inputs {
		given, bytes, err := inputNamed(declared.Name, inputs, raw)
		if err != nil {
			return nil, err
		}
		memory, err := onnxruntime.NewMemory(len(bytes))
		if err != nil {
			return nil, err
		}
		copy(memory, bytes)
		if err := s.session.Bind(index, memory, given.Kind, given.Dimensions); err != nil {
			return nil, err
		}
	}
	if err := s.session.Run(); err != nil {
		return nil, err
	}
	answer := &reply{}
	for index, declared := range s.session.Outputs {
		found, err := s.session.Output(index)
		if err != nil {
			return nil, err
		}
		answer.Outputs = append(answer.Outputs, onnxruntime.Port{Name: declared.Name, Kind: found.Kind, Dimensions: found.Sizes})
		answer.raw = append(answer.raw, found.Bytes...)
	}
	return answer, nil
}

func inputNamed(name string, inputs []onnxruntime.Port, raw []byte) (onnxruntime.Port, []byte, error) {
	at := 0
	for _, given := range inputs {
		size := onnxruntime.ElementBytes[given.Kind]
		for _, dimension := range given.Dimensions {
			size *= int(dimension)
		}
		if size < 0 || at+size > len(raw) {
			break
		}
		if given.Name == name {
			return given, raw[at : at+size], nil
		}
		at += size
	}
	return onnxruntime.Port{}, nil, fault.New(fault.Consumer, sameRelease, "the input %s was not given whole", name)
}

// start begins to feed text, and takes the first batch in hand. raw: the files, separated by NUL bytes.
func (s *server) start(options FeedOptions, raw []byte) (*reply, error) {
	if s.feed != nil {
		return nil, fault.New(fault.Consumer, sameRelease, "a second feed")
	}
	if inputs := s.session.Inputs; len(inputs) != 1 || inputs[0].Kind != onnxruntime.KindInt64 {
		return nil, fault.New(fault.Input, "use a language model", "the model takes other inputs than int64 ids alone")
	}
	if options.Batch < 1 || options.SeqLen < 1 || options.Slots < 2 || options.Workers < 1 || len(options.EndsOfText) < 1 {
		return nil, fault.New(fault.Consumer, sameRelease, "batches of %d x %d ids, %d slots, %d workers, %d ends of text",
			options.Batch, options.SeqLen, options.Slots, options.Workers, len(options.EndsOfText))
	}
	feed, err := Start(s.ctx, s.clock, options, strings.Split(string(raw), "\x00"))
	if err != nil {
		return nil, err
	}
	if s.ids, err = onnxruntime.NewMemory(options.Batch * options.SeqLen * int(unsafe.Sizeof(int64(0)))); err != nil {
		return nil, err
	}
	shape := []int64{int64(options.Batch), int64(options.SeqLen)}
	if err := s.session.Bind(0, s.ids, onnxruntime.KindInt64, shape); err != nil {
		return nil, err
	}
	s.feed = feed
	return &reply{}, feed.Next(s.ids)
}

// replay times iterations. The outputs of the last one are looked at once the clock has stopped.
func (s *server) replay(pace Pace, raw []byte) (*reply, error) {
	if s.feed == nil {
		return nil, fault.New(fault.Consumer, sameRelease, "a replay before text is fed")
	}
	for at := 0; at+8 <= len(raw); at += 8 {
		pace.arrivals = append(pace.arrivals, int64(binary.LittleEndian.Uint64(raw[at:])))
	}
	times, err := Replay(s.clock, pace, s.iterate)
	if err != nil {
		return nil, err
	}
	if len(times) > 0 {
		if err := s.checkOutputs(); err != nil {
			return nil, err
		}
	}
	answer := &reply{TextBytes: s.feed.TextBytes, WaitNs: s.feed.WaitNs}
	for _, time := range times {
		answer.raw = binary.LittleEndian.AppendUint64(answer.raw, uint64(time))
	}
	return answer, nil
}

// iterate runs the batch in hand and takes the next. A run has ended when it returns, so the memory of its batch is free.
func (s *server) iterate() error {
	if err := s.session.Run(); err != nil {
		return err
	}
	return s.feed.Next(s.ids)
}

// checkOutputs refuses numbers that are none.
func (s *server) checkOutputs() error {
	for index, declared := range s.session.Outputs {
		found, err := s.session.Output(index)
		if err != nil {
			return err
		}
		if found.Kind != onnxruntime.KindFloat32 {
			continue
		}
		values := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(found.Bytes))), len(found.Bytes)/4)
		bad := 0
		for _, value := range values {
			if math.IsNaN(float64(value)) {
				bad++
			}
		}
		if bad > 0 {
			return fault.New(fault.Output, "check the weights, and run the model in fp32", "%d of %d values of the output %s are NaN",
				bad, len(values), declared.Name)
		}
	}
	return nil
}

func (s *server) first() (*reply, error) {
	if s.feed == nil {
		return nil, fault.New(fault.Consumer, sameRelease, "no text was fed")
	}
	ids, err := s.feed.First()
	return &reply{raw: ids}, err
}
