// SPDX-License-Identifier: Apache-2.0

// Package corpus turns files, folders, a manifest and standard input into documents in one fixed order, takes the share
// of one rank, and hands them out in chunks. pybench/preprocess/corpus.py follows the same rules in Python:
//
//   - A file is one document, except for .jsonl and .ndjson: there each line that is not blank is one, the text of one
//     field. .gz and .zst around either are opened. A file of no bytes holds no document.
//   - Documents are numbered from 0 in the order of the corpus. Rank r of w has those whose number leaves r when divided by
//     w. A document without text counts in the numbering and is passed over.
//
// listing.go finds the files, format.go opens them, lines.go takes lines apart, reader.go deals out chunks. The text
// itself is not checked here: the tokenizer does that.
package corpus

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pybench/orchestrator/internal/fault"
)

// maxDocumentBytes is the tokenizer's own limit.
const maxDocumentBytes = 1<<32 - 1

// Stdin is the input that stands for standard input.
const Stdin = "-"

// Selection says where the documents are and which of them are wanted.
type Selection struct {
	Inputs    []string // files, folders, or Stdin
	Manifest  string   // a file that names files, separated by NUL bytes; "" for none
	StdinAs   string   // the file name that says how standard input is to be read
	Field     string   // of a JSON line
	Documents int      // the first so many; 0: all
	Rank      int
	World     int
	Input     io.Reader // standard input
}

// Corpus is immutable after Open, save for its counters.
type Corpus struct {
	Files      []File
	EmptyFiles int

	selection Selection
	counters  *Counters
}

// File is one file of the corpus. Bytes is its size when it was listed.
type File struct {
	Path  string
	Bytes int64

	format format
	input  io.Reader // standard input, else nil
}

// Open lists every file and looks at it, so that what is missing is named before any work begins.
func Open(selection Selection, counters *Counters) (*Corpus, error) {
	corpus := &Corpus{selection: selection, counters: counters}
	for _, input := range selection.Inputs {
		if err := corpus.addInput(input); err != nil {
			return nil, err
		}
	}
	if selection.Manifest != "" {
		if err := corpus.addManifest(selection.Manifest); err != nil {
			return nil, err
		}
	}
	if len(corpus.Files) == 0 {
		return nil, fault.New(fault.Input, "name at least one file with text", "the corpus is empty: no file of it has any bytes")
	}
	return corpus, nil
}

func (c *Corpus) addInput(input string) error {
	if input == Stdin {
		c.Files = append(c.Files, File{Path: "standard input", format: formatOf(c.selection.StdinAs), input: c.selection.Input})
		return nil
	}
	info, err := os.Stat(input)
	if err != nil {
		return fault.Unreadable(input, err)
	}
	if !info.IsDir() {
		return c.add(input)
	}
	paths, err := walk(input)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := c.add(path); err != nil {
			return err
		}
	}
	return nil
}

// walk lists the files below root in the order of their relative paths, without those that begin with a dot. Links to
// folders are not followed: they may lead back.
func walk(root string) ([]string, error) {
	var names []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fault.Unreadable(path, err)
		case path == root:
			return nil
		case strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir() || isLinkToFolder(path, entry):
			return nil
		}
		name, err := filepath.Rel(root, path)
		names = append(names, name)
		return err
	})
	slices.Sort(names)
	for at, name := range names {
		names[at] = filepath.Join(root, name)
	}
	return names, err
}

func isLinkToFolder(path string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (c *Corpus) addManifest(manifest string) error {
	names, err := os.ReadFile(manifest)
	if err != nil {
		return fault.Unreadable(manifest, err)
	}
	for index, name := range bytes.Split(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		if len(name) == 0 {
			return fault.New(fault.Input, "separate the paths by single NUL bytes", "%s: entry %d is empty", manifest, index+1)
		}
		if err := c.add(string(name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Corpus) add(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fault.Unreadable(path, err)
	case !info.Mode().IsRegular():
		return fault.New(fault.Input, "a corpus is made of text files", "%s is not a regular file", path)
	case info.Size() == 0:
		c.EmptyFiles++
		return nil
	}
	file := File{Path: path, Bytes: info.Size(), format: formatOf(path)}
	if file.isPlain() && file.Bytes > maxDocumentBytes {
		return tooLarge(path)
	}
	c.Files = append(c.Files, file)
	return nil
}

func tooLarge(place string) error {
	return fault.New(fault.Input, "split it", "%s has more bytes than a document may have, %d", place, int64(maxDocumentBytes))
}
