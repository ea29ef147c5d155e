// SPDX-License-Identifier: Apache-2.0

// Package ringtest is a reader of the ring for tests: docs/formats/ring.md written down a second time, with its numbers as
// literals, so that a slip in the producer's constants shows.
package ringtest

import (
	"encoding/binary"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	Ready = 0xFFFFFFFE
	End   = 0xFFFFFFFF
)

// Shape is that of a ring: slots of batches of so many rows.
type Shape struct {
	Batch, SeqLen, Slots int
	Readers              int // 0: one
	Ragged               bool
}

// Consumer has both ends of everything, of all readers; the producer's are the FDs.
type Consumer struct {
	RingFD             int
	FilledFDs, FreeFDs []int

	Memory    []byte
	SlotBytes int
	shape     Shape
	idsAt     int
	filled    []*os.File
	free      []*os.File
}

// New makes a ring for one reader with a correct header. Slots are not yet given to the producer: see GiveAll.
func New(t *testing.T, batch, seqLen, slots int) *Consumer {
	t.Helper()
	return NewShaped(t, Shape{Batch: batch, SeqLen: seqLen, Slots: slots})
}

// NewShaped is New for every shape.
func NewShaped(t *testing.T, shape Shape) *Consumer {
	t.Helper()
	shape.Readers = max(shape.Readers, 1)
	consumer := &Consumer{shape: shape, idsAt: 64}
	if shape.Ragged {
		consumer.idsAt += ((shape.Batch+1)*8 + 63) / 64 * 64
	}
	consumer.SlotBytes = (consumer.idsAt + shape.Batch*shape.SeqLen*4 + 63) / 64 * 64
	fd, err := unix.MemfdCreate("ringtest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	must(t, err)
	size := 64 + shape.Slots*consumer.SlotBytes
	must(t, unix.Ftruncate(fd, int64(size)))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	must(t, err)
	consumer.RingFD = fd
	consumer.Memory, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	copy(consumer.Memory, "PYBRING\x00")
	put32, put64 := binary.LittleEndian.PutUint32, binary.LittleEndian.PutUint64
	put32(consumer.Memory[8:], 2)
	put32(consumer.Memory[16:], uint32(shape.Slots))
	put32(consumer.Memory[20:], uint32(shape.Readers))
	put64(consumer.Memory[24:], uint64(consumer.SlotBytes))
	put64(consumer.Memory[32:], uint64(shape.Batch))
	put64(consumer.Memory[40:], uint64(shape.SeqLen))
	if shape.Ragged {
		put32(consumer.Memory[48:], 1)
	}
	for range shape.Readers {
		filled, filledFD := pipe(t, true)
		free, freeFD := pipe(t, false)
		consumer.filled, consumer.free = append(consumer.filled, filled), append(consumer.free, free)
		consumer.FilledFDs, consumer.FreeFDs = append(consumer.FilledFDs, filledFD), append(consumer.FreeFDs, freeFD)
	}
	t.Cleanup(func() {
		consumer.Close()
		must(t, unix.Close(fd))
	})
	return consumer
}

// pipe returns the consumer's end as a file and the producer's as a number that the producer will own and close.
func pipe(t *testing.T, consumerReads bool) (*os.File, int) {
	t.Helper()
	var ends [2]int
	must(t, unix.Pipe2(ends[:], unix.O_CLOEXEC))
	if consumerReads {
		return os.NewFile(uintptr(ends[0]), "filled"), ends[1]
	}
	return os.NewFile(uintptr(ends[1]), "free"), ends[0]
}

// Close closes the ends of every reader, as their death would.
func (c *Consumer) Close() {
	for reader := range c.shape.Readers {
		c.CloseReader(reader)
	}
}

// CloseReader closes the ends of one.
func (c *Consumer) CloseReader(reader int) {
	c.filled[reader].Close()
	c.free[reader].Close()
}

// GiveAll gives every slot to the producer, in order.
func (c *Consumer) GiveAll(t *testing.T) {
	t.Helper()
	for index := range c.shape.Slots {
		c.Give(t, uint32(index))
	}
}

// Give gives one slot to the producer, through the pipe of the reader that it belongs to.
func (c *Consumer) Give(t *testing.T, index uint32) {
	t.Helper()
	_, err := c.free[int(index)%c.shape.Readers].Write(binary.LittleEndian.AppendUint32(nil, index))
	must(t, err)
}

// Next waits for a message to the first reader; false at the end of the pipe.
func (c *Consumer) Next(t *testing.T) (uint32, bool) {
	t.Helper()
	return c.NextOf(t, 0)
}

// NextOf waits for a message to one reader.
func (c *Consumer) NextOf(t *testing.T, reader int) (uint32, bool) {
	t.Helper()
	message := make([]byte, 4)
	if _, err := io.ReadFull(c.filled[reader], message); err == io.EOF {
		return 0, false
	} else {
		must(t, err)
	}
	return binary.LittleEndian.Uint32(message), true
}

// Slot is what one slot holds. Offsets: of the rows, in ids; nil in a fixed one.
type Slot struct {
	Sequence, TextBytes, Documents, Rows uint64
	IDs                                  []uint32
	Offsets                              []uint64
}

// Read copies a slot out.
func (c *Consumer) Read(t *testing.T, index uint32) Slot {
	t.Helper()
	memory := c.Memory[64+int(index)*c.SlotBytes:][:c.SlotBytes]
	little := binary.LittleEndian
	slot := Slot{Sequence: little.Uint64(memory), TextBytes: little.Uint64(memory[16:]),
		Documents: little.Uint64(memory[24:]), Rows: little.Uint64(memory[32:])}
	tokens := int(little.Uint64(memory[8:]))
	if full := c.shape.Batch * c.shape.SeqLen; tokens > full || !c.shape.Ragged && tokens != full {
		t.Fatalf("token_count is %d of %d", tokens, full)
	}
	if c.shape.Ragged {
		for row := range slot.Rows + 1 {
			slot.Offsets = append(slot.Offsets, little.Uint64(memory[64+8*row:]))
		}
	}
	for at := range tokens {
		switch width := little.Uint32(c.Memory[12:]); width {
		case 2:
			slot.IDs = append(slot.IDs, uint32(little.Uint16(memory[c.idsAt+2*at:])))
		case 4:
			slot.IDs = append(slot.IDs, little.Uint32(memory[c.idsAt+4*at:]))
		default:
			t.Fatalf("id_bytes is %d", width)
		}
	}
	return slot
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
