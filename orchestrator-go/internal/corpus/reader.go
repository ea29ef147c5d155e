// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"
)

// chunkBytes is how much text one worker takes at a time. It is large enough that what Go's scheduler does around a
// call into the tokenizer vanishes beside the milliseconds of work. The scheduler takes the processor away from a
// goroutine that is in a call, and gives it back. That is some 30 us and three switches of threads a call, 5 % of the
// work at 256 KiB (bench/results/tokenizer.md).
const chunkBytes = 1 << 20

// expansion is by how much a compressed file is taken to grow, for the size of a chunk alone.
const expansion = 4

// readAheadBytes: one read of a stream; a pipe holds no more anyway.
const readAheadBytes = 64 << 10

// Counters of reading, summed over threads. Bytes are those of the text, decompressed, JSON around it included.
type Counters struct {
	Bytes          atomic.Uint64
	Documents      atomic.Uint64 // with text, of this rank
	EmptyDocuments atomic.Uint64
	Busy           atomic.Int64 // ns
}

// Chunk is a run of neighbouring documents of this rank on its way to a worker. Text and Offsets (one entry more than
// documents) are what Load leaves. All of it is reused.
type Chunk struct {
	Text    []byte
	Offsets []uint64

	corpus *Corpus
	files  []File // whole files, for Load to read
	lines  []byte // or lines of one file, read already
	ends   []int  // of the lines, without their line breaks
	places []place
}

// place says where a document came from; line is 0 for a whole file.
type place struct {
	file File
	line int
}

func (p place) String() string {
	if p.line == 0 {
		return p.file.Path
	}
	return fmt.Sprintf("%s line %d", p.file.Path, p.line)
}

// Reader goes through a corpus once. It belongs to one goroutine; the chunks that it has filled do not.
type Reader struct {
	corpus *Corpus
	next   int // file
	number int // document
	lines  *lineReader
}

// Reader begins at the first document.
func (c *Corpus) Reader() *Reader { return &Reader{corpus: c} }

// Fill puts the next documents of this rank into chunk; false: there are none left. Whole files are only named: the
// worker reads them, so that many do so at a time. Lines come one after the other, so they are read here.
func (r *Reader) Fill(chunk *Chunk) (bool, error) {
	chunk.reset(r.corpus)
	size := int64(0)
	for size < chunkBytes && (r.lines != nil || r.next < len(r.corpus.Files)) && !r.isPastLimit() {
		if r.lines == nil && !r.corpus.Files[r.next].format.lines {
			size += r.takeFile(chunk)
			continue
		}
		if len(chunk.files) > 0 {
			break
		}
		if err := r.takeLines(chunk); err != nil {
			return false, err
		}
		size = int64(len(chunk.lines))
		if r.lines == nil && len(chunk.ends) > 0 {
			break // a chunk of lines is of one file
		}
	}
	return len(chunk.places) > 0, nil
}

// Close gives up a stream that was not read to its end.
func (r *Reader) Close() {
	if r.lines != nil {
		r.lines.close()
		r.lines = nil
	}
}

func (r *Reader) isPastLimit() bool {
	return r.corpus.selection.Documents > 0 && r.number >= r.corpus.selection.Documents
}

// isOwn counts a document and says whether it belongs to this rank.
func (r *Reader) isOwn() bool {
	own := r.number%r.corpus.selection.World == r.corpus.selection.Rank
	r.number++
	return own
}

func (r *Reader) takeFile(chunk *Chunk) int64 {
	file := r.corpus.Files[r.next]
	r.next++
	if !r.isOwn() {
		return 0
	}
	chunk.files = append(chunk.files, file)
	chunk.places = append(chunk.places, place{file: file})
	if file.format.compression != "" {
		return expansion * file.Bytes
	}
	return file.Bytes
}

