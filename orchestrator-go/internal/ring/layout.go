// SPDX-License-Identifier: Apache-2.0

// Package ring is the producer's side of docs/ring.md: shared memory that the consumer made, and two pipes. layout.go
// has the numbers of that document and nothing else; producer.go has the hand-over.
package ring

import (
	"encoding/binary"

	"pybench/orchestrator/internal/fault"
)

const (
	magic           = "PYBRING\x00"
	version         = 1
	headerBytes     = 64
	slotHeaderBytes = 64 // a cache line, so ids begin on one
	alignment       = 64
	widestIDBytes   = 4
	messageBytes    = 4

	messageReady = 0xFFFFFFFE
	messageEnd   = 0xFFFFFFFF

	maxSlots = 4096
	// MaxSlotTokens keeps a slot below 1 GiB and every product of sizes far from overflow.
	MaxSlotTokens = 1 << 28
)

// Offsets in the ring header and in a slot's header.
const (
	atVersion, atIDBytes, atSlotCount, atReserved = 8, 12, 16, 20
	atSlotBytes, atBatch, atSeqLen, atPadding     = 24, 32, 40, 48

	atSequence, atTokenCount, atTextBytes, atDocumentCount = 0, 8, 16, 24
)

// layout is a ring header that has been checked.
type layout struct {
	slotCount uint32
	slotBytes uint64
	batch     uint64
	seqLen    uint64
}

func (l layout) tokens() uint64           { return l.batch * l.seqLen }
func (l layout) memoryBytes() uint64      { return headerBytes + uint64(l.slotCount)*l.slotBytes }
func (l layout) slot(index uint32) uint64 { return headerBytes + uint64(index)*l.slotBytes }

func slotBytesFor(tokens uint64) uint64 {
	return (slotHeaderBytes + tokens*widestIDBytes + alignment - 1) / alignment * alignment
}

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
	if little.Uint32(header[atReserved:]) != 0 || little.Uint64(header[atPadding:]) != 0 || little.Uint64(header[atPadding+8:]) != 0 {
		return layout{}, malformed("reserved bytes of the header are not zero")
	}
	found := layout{
		slotCount: little.Uint32(header[atSlotCount:]),
		slotBytes: little.Uint64(header[atSlotBytes:]),
		batch:     little.Uint64(header[atBatch:]),
		seqLen:    little.Uint64(header[atSeqLen:]),
	}
	if found.slotCount < 1 || found.slotCount > maxSlots {
		return layout{}, malformed("%d slots, outside 1 to %d", found.slotCount, maxSlots)
	}
	if found.batch < 1 || found.seqLen < 1 || found.batch > MaxSlotTokens || found.seqLen > MaxSlotTokens || found.tokens() > MaxSlotTokens {
		return layout{}, malformed("batches of %d rows of %d ids, outside 1 to %d ids", found.batch, found.seqLen, MaxSlotTokens)
	}
	if expected := slotBytesFor(found.tokens()); found.slotBytes != expected {
		return layout{}, malformed("slots of %d bytes, %d expected", found.slotBytes, expected)
	}
	return found, nil
}

func malformed(what string, arguments ...any) error {
	return fault.New(fault.Consumer, "both sides have to be of the same release", "the ring is malformed: "+what, arguments...)
}
