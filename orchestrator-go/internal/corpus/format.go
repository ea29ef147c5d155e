// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"pybench/orchestrator/internal/fault"
)

// format is how a file is read; its name alone decides.
type format struct {
	compression string // "", "gzip" or "zstd"
	lines       bool
}

// formatOf takes one ending off, the last, whatever stands before it, as Python does: what x.gz.zst holds is opened once.
// Endings are read in letters of either case.
func formatOf(name string) format {
	found := format{}
	name = strings.ToLower(name)
	if inner, is := strings.CutSuffix(name, ".gz"); is {
		name, found.compression = inner, "gzip"
	} else if inner, is := strings.CutSuffix(name, ".zst"); is {
		name, found.compression = inner, "zstd"
	}
	found.lines = strings.HasSuffix(name, ".jsonl") || strings.HasSuffix(name, ".ndjson")
	return found
}

// isPlain: its bytes are one document, and their number is known.
func (f File) isPlain() bool { return f.input == nil && f.format == format{} }

// stream is the file's text, decompressed. Close it.
func (f File) stream() (io.ReadCloser, error) {
	stored := io.NopCloser(f.input)
	if f.input == nil {
		file, err := os.Open(f.Path)
		if err != nil {
			return nil, fault.Unreadable(f.Path, err)
		}
		stored = file
	}
	switch f.format.compression {
	case "gzip":
		text, err := gzip.NewReader(stored)
		if err != nil {
			stored.Close()
			return nil, f.broken(err)
		}
		return &opened{text, f, stored.Close}, nil
	case "zstd":
		// One thread a stream: the pool of workers decides how many threads there are.
		text, err := zstd.NewReader(stored, zstd.WithDecoderConcurrency(1))
		if err != nil {
			stored.Close()
			return nil, f.broken(err)
		}
		return &opened{text, f, func() error { text.Close(); return stored.Close() }}, nil
	}
	return &opened{stored, f, stored.Close}, nil
}

// opened names the file in every error of its stream.
type opened struct {
	text  io.Reader
	file  File
	close func() error
}

func (o *opened) Read(into []byte) (int, error) {
	count, err := o.text.Read(into)
	if err != nil && err != io.EOF {
		err = o.file.broken(err)
	}
	return count, err
}

func (o *opened) Close() error { return o.close() }

// broken tells a file that cannot be read from one whose content is not what its name says.
func (f File) broken(err error) error {
	if _, is := errors.AsType[*os.PathError](err); is || f.format.compression == "" {
		return fault.Unreadable(f.Path, err)
	}
	reason := err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		reason = "it is incomplete"
	}
	return fault.New(fault.Input, "compress it again, or drop the ending from its name", "%s is not a complete %s file: %s",
		f.Path, f.format.compression, reason)
}

// appendAll adds the whole stream to text, up to the size that a document may have.
func (f File) appendAll(text []byte) ([]byte, error) {
	stream, err := f.stream()
	if err != nil {
		return text, err
	}
	defer stream.Close()
	buffer := bytes.NewBuffer(text)
	count, err := buffer.ReadFrom(io.LimitReader(stream, maxDocumentBytes+1))
	if err == nil && count > maxDocumentBytes {
		err = tooLarge(f.Path)
	}
	return buffer.Bytes(), err
}

// appendExactly refuses a file whose size is no longer the listed one: every path has to see the same documents.
func (f File) appendExactly(text []byte) ([]byte, error) {
	filled := len(text)
	text = grow(text, int(f.Bytes))
	file, err := os.Open(f.Path)
	if err != nil {
		return text, fault.Unreadable(f.Path, err)
	}
	defer file.Close()
	read, err := io.ReadFull(file, text[filled:])
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return text, fault.Unreadable(f.Path, err)
	}
	var beyond [1]byte
	extra, err := file.Read(beyond[:])
	if err != nil && err != io.EOF {
		return text, fault.Unreadable(f.Path, err)
	}
	if int64(read) != f.Bytes || extra != 0 {
		return text, fault.New(fault.Input, "leave the corpus alone while it is read", "%s changed its size of %d bytes while the corpus was read",
			f.Path, f.Bytes)
	}
	return text, nil
}

// grow lengthens text by so many undefined bytes, in the same memory where it suffices.
func grow(text []byte, bytes int) []byte {
	if cap(text)-len(text) < bytes {
		text = append(make([]byte, 0, len(text)+bytes), text...)
	}
	return text[:len(text)+bytes]
}
