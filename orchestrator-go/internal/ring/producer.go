// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/packing"
)

// Producer fills slots. It belongs to one goroutine, except for Watch, which runs beside it.
type Producer struct {
	// CreditWait is how long Acquire has waited for readers, in ns.
	CreditWait atomic.Int64
	// Batches counts those that were handed over.
	Batches atomic.Uint64

	layout   layout
	memory   []byte
	readers  []*reader
	lent     []atomic.Bool // by slot: its reader has it, so only it may come back
	idBytes  int
	current  uint32
	sequence uint64
}

// reader is one process that takes batches: those whose sequence leaves its number when divided by how many there are.
type reader struct {
	filled  *os.File
	free    *os.File
	credits chan uint32 // room for all slots, so that watching never blocks on it
}

// Open maps the memory and checks it against what the command line says. One filled and one free pipe a reader.
func Open(ringFD int, filledFDs, freeFDs []int, shape Shape) (*Producer, error) {
	found, memory, err := mapMemory(ringFD)
	if err != nil {
		return nil, err
	}
	if err := found.fits(shape); err != nil {
		return nil, err
	}
	if len(filledFDs) != int(found.readers) || len(freeFDs) != int(found.readers) {
		return nil, malformed("%d readers, the command line has %d filled and %d free pipes", found.readers, len(filledFDs), len(freeFDs))
	}
	producer := &Producer{layout: found, memory: memory, lent: make([]atomic.Bool, found.slotCount)}
	for at := range filledFDs {
		filled, err := openPipe(filledFDs[at], "--filled-fd")
		if err != nil {
			return nil, err
		}
		free, err := openPipe(freeFDs[at], "--free-fd")
		if err != nil {
			return nil, err
		}
		producer.readers = append(producer.readers, &reader{filled, free, make(chan uint32, found.slotCount)})
	}
	for index := range producer.lent {
		producer.lent[index].Store(true)
	}
	return producer, nil
}

// Ready tells every reader that everything is loaded and how wide an id is.
func (p *Producer) Ready(idBytes int) error {
	p.idBytes = idBytes
	binary.LittleEndian.PutUint32(p.memory[atIDBytes:], uint32(idBytes))
	return p.sendAll(messageReady)
}

// Watch collects credits until a reader closes its end or breaks the protocol, then calls gone with the reason. It
// returns at once; its goroutines notice a dead reader also while every worker is busy.
func (p *Producer) Watch(gone context.CancelCauseFunc) {
	for number := range p.readers {
		go p.watch(number, gone)
	}
}

func (p *Producer) watch(number int, gone context.CancelCauseFunc) {
	message := make([]byte, messageBytes)
	free := bufio.NewReader(p.readers[number].free)
	for {
		if _, err := io.ReadFull(free, message); err != nil {
			gone(p.readerGone(number, err))
			return
		}
		index := binary.LittleEndian.Uint32(message)
		if index >= p.layout.slotCount || int(index)%len(p.readers) != number || !p.lent[index].Swap(false) {
			gone(fault.New(fault.Consumer, "both sides have to be of the same release",
				"the consumer gave back slot %d of %d, which it did not hold", index, p.layout.slotCount))
			return
		}
		p.readers[number].credits <- index
	}
}

// whyGone is what to do about a consumer that left.
const whyGone = "see the last lines of the process that reads the ring"

func (p *Producer) readerGone(number int, err error) error {
	which := "the consumer"
	if len(p.readers) > 1 {
		which = fmt.Sprintf("consumer %d of %d", number+1, len(p.readers))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) {
		return fault.New(fault.Consumer, whyGone, "%s closed the ring before the end of the corpus", which)
	}
	return fault.New(fault.Consumer, whyGone, "%s: %v", which, err)
}

// Acquire waits for a slot of the reader whose turn it is: asleep, for as long as that reader needs.
func (p *Producer) Acquire(ctx context.Context) (packing.Room, error) {
	credits := p.readers[p.turn()].credits
	select {
	case p.current = <-credits:
	default:
		began := time.Now()
		select {
		case p.current = <-credits:
		case <-ctx.Done():
		}
		p.CreditWait.Add(int64(time.Since(began)))
	}
	if ctx.Err() != nil {
		return packing.Room{}, context.Cause(ctx)
	}
	slot := p.memory[p.layout.slot(p.current):][:p.layout.slotBytes]
	ids := p.layout.idsAt()
	return packing.Room{
		IDs:     slot[ids : ids+p.layout.tokens()*uint64(p.idBytes)],
		Offsets: slot[slotHeaderBytes:ids],
	}, nil
}

// turn is the number of the reader that the next batch is for.
func (p *Producer) turn() int { return int(p.sequence % uint64(len(p.readers))) }

// Publish completes the header of the slot acquired last and announces it.
func (p *Producer) Publish(filled packing.Filled) error {
	header := p.memory[p.layout.slot(p.current):][:slotHeaderBytes]
	clear(header)
	little := binary.LittleEndian
	little.PutUint64(header[atSequence:], p.sequence)
	little.PutUint64(header[atTokenCount:], uint64(filled.Tokens))
	little.PutUint64(header[atTextBytes:], filled.TextBytes)
	little.PutUint64(header[atDocumentCount:], filled.Documents)
	little.PutUint64(header[atRowCount:], uint64(filled.Rows))
	number := p.turn()
	p.sequence++
	p.Batches.Add(1)
	p.lent[p.current].Store(true)
	return p.send(number, p.current)
}

// End says that the corpus is at its end; without it a reader takes end-of-file for a death.
func (p *Producer) End() error { return p.sendAll(messageEnd) }

func (p *Producer) sendAll(message uint32) error {
	for number := range p.readers {
		if err := p.send(number, message); err != nil {
			return err
		}
	}
	return nil
}

func (p *Producer) send(number int, message uint32) error {
	if _, err := p.readers[number].filled.Write(binary.LittleEndian.AppendUint32(nil, message)); err != nil {
		return p.readerGone(number, err)
	}
	return nil
}
