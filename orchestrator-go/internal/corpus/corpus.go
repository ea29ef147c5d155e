// SPDX-License-Identifier: Apache-2.0

// Package corpus lists the documents of a manifest and reads them in groups. A document is a file; the manifest names
// the files, separated by NUL bytes, in the order in which every tokenizer path sees them. It does not look for files
// itself and does not check their text: the tokenizer does.
package corpus

import (
	"bytes"
	"errors"
	"io"
	"os"

	"pybench/orchestrator/internal/fault"
)

// chunkBytes is how much text one worker takes at a time: large enough that a call into the tokenizer and a hand-over
// (about a microsecond each) vanish beside the half millisecond of work, small enough that text and ids stay in a
// core's L2 cache.
const chunkBytes = 256 << 10

// maxDocumentBytes is the tokenizer's own limit.
const maxDocumentBytes = 1<<32 - 1

// Document is one file with the size that it had when it was listed.
type Document struct {
	Path  string
	Bytes int64
}

// Chunk is a run of neighbouring documents: Documents[First:End].
type Chunk struct {
	First, End int
	Bytes      int64
}

// Corpus is immutable after Open, so any number of goroutines may read chunks of it.
type Corpus struct {
	Documents  []Document
	Chunks     []Chunk
	EmptyFiles int
}

// Open reads the manifest and looks at every file, so that what is missing is named before any work begins.
func Open(manifest string) (*Corpus, error) {
	names, err := os.ReadFile(manifest)
	if err != nil {
		return nil, unreadable(manifest, err)
	}
	corpus := &Corpus{}
	for index, name := range bytes.Split(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		if len(name) == 0 {
			return nil, fault.New(fault.Input, "separate the paths by single NUL bytes", "%s: entry %d is empty", manifest, index+1)
		}
		if err := corpus.add(string(name)); err != nil {
			return nil, err
		}
	}
	if len(corpus.Documents) == 0 {
		return nil, fault.New(fault.Input, "name at least one file with text", "%s: all of its files are empty", manifest)
	}
	corpus.group()
	return corpus, nil
}

func (c *Corpus) add(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return unreadable(path, err)
	case !info.Mode().IsRegular():
		return fault.New(fault.Input, "a corpus is made of text files", "%s is not a regular file", path)
	case info.Size() > maxDocumentBytes:
		return fault.New(fault.Input, "split it", "%s has %d bytes, a document at most %d", path, info.Size(), int64(maxDocumentBytes))
	case info.Size() == 0:
		c.EmptyFiles++
	default:
		c.Documents = append(c.Documents, Document{Path: path, Bytes: info.Size()})
	}
	return nil
}

// group cuts the documents into chunks of at least chunkBytes; a longer document is a chunk's last.
func (c *Corpus) group() {
	open := Chunk{}
	for index, document := range c.Documents {
		open.End = index + 1
		open.Bytes += document.Bytes
		if open.Bytes >= chunkBytes || open.End == len(c.Documents) {
			c.Chunks = append(c.Chunks, open)
			open = Chunk{First: open.End}
		}
	}
}

// Read fills text with the chunk's documents end to end and offsets with where each begins, one more entry for the
// end. Both buffers are reused when they are large enough.
func (c *Corpus) Read(chunk Chunk, text []byte, offsets []uint64) ([]byte, []uint64, error) {
	if int64(cap(text)) < chunk.Bytes {
		text = make([]byte, chunk.Bytes)
	}
	text = text[:chunk.Bytes]
	offsets = append(offsets[:0], 0)
	filled := int64(0)
	for _, document := range c.Documents[chunk.First:chunk.End] {
		end := filled + document.Bytes
		if err := readExactly(document, text[filled:end]); err != nil {
			return text, offsets, err
		}
		filled = end
		offsets = append(offsets, uint64(end))
	}
	return text, offsets, nil
}

// Locate turns a byte position in a chunk's text into a document and the position inside it.
func (c *Corpus) Locate(chunk Chunk, position int64) (Document, int64) {
	documents := c.Documents[chunk.First:chunk.End]
	for _, document := range documents[:len(documents)-1] {
		if position < document.Bytes {
			return document, position
		}
		position -= document.Bytes
	}
	return documents[len(documents)-1], position
}

// readExactly refuses a file whose size is no longer the listed one: every path has to see the same documents.
func readExactly(document Document, into []byte) error {
	file, err := os.Open(document.Path)
	if err != nil {
		return unreadable(document.Path, err)
	}
	defer file.Close()
	read, err := io.ReadFull(file, into)
	if err != nil && err != io.ErrUnexpectedEOF && err != io.EOF {
		return unreadable(document.Path, err)
	}
	var beyond [1]byte
	extra, err := file.Read(beyond[:])
	if err != nil && err != io.EOF {
		return unreadable(document.Path, err)
	}
	if int64(read) != document.Bytes || extra != 0 {
		return fault.New(fault.Input, "leave the corpus alone while it is read", "%s changed its size of %d bytes while the corpus was read",
			document.Path, document.Bytes)
	}
	return nil
}

// unreadable names the file once: the system's own text would name it a second time.
func unreadable(path string, err error) error {
	if system, is := errors.AsType[*os.PathError](err); is {
		err = system.Err
	}
	return fault.New(fault.Input, "", "%s cannot be read: %v", path, err)
}
