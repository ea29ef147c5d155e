// SPDX-License-Identifier: Apache-2.0

package onnxruntime

import (
	"unsafe"

	"github.com/ebitengine/purego"

	"pybench/orchestrator/internal/fault"
)

const (
	logErrors     = 3 // of severities: below are notes about passes over the graph
	optimiseNone  = 0
	optimiseAll   = 99
	arenaKind     = 1 // OrtArenaAllocator
	defaultMemory = 0 // OrtMemTypeDefault
)

// Execution providers by the names that ONNX Runtime has for them.
const (
	CPU      = "CPUExecutionProvider"
	CUDA     = "CUDAExecutionProvider"
	TensorRT = "TensorrtExecutionProvider"
)

// Provider is an execution provider and its options, as pairs of texts.
type Provider struct {
	Name    string     `json:"name"`
	Options [][]string `json:"options"`
}

// Options is how a model is opened. Providers: in the order of preference.
type Options struct {
	Model     string     `json:"model"`
	Threads   int        `json:"threads"` // inside an operator
	Optimise  bool       `json:"optimise"`
	Providers []Provider `json:"providers"`
}

// Port is an input or output as the model declares it. A free dimension is -1.
type Port struct {
	Name       string  `json:"name"`
	Kind       int32   `json:"kind"` // ONNXTensorElementDataType
	Dimensions []int64 `json:"dimensions"`
}

// Session is an opened model. It belongs to one goroutine at a time.
type Session struct {
	Inputs, Outputs []Port
	CUDAOptions     string // what the CUDA provider says of its options, "key=value;..."; "" without it

	library *Library
	arena   arena
	handle  uintptr
	cpu     uintptr // OrtMemoryInfo
	out     []uintptr

	inputNames, outputNames []uintptr
	inputs, outputs         []uintptr // values of the last run
	running                 []uintptr // arguments of a run, made once: a run allocates nothing of Go's
}

// Load opens a model. Errors of the model or of a provider are *StatusError.
func (l *Library) Load(options Options) (*Session, error) {
	s := &Session{library: l}
	var err error
	if s.out, err = s.arena.words(1); err != nil {
		return nil, err
	}
	environment, err := s.created("starting ONNX Runtime", atCreateEnv, logErrors, s.text("pybench"))
	if err != nil {
		return nil, err
	}
	if s.cpu, err = s.created("describing memory", atCreateCpuMemoryInfo, arenaKind, defaultMemory); err != nil {
		return nil, err
	}
	settings, err := s.settings(options)
	if err != nil {
		return nil, err
	}
	defer l.release(atReleaseSessionOptions, settings)
	if s.handle, err = s.created("opening the model", atCreateSession, environment, s.text(options.Model), settings); err != nil {
		return nil, err
	}
	return s, s.describe()
}

// Close frees the session; its library stays open.
func (s *Session) Close() {
	s.releaseOutputs()
	s.library.release(atReleaseSession, s.handle)
	s.handle = 0
}

// text is a C string that lives as long as the session. Without memory for it the address is 0, which C refuses.
func (s *Session) text(text string) uintptr {
	address, _ := s.arena.text(text)
	return address
}

// created calls a function whose last argument is where it puts what it makes.
func (s *Session) created(what string, place int, arguments ...uintptr) (uintptr, error) {
	s.out[0] = 0
	err := s.library.call(what, place, append(arguments, addressOf(s.out))...)
	return s.out[0], err
}

func (s *Session) settings(options Options) (uintptr, error) {
	settings, err := s.created("making options", atCreateSessionOptions)
	if err != nil {
		return 0, err
	}
	level := uintptr(optimiseNone)
	if options.Optimise {
		level = optimiseAll
	}
	for _, set := range []struct {
		place int
		value uintptr
	}{
		{atSetIntraOpNumThreads, uintptr(options.Threads)}, {atSetInterOpNumThreads, 1},
		{atSetSessionGraphOptimizationLevel, level}, {atSetSessionLogSeverityLevel, logErrors},
	} {
		if err := s.library.call("setting options", set.place, settings, set.value); err != nil {
			return settings, err
		}
	}
	for _, provider := range options.Providers {
		if err := s.append(settings, provider); err != nil {
			return settings, err
		}
	}
	return settings, nil
}

