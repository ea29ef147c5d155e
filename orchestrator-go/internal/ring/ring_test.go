// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/packing"
	"pybench/orchestrator/internal/ring"
	"pybench/orchestrator/internal/ring/ringtest"
)

func open(t *testing.T, consumer *ringtest.Consumer, batch, seqLen int) *ring.Producer {
	t.Helper()
	producer, err := ring.Open(consumer.RingFD, consumer.FilledFDs, consumer.FreeFDs, ring.Shape{Batch: batch, SeqLen: seqLen})
	if err != nil {
		t.Fatal(err)
	}
	return producer
}

func TestBatchesCrossTheRingInOrderWithTheirProgress(t *testing.T) {
	for _, slots := range []int{1, 2, 7} {
		for _, idBytes := range []int{2, 4} {
			consumer := ringtest.New(t, 3, 5, slots)
			producer := open(t, consumer, 3, 5)
			ctx, cancel := context.WithCancelCause(t.Context())
			producer.Watch(cancel)
			consumer.GiveAll(t)
			failed := make(chan error, 1)
			go func() { failed <- deliver(ctx, producer, idBytes, 20) }()
			if message, _ := consumer.Next(t); message != ringtest.Ready {
				t.Fatalf("the first message is %#x, want ready", message)
			}
			for sequence := range uint64(20) {
				index, open := consumer.Next(t)
				if !open {
					t.Fatalf("the pipe ended at batch %d: %v", sequence, <-failed)
				}
				slot := consumer.Read(t, index)
				if slot.Sequence != sequence || slot.Documents != sequence+1 || slot.TextBytes != 10*sequence || slot.IDs[14] != uint32(sequence) {
					t.Fatalf("batch %d arrived as %+v", sequence, slot)
				}
				consumer.Give(t, index)
			}
			if message, _ := consumer.Next(t); message != ringtest.End {
				t.Fatalf("the last message is %#x, want end", message)
			}
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// deliver sends batches whose ids all are the number of the batch.
func deliver(ctx context.Context, producer *ring.Producer, idBytes, batches int) error {
	if err := producer.Ready(idBytes); err != nil {
		return err
	}
	for sequence := range batches {
		room, err := producer.Acquire(ctx)
		if err != nil {
			return err
		}
		memory := room.IDs
		if len(memory) != 3*5*idBytes {
			return errors.New("a slot of the wrong size")
		}
		for at := 0; at < len(memory); at += idBytes {
			memory[at], memory[at+1] = byte(sequence), 0
			clear(memory[at+2 : at+idBytes])
		}
		if err := producer.Publish(packing.Filled{Rows: 3, Tokens: 15, Documents: uint64(sequence) + 1, TextBytes: 10 * uint64(sequence)}); err != nil {
			return err
		}
	}
	return producer.End()
}

func TestWithoutACreditTheProducerWaitsAndCountsTheWait(t *testing.T) {
	consumer := ringtest.New(t, 3, 5, 1)
	producer := open(t, consumer, 3, 5)
	ctx, cancel := context.WithCancelCause(t.Context())
	producer.Watch(cancel)
	failed := make(chan error, 1)
	go func() { failed <- deliver(ctx, producer, 2, 1) }()
	if message, _ := consumer.Next(t); message != ringtest.Ready {
		t.Fatalf("the first message is %#x, want ready", message)
	}
	const pause = 50 * time.Millisecond // it waits from now on
	time.Sleep(pause)
	select {
	case err := <-failed:
		t.Fatalf("it went on without a credit: %v", err)
	default:
	}
	consumer.GiveAll(t)
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if time.Duration(producer.CreditWait.Load()) < pause/2 {
		t.Fatalf("waited %v ns, want about %v", producer.CreditWait.Load(), pause)
	}
}

func TestACancelledProducerStopsWaitingAndSaysWhy(t *testing.T) {
	consumer := ringtest.New(t, 3, 5, 1)
	producer := open(t, consumer, 3, 5)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("told to")
	cancel(cause)
	if err := deliver(ctx, producer, 2, 1); !errors.Is(err, cause) {
		t.Fatalf("got %v, want %v", err, cause)
	}
}

func TestAConsumerThatClosesOrCheatsEndsTheProducer(t *testing.T) {
	for name, test := range map[string]struct {
		act  func(*ringtest.Consumer)
		want string
	}{
		"closed":         {func(c *ringtest.Consumer) { c.Close() }, "closed the ring"},
		"credit twice":   {func(c *ringtest.Consumer) { c.Give(t, 1); c.Give(t, 1) }, "slot 1 of 2"},
		"credit unknown": {func(c *ringtest.Consumer) { c.Give(t, 2) }, "slot 2 of 2"},
		"credit ready":   {func(c *ringtest.Consumer) { c.Give(t, ringtest.Ready) }, "slot 4294967294 of 2"},
	} {
		t.Run(name, func(t *testing.T) {
			consumer := ringtest.New(t, 3, 5, 2)
			producer := open(t, consumer, 3, 5)
			ctx, cancel := context.WithCancelCause(t.Context())
			test.act(consumer)
			producer.Watch(cancel)
			<-ctx.Done()
			if err := context.Cause(ctx); fault.KindOf(err) != fault.Consumer || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want a consumer fault with %q", err, test.want)
			}
		})
	}
}

func TestAMalformedHeaderIsRefused(t *testing.T) {
	put32, put64 := binary.LittleEndian.PutUint32, binary.LittleEndian.PutUint64
	for want, damage := range map[string]func(memory []byte){
		"it begins with":      func(m []byte) { m[3] = 'x' },
		"version 1":           func(m []byte) { put32(m[8:], 1) },
		"id_bytes is 4":       func(m []byte) { put32(m[12:], 4) },
		"0 slots":             func(m []byte) { put32(m[16:], 0) },
		"4097 slots":          func(m []byte) { put32(m[16:], 4097) },
		"its header asks for": func(m []byte) { put32(m[16:], 3) },
		"reserved bytes":      func(m []byte) { m[63] = 1 },
		"kind 2":              func(m []byte) { put32(m[48:], 2) },
		"for 0 readers":       func(m []byte) { put32(m[20:], 0) },
		"for 257 readers":     func(m []byte) { put32(m[20:], 257) },
		"2 slots for 3":       func(m []byte) { put32(m[20:], 3) },
		"2 readers, the":      func(m []byte) { put32(m[20:], 2) },
		"slots of 256 bytes":  func(m []byte) { put64(m[24:], 256) },
		"batches of 0 rows":   func(m []byte) { put64(m[32:], 0) },
		"of 0 ids":            func(m []byte) { put64(m[40:], 0) },
		"outside 1 to":        func(m []byte) { put64(m[32:], 1<<63); put64(m[40:], 2) },
		"command line says":   func(m []byte) { put64(m[32:], 5); put64(m[40:], 3) },
	} {
		t.Run(want, func(t *testing.T) {
			consumer := ringtest.New(t, 3, 5, 2)
			damage(consumer.Memory)
			_, err := ring.Open(consumer.RingFD, consumer.FilledFDs, consumer.FreeFDs, ring.Shape{Batch: 3, SeqLen: 5})
			if fault.KindOf(err) != fault.Consumer || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v, want a consumer fault with %q", err, want)
			}
		})
	}
}

func TestWhatIsNoSealedMemoryOrNoPipeIsRefused(t *testing.T) {
	consumer := ringtest.New(t, 3, 5, 2)
	unsealed, err := unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(unsealed)
	file, err := os.Open("ring_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for want, fds := range map[string][3]int{
		"not a memfd sealed":         {unsealed, consumer.FilledFDs[0], consumer.FreeFDs[0]},
		"bad file descriptor":        {1 << 20, consumer.FilledFDs[0], consumer.FreeFDs[0]},
		"--filled-fd 1048576 is not": {consumer.RingFD, 1 << 20, consumer.FreeFDs[0]},
		"--free-fd":                  {consumer.RingFD, consumer.FilledFDs[0], int(file.Fd())},
	} {
		if _, err := ring.Open(fds[0], []int{fds[1]}, []int{fds[2]}, ring.Shape{Batch: 3, SeqLen: 5}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestBatchesAreDealtToTheReadersInTurnAndASlowOneHoldsUpTheRest(t *testing.T) {
	const readers, batches = 3, 12
	consumer := ringtest.NewShaped(t, ringtest.Shape{Batch: 3, SeqLen: 5, Slots: 2 * readers, Readers: readers})
	producer := open(t, consumer, 3, 5)
	ctx, cancel := context.WithCancelCause(t.Context())
	producer.Watch(cancel)
	consumer.GiveAll(t)
	failed := make(chan error, 1)
	go func() { failed <- deliver(ctx, producer, 2, batches) }()
	for reader := range readers {
		if message, _ := consumer.NextOf(t, reader); message != ringtest.Ready {
			t.Fatalf("reader %d: the first message is %#x, want ready", reader, message)
		}
	}
	taken := map[int][]uint64{}
	take := func(reader int) {
		index, _ := consumer.NextOf(t, reader)
		if int(index)%readers != reader {
			t.Fatalf("reader %d was given slot %d of another", reader, index)
		}
		taken[reader] = append(taken[reader], consumer.Read(t, index).Sequence)
		consumer.Give(t, index)
	}
	// The last reader takes nothing, so two batches each is all that the others get.
	for range 2 {
		take(0)
		take(1)
	}
	select {
	case err := <-failed:
		t.Fatalf("it ran ahead of the slow reader: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	for range batches / readers {
		take(2)
		for reader := range 2 {
			if len(taken[reader]) < batches/readers {
				take(reader)
			}
		}
	}
	for reader := range readers {
		for turn, sequence := range taken[reader] {
			if sequence != uint64(turn*readers+reader) {
				t.Fatalf("reader %d got batches %v", reader, taken[reader])
			}
		}
		if message, _ := consumer.NextOf(t, reader); message != ringtest.End {
			t.Fatalf("reader %d: the last message is %#x, want end", reader, message)
		}
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}

func TestAReaderAmongSeveralThatLeavesOrCheatsIsNamed(t *testing.T) {
	for want, act := range map[string]func(*ringtest.Consumer){
		"consumer 2 of 2 closed the ring": func(c *ringtest.Consumer) { c.CloseReader(1) },
		"slot 1 of 4":                     func(c *ringtest.Consumer) { c.Give(t, 1); c.Give(t, 1) },
	} {
		consumer := ringtest.NewShaped(t, ringtest.Shape{Batch: 3, SeqLen: 5, Slots: 4, Readers: 2})
		producer := open(t, consumer, 3, 5)
		ctx, cancel := context.WithCancelCause(t.Context())
		producer.Watch(cancel)
		act(consumer)
		<-ctx.Done()
		if err := context.Cause(ctx); fault.KindOf(err) != fault.Consumer || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a consumer fault with %q", err, want)
		}
	}
}

// A write can meet the closed pipe before the watch has read its end: both say the same.
func TestAReaderThatLeftIsNamedByTheWriteToo(t *testing.T) {
	consumer := ringtest.NewShaped(t, ringtest.Shape{Batch: 3, SeqLen: 5, Slots: 4, Readers: 2})
	producer := open(t, consumer, 3, 5)
	consumer.CloseReader(1)
	err := producer.Ready(2)
	if fault.KindOf(err) != fault.Consumer || !strings.Contains(err.Error(), "consumer 2 of 2 closed the ring") {
		t.Fatalf("got %v", err)
	}
}

func TestARaggedRingAndAFixedCommandLineDoNotFit(t *testing.T) {
	consumer := ringtest.NewShaped(t, ringtest.Shape{Batch: 3, SeqLen: 5, Slots: 2, Ragged: true})
	_, err := ring.Open(consumer.RingFD, consumer.FilledFDs, consumer.FreeFDs, ring.Shape{Batch: 3, SeqLen: 5})
	if err == nil || !strings.Contains(err.Error(), "ragged true; the command line says 3 x 5, false") {
		t.Fatalf("got %v", err)
	}
}
