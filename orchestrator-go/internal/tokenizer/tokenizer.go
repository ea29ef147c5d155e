// SPDX-License-Identifier: Apache-2.0

// Package tokenizer is the whole boundary to the tokenizer's shared object (tokenizer-rs/include/pybench_tokenizer.h):
// it opens the object by path, converts, calls and maps status codes to errors. No logic of its own.
//
// dlopen through purego rather than linking through cgo: the very file that Python uses is opened, the build needs no C
// compiler and comes out byte-identical from any folder. A call costs about 0.3 us, and one call encodes a chunk of
// documents, so that is nothing.
package tokenizer

import (
	"fmt"
	"os"
	"strings"

	"github.com/ebitengine/purego"

	"pybench/orchestrator/internal/fault"
)

// ABIVersion is PBT_ABI_VERSION of the header that this file was written against.
const ABIVersion = 2

// Status codes, by their names in the header.
const (
	statusOK          = 0
	statusArgument    = 1
	statusFormat      = 3
	statusUnsupported = 4
	statusUTF8        = 5
	statusCapacity    = 6
	statusID          = 7
	statusInternal    = 8
)

const messageCapacity = 1024

// CacheEntries of each worker, where nobody asks for another number: 2^17 of 32 bytes were the fastest size on text
// that was not seen before, of 2^14 to 2^20 tried.
const CacheEntries = 1 << 17

// Library is the opened shared object. The fields have the C signatures; opaque handles are uintptr.
type Library struct {
	BuildID string

	modelLoad func(json *byte, jsonBytes uintptr, model *uintptr, message *byte, messageCapacity uintptr, messageBytes *uintptr) int32
	modelFree func(model uintptr)
	idBytes   func(model uintptr) uint32
	tokenToID func(model uintptr, token *byte, tokenBytes uintptr, id *uint32) int32
	workerNew func(model uintptr, cacheEntries uintptr, worker *uintptr) int32
	workerEnd func(worker uintptr)
	encode    func(worker uintptr, text *byte, offsets *uint64, documentCount uintptr, ids *byte, idsCapacity uintptr,
		idOffsets *uint64, count *uintptr, position *uintptr) int32
}

// Model is immutable and may be shared by any number of goroutines.
type Model struct {
	IDBytes int
	library *Library
	handle  uintptr
}

// Worker has a cache of its own and belongs to one goroutine at a time.
type Worker struct {
	model  *Model
	handle uintptr
}

// UTF8Error says where a text stops being UTF-8, in bytes from its beginning.
type UTF8Error struct{ Position int64 }

func (e *UTF8Error) Error() string { return fmt.Sprintf("not UTF-8 at byte %d", e.Position) }

// Open loads the object and compares ABI versions before it binds or calls anything else.
func Open(path string) (*Library, error) {
	const hint = "give the shared object of the installed pybench-tokenizer; `make setup` builds it"
	object, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fault.New(fault.Internal, hint, "cannot open the tokenizer: %v", err)
	}
	library := &Library{}
	var abiVersion func() uint32
	if err := bind(object, &abiVersion, "pbt_abi_version"); err != nil {
		return nil, fault.New(fault.Internal, hint, "%s is not the tokenizer: %v", path, err)
	}
	if found := abiVersion(); found != ABIVersion {
		return nil, fault.New(fault.Internal, "build both from one release: `make setup`",
			"%s speaks tokenizer ABI %d, this program %d", path, found, ABIVersion)
	}
	var buildID func() string
	for _, symbol := range []struct {
		function any
		name     string
	}{
		{&buildID, "pbt_build_id"}, {&library.modelLoad, "pbt_model_load"}, {&library.modelFree, "pbt_model_free"},
		{&library.idBytes, "pbt_model_id_bytes"}, {&library.tokenToID, "pbt_model_token_to_id"},
		{&library.workerNew, "pbt_worker_new"}, {&library.workerEnd, "pbt_worker_free"}, {&library.encode, "pbt_encode_batch"},
	} {
		if err := bind(object, symbol.function, symbol.name); err != nil {
			return nil, fault.New(fault.Internal, hint, "%s is incomplete: %v", path, err)
		}
	}
	library.BuildID = buildID()
	return library, nil
}

// bind exists because purego's own RegisterLibFunc panics where a symbol is missing.
func bind(object uintptr, function any, name string) error {
	symbol, err := purego.Dlsym(object, name)
	if err != nil {
		return err
	}
	purego.RegisterFunc(function, symbol)
	return nil
}

