// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/packing"
)

// Producer fills slots. It belongs to one goroutine, except for Watch, which runs beside it.
type Producer struct {
	// CreditWait is how long Acquire has waited for the consumer.
	CreditWait time.Duration

	layout   layout
	memory   []byte
	filled   *os.File
	free     *os.File
	credits  chan uint32   // as many as there are slots, so that Watch never blocks on it
	lent     []atomic.Bool // by slot: the consumer has it, so only it may come back
	idBytes  int
	current  uint32
	sequence uint64
}

// Open maps the memory and checks it against what the command line says.
func Open(ringFD, filledFD, freeFD, batch, seqLen int) (*Producer, error) {
	found, memory, err := mapMemory(ringFD)
	if err != nil {
		return nil, err
	}
	if found.batch != uint64(batch) || found.seqLen != uint64(seqLen) {
		return nil, malformed("batches of %d x %d ids, the command line says %d x %d", found.batch, found.seqLen, batch, seqLen)
	}
	filled, err := openPipe(filledFD, "--filled-fd")
	if err != nil {
		return nil, err
	}
	free, err := openPipe(freeFD, "--free-fd")
	if err != nil {
		return nil, err
	}
	producer := &Producer{
		layout: found, memory: memory, filled: filled, free: free,
		credits: make(chan uint32, found.slotCount), lent: make([]atomic.Bool, found.slotCount),
	}
	for index := range producer.lent {
		producer.lent[index].Store(true)
	}
	return producer, nil
}

func mapMemory(ringFD int) (layout, []byte, error) {
	var status unix.Stat_t
	if err := unix.Fstat(ringFD, &status); err != nil {
		return layout{}, nil, malformed("--ring-fd %d: %v", ringFD, err)
	}
	// A memory file that shrinks under a mapping kills its readers with SIGBUS; the seal rules that out.
	seals, err := unix.FcntlInt(uintptr(ringFD), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return layout{}, nil, malformed("--ring-fd %d is not a memfd sealed against shrinking", ringFD)
	}
	if status.Size < headerBytes {
		return layout{}, nil, malformed("%d bytes, too short for a header of %d", status.Size, headerBytes)
	}
	header := make([]byte, headerBytes)
	if _, err := unix.Pread(ringFD, header, 0); err != nil {
		return layout{}, nil, malformed("--ring-fd %d: %v", ringFD, err)
	}
	found, err := decodeLayout(header)
	if err != nil {
		return layout{}, nil, err
	}
	if found.memoryBytes() != uint64(status.Size) {
		return layout{}, nil, malformed("%d bytes, its header asks for %d", status.Size, found.memoryBytes())
	}
	memory, err := unix.Mmap(ringFD, 0, int(status.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return layout{}, nil, fault.New(fault.Internal, "", "mapping %d bytes of ring: %v", status.Size, err)
	}
	return found, memory, nil
}

// openPipe makes reads and writes wait in Go's poller instead of holding a thread.
func openPipe(fd int, name string) (*os.File, error) {
	var status unix.Stat_t
	if err := unix.Fstat(fd, &status); err != nil || status.Mode&unix.S_IFMT != unix.S_IFIFO {
		return nil, malformed("%s %d is not a pipe", name, fd)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, malformed("%s %d: %v", name, fd, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Ready tells the consumer that everything is loaded and how wide an id is.
func (p *Producer) Ready(idBytes int) error {
	p.idBytes = idBytes
	binary.LittleEndian.PutUint32(p.memory[atIDBytes:], uint32(idBytes))
	return p.send(messageReady)
}

// Watch collects credits until the consumer closes its end or breaks the protocol, then calls gone with the reason.
// It runs in a goroutine of its own, also while every worker is busy, so a dead consumer is noticed at once.
func (p *Producer) Watch(gone context.CancelCauseFunc) {
	message := make([]byte, messageBytes)
	free := bufio.NewReader(p.free)
	for {
		if _, err := io.ReadFull(free, message); err != nil {
			gone(consumerGone(err))
			return
		}
		index := binary.LittleEndian.Uint32(message)
		if index >= p.layout.slotCount || !p.lent[index].Swap(false) {
			gone(fault.New(fault.Consumer, "both sides have to be of the same release",
				"the consumer gave back slot %d of %d, which it did not hold", index, p.layout.slotCount))
			return
		}
		p.credits <- index
	}
}

func consumerGone(err error) error {
	if errors.Is(err, io.EOF) {
		return fault.New(fault.Consumer, "", "the consumer closed the ring before the end of the corpus")
	}
	return fault.New(fault.Consumer, "", "reading the free pipe: %v", err)
}

// Acquire waits for a credit: asleep, for as long as the consumer needs.
func (p *Producer) Acquire(ctx context.Context) ([]byte, error) {
	select {
	case p.current = <-p.credits:
	default:
		began := time.Now()
		select {
		case p.current = <-p.credits:
		case <-ctx.Done():
		}
		p.CreditWait += time.Since(began)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ids := p.layout.slot(p.current) + slotHeaderBytes
	return p.memory[ids : ids+p.layout.tokens()*uint64(p.idBytes)], nil
}

// Publish completes the header of the slot acquired last and announces it.
func (p *Producer) Publish(progress packing.Progress) error {
	header := p.memory[p.layout.slot(p.current):][:slotHeaderBytes]
	clear(header)
	little := binary.LittleEndian
	little.PutUint64(header[atSequence:], p.sequence)
	little.PutUint64(header[atTokenCount:], p.layout.tokens())
	little.PutUint64(header[atTextBytes:], progress.TextBytes)
	little.PutUint64(header[atDocumentCount:], progress.Documents)
	p.sequence++
	p.lent[p.current].Store(true)
	return p.send(p.current)
}

// End says that the corpus is at its end; without it the consumer takes end-of-file for a death.
func (p *Producer) End() error {
	return p.send(messageEnd)
}

func (p *Producer) send(message uint32) error {
	if _, err := p.filled.Write(binary.LittleEndian.AppendUint32(nil, message)); err != nil {
		return fault.New(fault.Consumer, "", "the consumer closed the ring before the end of the corpus (%v)", err)
	}
	return nil
}
