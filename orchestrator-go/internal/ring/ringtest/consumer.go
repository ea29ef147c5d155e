// SPDX-License-Identifier: Apache-2.0

// Package ringtest is a reader of the ring for tests: docs/ring.md written down a second time, with its numbers as
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

// Consumer has both ends of everything; the producer's are the three FDs.
type Consumer struct {
	RingFD, FilledFD, FreeFD int

	Memory    []byte
	SlotBytes int
	slots     int
	tokens    int
	filled    *os.File
	free      *os.File
}

// New makes a ring with a correct header. Slots are not yet given to the producer: see GiveAll.
func New(t *testing.T, batch, seqLen, slots int) *Consumer {
	t.Helper()
	slotBytes := (64 + batch*seqLen*4 + 63) / 64 * 64
	consumer := &Consumer{SlotBytes: slotBytes, slots: slots, tokens: batch * seqLen}
	fd, err := unix.MemfdCreate("ringtest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	must(t, err)
	size := 64 + slots*slotBytes
	must(t, unix.Ftruncate(fd, int64(size)))
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	must(t, err)
	consumer.RingFD = fd
	consumer.Memory, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(t, err)
	copy(consumer.Memory, "PYBRING\x00")
	binary.LittleEndian.PutUint32(consumer.Memory[8:], 1)
	binary.LittleEndian.PutUint32(consumer.Memory[16:], uint32(slots))
	binary.LittleEndian.PutUint64(consumer.Memory[24:], uint64(slotBytes))
	binary.LittleEndian.PutUint64(consumer.Memory[32:], uint64(batch))
	binary.LittleEndian.PutUint64(consumer.Memory[40:], uint64(seqLen))
	consumer.filled, consumer.FilledFD = pipe(t, true)
	consumer.free, consumer.FreeFD = pipe(t, false)
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

// Close closes the consumer's ends, as its death would.
func (c *Consumer) Close() {
	c.filled.Close()
	c.free.Close()
}

// Give sends one credit.
func (c *Consumer) Give(t *testing.T, index uint32) {
	t.Helper()
	_, err := c.free.Write(binary.LittleEndian.AppendUint32(nil, index))
	must(t, err)
}

// GiveAll sends the credits of the start.
func (c *Consumer) GiveAll(t *testing.T) {
	t.Helper()
	for index := range c.slots {
		c.Give(t, uint32(index))
	}
}

// Next waits for one message; false at the end of the file.
func (c *Consumer) Next(t *testing.T) (uint32, bool) {
	t.Helper()
	message := make([]byte, 4)
	if _, err := io.ReadFull(c.filled, message); err == io.EOF {
		return 0, false
	} else {
		must(t, err)
	}
	return binary.LittleEndian.Uint32(message), true
}

// Slot is what one slot holds.
type Slot struct {
	Sequence, TextBytes, Documents uint64
	IDs                            []uint32
}

// Read copies a slot out.
func (c *Consumer) Read(t *testing.T, index uint32) Slot {
	t.Helper()
	slot := c.Memory[64+int(index)*c.SlotBytes:][:c.SlotBytes]
	if found := binary.LittleEndian.Uint64(slot[8:]); found != uint64(c.tokens) {
		t.Fatalf("token_count is %d, want %d", found, c.tokens)
	}
	ids := make([]uint32, c.tokens)
	for at := range ids {
		switch width := binary.LittleEndian.Uint32(c.Memory[12:]); width {
		case 2:
			ids[at] = uint32(binary.LittleEndian.Uint16(slot[64+2*at:]))
		case 4:
			ids[at] = binary.LittleEndian.Uint32(slot[64+4*at:])
		default:
			t.Fatalf("id_bytes is %d", width)
		}
	}
	return Slot{binary.LittleEndian.Uint64(slot), binary.LittleEndian.Uint64(slot[16:]), binary.LittleEndian.Uint64(slot[24:]), ids}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
