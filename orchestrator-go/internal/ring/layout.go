// SPDX-License-Identifier: Apache-2.0

// Package ring is the producer's side of docs/formats/ring.md: shared memory that the consumer made, and two pipes a reader.
// layout.go has the numbers of that document and nothing else; memory.go maps and checks, producer.go hands over.
package ring

import (
	"encoding/binary"

	"pybench/orchestrator/internal/fault"
)

const (
	magic           = "PYBRING\x00"
	version         = 2
	headerBytes     = 64
	slotHeaderBytes = 64 // a cache line, so ids begin on one
	alignment       = 64
	widestIDBytes   = 4
	offsetBytes     = 8
	messageBytes    = 4

	kindFixed  = 0
	kindRagged = 1

	messageReady = 0xFFFFFFFE
	messageEnd   = 0xFFFFFFFF

	maxSlots = 4096
	// maxReaders keeps the pipes of a ring within any process's limit of open files.
	maxReaders = 256
	// MaxSlotTokens keeps a slot below 1 GiB and every product of sizes far from overflow.
	MaxSlotTokens = 1 << 28
)

// Offsets in the ring header and in a slot's header.
const (
	atVersion, atIDBytes, atSlotCount, atReaders = 8, 12, 16, 20
	atSlotBytes, atBatch, atSeqLen, atKind       = 24, 32, 40, 48
	atPadding                                    = 52

	atSequence, atTokenCount, atTextBytes, atDocumentCount, atRowCount = 0, 8, 16, 24, 32
)

// Shape is what the command line says of the batches.
type Shape struct {
	Batch  int // rows
	SeqLen int // ids in a row
	Ragged bool
}

// layout is a ring header that has been checked.
type layout struct {
	slotCount uint32
	readers   uint32
	slotBytes uint64
	batch     uint64
	seqLen    uint64
	ragged    bool
}

func (l layout) tokens() uint64           { return l.batch * l.seqLen }
func (l layout) memoryBytes() uint64      { return headerBytes + uint64(l.slotCount)*l.slotBytes }
func (l layout) slot(index uint32) uint64 { return headerBytes + uint64(index)*l.slotBytes }

// idsAt is where the ids of a slot begin: behind its header and, in a ragged one, its offsets.
func (l layout) idsAt() uint64 {
	if !l.ragged {
		return slotHeaderBytes
	}
	return slotHeaderBytes + aligned((l.batch+1)*offsetBytes)
}

func (l layout) expectedSlotBytes() uint64 { return aligned(l.idsAt() + l.tokens()*widestIDBytes) }

func aligned(bytes uint64) uint64 { return (bytes + alignment - 1) / alignment * alignment }

// decodeLayout refuses every header that the consumer of this version would not write.
func decodeLayout(header []byte) (layout, error) {
	little := binary.LittleEndian
	if len(header) < headerBytes {
		return layout{}, malformed("%d bytes, too short for a header of %d", len(header), headerBytes)
	}
	if string(header[:len(magic)]) != magic {
		return layout{}, malformed("it begins with %q instead of %q", header[:len(magic)], magic)
	}
	if found := little.Uint32(header[atVersion:]); found != version {
		return layout{}, malformed("version %d, this program speaks %d", found, version)
	}
	if found := little.Uint32(header[atIDBytes:]); found != 0 {
		return layout{}, malformed("id_bytes is %d before the producer has set it", found)
	}
	kind := little.Uint32(header[atKind:])
	if kind > kindRagged || little.Uint32(header[atPadding:]) != 0 || little.Uint64(header[atPadding+4:]) != 0 {
		return layout{}, malformed("kind %d, or reserved bytes that are not zero", kind)
	}
	found := layout{
		slotCount: little.Uint32(header[atSlotCount:]),
		readers:   little.Uint32(header[atReaders:]),
		slotBytes: little.Uint64(header[atSlotBytes:]),
		batch:     little.Uint64(header[atBatch:]),
		seqLen:    little.Uint64(header[atSeqLen:]),
		ragged:    kind == kindRagged,
	}
	return found, found.check()
}

func (l layout) check() error {
	if l.slotCount < 1 || l.slotCount > maxSlots {
		return malformed("%d slots, outside 1 to %d", l.slotCount, maxSlots)
	}
	if l.readers < 1 || l.readers > maxReaders || l.slotCount%l.readers != 0 {
		return malformed("%d slots for %d readers, not a whole number of slots for each of 1 to %d", l.slotCount, l.readers, maxReaders)
	}
	if l.batch < 1 || l.seqLen < 1 || l.batch > MaxSlotTokens || l.seqLen > MaxSlotTokens || l.tokens() > MaxSlotTokens {
		return malformed("batches of %d rows of %d ids, outside 1 to %d ids", l.batch, l.seqLen, MaxSlotTokens)
	}
	if expected := l.expectedSlotBytes(); l.slotBytes != expected {
		return malformed("slots of %d bytes, %d expected", l.slotBytes, expected)
	}
	return nil
}

func (l layout) fits(shape Shape) error {
	if l.batch != uint64(shape.Batch) || l.seqLen != uint64(shape.SeqLen) || l.ragged != shape.Ragged {
		return malformed("batches of %d x %d ids, ragged %t; the command line says %d x %d, %t",
			l.batch, l.seqLen, l.ragged, shape.Batch, shape.SeqLen, shape.Ragged)
	}
	return nil
}

func malformed(what string, arguments ...any) error {
	return fault.New(fault.Consumer, "both sides have to be of the same release", "the ring is malformed: "+what, arguments...)
}