// append adds a provider. The CPU's is there by itself.
func (s *Session) append(settings uintptr, provider Provider) error {
	type places struct{ create, update, append, release int }
	known := map[string]places{
		CUDA: {atCreateCUDAProviderOptions, atUpdateCUDAProviderOptions,
			atSessionOptionsAppendExecutionProvider_CUDA_V2, atReleaseCUDAProviderOptions},
		TensorRT: {atCreateTensorRTProviderOptions, atUpdateTensorRTProviderOptions,
			atSessionOptionsAppendExecutionProvider_TensorRT_V2, atReleaseTensorRTProviderOptions},
	}
	at, is := known[provider.Name]
	if !is {
		if provider.Name == CPU {
			return nil
		}
		return fault.New(fault.Unsupported, "use cpu, cuda or tensorrt", "no provider %s", provider.Name)
	}
	made, err := s.created("making options of "+provider.Name, at.create)
	if err != nil {
		return err
	}
	defer s.library.release(at.release, made)
	keys, values := make([]string, len(provider.Options)), make([]string, len(provider.Options))
	for index, pair := range provider.Options {
		keys[index], values[index] = pair[0], pair[1]
	}
	keyTexts, err := s.arena.texts(keys)
	if err != nil {
		return err
	}
	valueTexts, err := s.arena.texts(values)
	if err != nil {
		return err
	}
	if err := s.library.call("setting options of "+provider.Name, at.update, made, addressOf(keyTexts), addressOf(valueTexts), uintptr(len(keys))); err != nil {
		return err
	}
	if provider.Name == CUDA {
		if s.CUDAOptions, err = s.allocatedText("reading options of "+provider.Name, atGetCUDAProviderOptionsAsString, made); err != nil {
			return err
		}
	}
	return s.library.call("starting "+provider.Name, at.append, settings, made)
}

// allocatedText calls a function that writes a text of the default allocator, given as its last argument but one.
func (s *Session) allocatedText(what string, place int, arguments ...uintptr) (string, error) {
	allocator, err := s.created(what, atGetAllocatorWithDefaultOptions)
	if err != nil {
		return "", err
	}
	address, err := s.created(what, place, append(arguments, allocator)...)
	if err != nil {
		return "", err
	}
	text := textAt(address)
	return text, s.library.call(what, atAllocatorFree, allocator, address)
}

// describe reads names, types and shapes of inputs and outputs.
func (s *Session) describe() (err error) {
	if s.Inputs, err = s.ports(atSessionGetInputCount, atSessionGetInputName, atSessionGetInputTypeInfo); err != nil {
		return err
	}
	if s.Outputs, err = s.ports(atSessionGetOutputCount, atSessionGetOutputName, atSessionGetOutputTypeInfo); err != nil {
		return err
	}
	if s.inputNames, err = s.arena.texts(namesOf(s.Inputs)); err != nil {
		return err
	}
	if s.outputNames, err = s.arena.texts(namesOf(s.Outputs)); err != nil {
		return err
	}
	if s.inputs, err = s.arena.words(len(s.Inputs)); err != nil {
		return err
	}
	if s.outputs, err = s.arena.words(len(s.Outputs)); err != nil {
		return err
	}
	s.running = []uintptr{s.handle, 0, addressOf(s.inputNames), addressOf(s.inputs), uintptr(len(s.inputs)),
		addressOf(s.outputNames), uintptr(len(s.outputs)), addressOf(s.outputs)}
	return nil
}

