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
	producer, err := ring.Open(consumer.RingFD, consumer.FilledFD, consumer.FreeFD, batch, seqLen)
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
			go producer.Watch(cancel)
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
		memory, err := producer.Acquire(ctx)
		if err != nil {
			return err
		}
		if len(memory) != 3*5*idBytes {
			return errors.New("a slot of the wrong size")
		}
		for at := 0; at < len(memory); at += idBytes {
			memory[at], memory[at+1] = byte(sequence), 0
			clear(memory[at+2 : at+idBytes])
		}
		if err := producer.Publish(packing.Progress{Documents: uint64(sequence) + 1, TextBytes: 10 * uint64(sequence)}); err != nil {
			return err
		}
	}
	return producer.End()
}

func TestWithoutACreditTheProducerWaitsAndCountsTheWait(t *testing.T) {
	consumer := ringtest.New(t, 3, 5, 1)
	producer := open(t, consumer, 3, 5)
	ctx, cancel := context.WithCancelCause(t.Context())
	go producer.Watch(cancel)
	failed := make(chan error, 1)
	go func() { failed <- deliver(ctx, producer, 2, 1) }()
	const pause = 50 * time.Millisecond
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
	if producer.CreditWait < pause/2 {
		t.Fatalf("waited %v, want about %v", producer.CreditWait, pause)
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
		"version 2":           func(m []byte) { put32(m[8:], 2) },
		"id_bytes is 4":       func(m []byte) { put32(m[12:], 4) },
		"0 slots":             func(m []byte) { put32(m[16:], 0) },
		"4097 slots":          func(m []byte) { put32(m[16:], 4097) },
		"its header asks for": func(m []byte) { put32(m[16:], 3) },
		"reserved bytes":      func(m []byte) { m[63] = 1 },
		"slots of 192 bytes":  func(m []byte) { put64(m[24:], 192) },
		"batches of 0 rows":   func(m []byte) { put64(m[32:], 0) },
		"of 0 ids":            func(m []byte) { put64(m[40:], 0) },
		"outside 1 to":        func(m []byte) { put64(m[32:], 1<<63); put64(m[40:], 2) },
		"command line says":   func(m []byte) { put64(m[32:], 5); put64(m[40:], 3) },
	} {
		t.Run(want, func(t *testing.T) {
			consumer := ringtest.New(t, 3, 5, 2)
			damage(consumer.Memory)
			_, err := ring.Open(consumer.RingFD, consumer.FilledFD, consumer.FreeFD, 3, 5)
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
		"not a memfd sealed":         {unsealed, consumer.FilledFD, consumer.FreeFD},
		"bad file descriptor":        {1 << 20, consumer.FilledFD, consumer.FreeFD},
		"--filled-fd 1048576 is not": {consumer.RingFD, 1 << 20, consumer.FreeFD},
		"--free-fd":                  {consumer.RingFD, consumer.FilledFD, int(file.Fd())},
	} {
		if _, err := ring.Open(fds[0], fds[1], fds[2], 3, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
