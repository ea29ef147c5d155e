// SPDX-License-Identifier: Apache-2.0

package onnxruntime

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"pybench/orchestrator/internal/fault"
)

// Memory is bytes outside of Go's heap, for as long as this process lives: C may keep addresses into it.
type Memory []byte

// NewMemory maps at least one page, zeroed.
func NewMemory(bytes int) (Memory, error) {
	pages, err := unix.Mmap(-1, 0, max(bytes, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fault.New(fault.Memory, "choose a smaller batch, sequence or model", "mapping %d bytes: %v", bytes, err)
	}
	return pages[:bytes], nil
}

func (m Memory) address() uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData([]byte(m)))) }

// arena holds C strings and arrays of words; what it gave out stays where it is.
type arena struct{ chunks []Memory }

const chunkBytes = 1 << 14

func (a *arena) take(bytes int) (Memory, error) {
	bytes = (bytes + pointerBytes - 1) / pointerBytes * pointerBytes
	if len(a.chunks) == 0 || len(a.chunks[len(a.chunks)-1]) < bytes {
		chunk, err := NewMemory(max(bytes, chunkBytes))
		if err != nil {
			return nil, err
		}
		a.chunks = append(a.chunks, chunk)
	}
	last := len(a.chunks) - 1
	taken := a.chunks[last][:bytes]
	a.chunks[last] = a.chunks[last][bytes:]
	return taken, nil
}

// text is a C string.
func (a *arena) text(text string) (uintptr, error) {
	memory, err := a.take(len(text) + 1)
	copy(memory, text)
	return memory.address(), err
}

// words is an array of words, as a slice over memory that stays where it is.
func (a *arena) words(count int) ([]uintptr, error) {
	memory, err := a.take(max(count, 1) * pointerBytes)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*uintptr)(unsafe.Pointer(unsafe.SliceData([]byte(memory)))), count), nil
}

// texts is an array of C strings.
func (a *arena) texts(all []string) ([]uintptr, error) {
	words, err := a.words(len(all))
	if err != nil {
		return nil, err
	}
	for at, text := range all {
		if words[at], err = a.text(text); err != nil {
			return nil, err
		}
	}
	return words, nil
}

func addressOf(words []uintptr) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(words))) }