// Load reads a tokenizer.json.
func (l *Library) Load(path string) (*Model, error) {
	json, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Unreadable("tokenizer "+path, err)
	}
	if len(json) == 0 {
		return nil, refusal(path, statusFormat, "the file is empty")
	}
	model := &Model{library: l}
	message := make([]byte, messageCapacity)
	var messageBytes uintptr
	status := l.modelLoad(&json[0], uintptr(len(json)), &model.handle, &message[0], messageCapacity, &messageBytes)
	if status != statusOK {
		return nil, refusal(path, status, string(message[:min(messageBytes, messageCapacity)]))
	}
	model.IDBytes = int(l.idBytes(model.handle))
	return model, nil
}

// refusal uses the words of the Python side, so that every path says the same of the same file.
func refusal(path string, status int32, message string) error {
	switch status {
	case statusFormat:
		return fault.New(fault.Input, "save it again with Hugging Face tokenizers (Tokenizer.save)",
			"tokenizer %s is not a well-formed tokenizer.json: %s", path, message)
	case statusUnsupported:
		return fault.New(fault.Input, "use a byte-level BPE with the splitting rule of GPT-2, Llama 3, cl100k or o200k; path hf takes any",
			"tokenizer %s is not supported: %s", path, message)
	}
	return fault.New(fault.Internal, "", "loading tokenizer %s failed: %s (%s)", path, message, statusName(status))
}

// Close frees the model; workers that are still open keep what they need.
func (m *Model) Close() {
	m.library.modelFree(m.handle)
	m.handle = 0
}

// FirstID is the id of the first of these tokens that the vocabulary has.
func (m *Model) FirstID(tokens []string) (uint32, error) {
	for _, token := range tokens {
		text := append([]byte(token), 0) // an empty token has an address as well
		var id uint32
		if m.library.tokenToID(m.handle, &text[0], uintptr(len(token)), &id) == statusOK {
			return id, nil
		}
	}
	return 0, fault.New(fault.Input, "add one as a special token",
		"the tokenizer has no token %s, which separates the documents of a batch", strings.Join(tokens, " or "))
}

// NewWorker: cacheEntries is 0 or a power of two.
func (m *Model) NewWorker(cacheEntries int) (*Worker, error) {
	worker := &Worker{model: m}
	if status := m.library.workerNew(m.handle, uintptr(cacheEntries), &worker.handle); status != statusOK {
		return nil, fault.New(fault.Internal, "try a smaller --cache-entries", "no tokenizer worker with %d cache entries (%s)",
			cacheEntries, statusName(status))
	}
	return worker, nil
}

// Close frees the worker.
func (w *Worker) Close() {
	w.model.library.workerEnd(w.handle)
	w.handle = 0
}

// Encode writes the ids of all documents of text to ids and where each document's begin to idOffsets. offsets has one
// entry more than there are documents; idOffsets needs as many, ids room for one id a byte of text. Returns the number
// of ids. A *UTF8Error is returned as such: only the caller knows which file lies at that position.
func (w *Worker) Encode(text []byte, offsets []uint64, ids []byte, idOffsets []uint64) (int, error) {
	documents := len(offsets) - 1
	capacity := len(ids) / w.model.IDBytes
	if documents < 1 || len(idOffsets) != len(offsets) || capacity < len(text) || len(text) == 0 || offsets[documents] > uint64(len(text)) {
		return 0, fault.New(fault.Internal, "", "encoding %d bytes of %d documents into %d ids and %d offsets: buffers do not fit",
			len(text), documents, capacity, len(idOffsets))
	}
	var count, position uintptr
	status := w.model.library.encode(w.handle, &text[0], &offsets[0], uintptr(documents), &ids[0], uintptr(capacity),
		&idOffsets[0], &count, &position)
	switch status {
	case statusOK:
		return int(count), nil
	case statusUTF8:
		return 0, &UTF8Error{Position: int64(position)}
	}
	return 0, fault.New(fault.Internal, "", "encoding %d bytes failed (%s)", len(text), statusName(status))
}

func statusName(status int32) string {
	names := map[int32]string{
		statusArgument: "PBT_ERROR_ARGUMENT", statusFormat: "PBT_ERROR_FORMAT",
		statusUnsupported: "PBT_ERROR_UNSUPPORTED", statusUTF8: "PBT_ERROR_UTF8", statusCapacity: "PBT_ERROR_CAPACITY",
		statusID: "PBT_ERROR_ID", statusInternal: "PBT_ERROR_INTERNAL",
	}
	if name, known := names[status]; known {
		return name
	}
	return fmt.Sprintf("unknown status %d", status)
}