// takeLines adds lines of one file until the chunk is full or the file at its end.
func (r *Reader) takeLines(chunk *Chunk) error {
	began := time.Now()
	defer func() { r.corpus.counters.Busy.Add(int64(time.Since(began))) }()
	if r.lines == nil {
		lines, err := openLines(r.corpus.Files[r.next])
		if err != nil {
			return err
		}
		r.lines = lines
	}
	for len(chunk.lines) < chunkBytes && !r.isPastLimit() {
		grown, err := r.lines.appendLine(chunk.lines)
		if err == io.EOF {
			r.Close()
			r.next++
			return nil
		}
		if err != nil {
			return err
		}
		line := grown[len(chunk.lines):]
		if len(bytes.TrimLeft(line, " \t\r")) > 0 && r.isOwn() {
			chunk.lines = grown
			chunk.ends = append(chunk.ends, len(grown))
			chunk.places = append(chunk.places, place{r.lines.file, r.lines.number})
		}
	}
	return nil
}

// lineReader gives the lines of one file, numbered from 1.
type lineReader struct {
	file   File
	number int
	stream *bufio.Reader
	close  func() error
}

func openLines(file File) (*lineReader, error) {
	stream, err := file.stream()
	if err != nil {
		return nil, err
	}
	return &lineReader{file: file, stream: bufio.NewReaderSize(stream, readAheadBytes), close: stream.Close}, nil
}

// appendLine adds the next line to text without its line break. io.EOF: there is none; the last needs no line break.
func (l *lineReader) appendLine(text []byte) ([]byte, error) {
	l.number++
	begin := len(text)
	for {
		part, err := l.stream.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case len(text)-begin > maxDocumentBytes:
			return text, tooLarge(place{l.file, l.number}.String())
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(text) > begin:
			return text, nil
		case err != nil:
			return text, err
		}
		return text[:len(text)-1], nil
	}
}

func (c *Chunk) reset(corpus *Corpus) {
	c.corpus = corpus
	c.files, c.places = c.files[:0], c.places[:0]
	c.lines, c.ends = c.lines[:0], c.ends[:0]
}

// Load fills Text and Offsets with the documents of the chunk that have text. It runs in a worker.
func (c *Chunk) Load() error {
	began := time.Now()
	counters := c.corpus.counters
	defer func() { counters.Busy.Add(int64(time.Since(began))) }()
	c.Text, c.Offsets = c.Text[:0], append(c.Offsets[:0], 0)
	kept := c.places[:0]
	for index, where := range c.places {
		before := len(c.Text)
		if err := c.loadOne(index); err != nil {
			return err
		}
		if len(c.Text) == before {
			counters.EmptyDocuments.Add(1)
			continue
		}
		c.Offsets = append(c.Offsets, uint64(len(c.Text)))
		kept = append(kept, where)
	}
	c.places = kept
	counters.Documents.Add(uint64(len(kept)))
	counters.Bytes.Add(uint64(max(len(c.Text), len(c.lines))))
	return nil
}

func (c *Chunk) loadOne(index int) (err error) {
	switch {
	case len(c.files) == 0:
		begin := 0
		if index > 0 {
			begin = c.ends[index-1]
		}
		c.Text, err = appendField(c.Text, c.lines[begin:c.ends[index]], c.corpus.selection.Field, c.places[index].String())
	case c.files[index].isPlain():
		c.Text, err = c.files[index].appendExactly(c.Text)
	default:
		c.Text, err = c.files[index].appendAll(c.Text)
	}
	return err
}

// Documents is how many Load has left.
func (c *Chunk) Documents() int { return len(c.Offsets) - 1 }

// NotUTF8 names the document at a position of Text, and the position in it.
func (c *Chunk) NotUTF8(position int64) error {
	index := 0
	for index+1 < c.Documents() && position >= int64(c.Offsets[index+1]) {
		index++
	}
	where := c.places[index]
	return NotUTF8(where.String(), filepath.Base(where.file.Path), position-int64(c.Offsets[index]))
}