func (s *Session) ports(count, name, kind int) ([]Port, error) {
	const what = "describing the model"
	number, err := s.created(what, count, s.handle)
	if err != nil {
		return nil, err
	}
	ports := make([]Port, number)
	for index := range ports {
		if ports[index].Name, err = s.allocatedText(what, name, s.handle, uintptr(index)); err != nil {
			return nil, err
		}
		info, err := s.created(what, kind, s.handle, uintptr(index))
		if err != nil {
			return nil, err
		}
		tensor, err := s.created(what, atCastTypeInfoToTensorInfo, info)
		if err == nil && tensor == 0 {
			err = fault.New(fault.Input, "use a model of tensors", "%s is no tensor", ports[index].Name)
		}
		if err == nil {
			ports[index].Kind, ports[index].Dimensions, err = s.shape(tensor)
		}
		s.library.release(atReleaseTypeInfo, info)
		if err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// shape is element type and sizes of a tensor's description.
func (s *Session) shape(tensor uintptr) (int32, []int64, error) {
	const what = "describing a tensor"
	kind, err := s.created(what, atGetTensorElementType, tensor)
	if err != nil {
		return 0, nil, err
	}
	count, err := s.created(what, atGetDimensionsCount, tensor)
	if err != nil {
		return 0, nil, err
	}
	sizes, err := NewMemory(int(count) * pointerBytes)
	if err != nil {
		return 0, nil, err
	}
	if err := s.library.call(what, atGetDimensions, tensor, sizes.address(), count); err != nil {
		return 0, nil, err
	}
	found := make([]int64, count)
	copy(found, unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData([]byte(sizes)))), count))
	return int32(kind), found, nil
}

// Bind sets the input of the following runs: its memory is read where it lies, in each run anew.
func (s *Session) Bind(index int, memory Memory, kind int32, sizes []int64) error {
	shape, err := NewMemory(len(sizes) * pointerBytes)
	if err != nil {
		return err
	}
	copy(unsafe.Slice((*int64)(unsafe.Pointer(unsafe.SliceData([]byte(shape)))), len(sizes)), sizes)
	value, err := s.created("binding "+s.Inputs[index].Name, atCreateTensorWithDataAsOrtValue,
		s.cpu, memory.address(), uintptr(len(memory)), shape.address(), uintptr(len(sizes)), uintptr(kind))
	if err != nil {
		return err
	}
	s.library.release(atReleaseValue, s.inputs[index])
	s.inputs[index] = value
	return nil
}

// Run is one pass on what is bound. Outputs are made anew, as their sizes may change; those of the pass before are freed.
func (s *Session) Run() error {
	s.releaseOutputs()
	status, _, _ := purego.SyscallN(s.library.function(atRun), s.running...)
	return s.library.failure("running the model", status)
}

func (s *Session) releaseOutputs() {
	for index, value := range s.outputs {
		if value != 0 {
			purego.SyscallN(s.library.function(atReleaseValue), value)
			s.outputs[index] = 0
		}
	}
}

// Output is what the last run gave: a view that is valid until the next run.
type Output struct {
	Kind  int32
	Sizes []int64
	Bytes []byte
}

// Output describes and shows an output of the last run, in memory of the host.
func (s *Session) Output(index int) (Output, error) {
	const what = "reading an output"
	info, err := s.created(what, atGetTensorTypeAndShape, s.outputs[index])
	if err != nil {
		return Output{}, err
	}
	defer s.library.release(atReleaseTensorTypeAndShapeInfo, info)
	kind, sizes, err := s.shape(info)
	if err != nil {
		return Output{}, err
	}
	width, known := ElementBytes[kind]
	if !known {
		return Output{}, fault.New(fault.Input, "put a Cast to FP32 before it", "the output %s has elements of type %d", s.Outputs[index].Name, kind)
	}
	count := int64(width)
	for _, size := range sizes {
		count *= size
	}
	address, err := s.created(what, atGetTensorMutableData, s.outputs[index])
	if err != nil {
		return Output{}, err
	}
	return Output{kind, sizes, unsafe.Slice((*byte)(pointerTo(address)), count)}, nil
}

// Element types that a model may have here, by ONNXTensorElementDataType.
const (
	KindFloat32 = 1
	KindInt64   = 7
)

// ElementBytes is how wide an element is, of the types that pybench feeds or reads.
var ElementBytes = map[int32]int{KindFloat32: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, KindInt64: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8}

func namesOf(ports []Port) []string {
	names := make([]string, len(ports))
	for index, port := range ports {
		names[index] = port.Name
	}
	return names
}
