// SPDX-License-Identifier: Apache-2.0

package lifetime_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pybench/orchestrator/internal/fault"
	"pybench/orchestrator/internal/lifetime"
)

// What is tested here happens to whole processes, so this program is started again in one of these roles.
const (
	roleVariable     = "PYBENCH_LIFETIME_TEST_ROLE"
	consumerVariable = "PYBENCH_LIFETIME_TEST_CONSUMER"

	launcher = "launcher" // starts a bound child and waits
	bound    = "bound"    // binds itself to its parent, says so and waits
	stopping = "stopping" // waits for the end of its context and says why it ended
	replying = "replying" // answers requests until it is told to end
)

// patience is how long a test waits for what must come; strays leave by themselves a while after it.
const (
	patience      = 10 * time.Second
	strayLifetime = 3 * patience
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		play(role)
		return
	}
	os.Exit(m.Run())
}

func play(role string) {
	time.AfterFunc(strayLifetime, func() { os.Exit(3) })
	switch role {
	case launcher:
		runtime.LockOSThread() // the child's signal is bound to the thread that starts it
		child := command(bound, os.Getpid())
		child.Stdout = os.Stdout
		fmt.Println("started", child.Run())
	case bound:
		consumer, _ := strconv.Atoi(os.Getenv(consumerVariable))
		if err := lifetime.BindToParent(consumer); err != nil {
			fmt.Println(fault.KindOf(err), err)
			return
		}
		fmt.Println("bound")
		select {}
	case stopping:
		ctx, cancel := lifetime.Context()
		fmt.Println("ready")
		<-ctx.Done()
		cancel(errors.New("a later cause"))
		fmt.Println(fault.KindOf(context.Cause(ctx)), context.Cause(ctx))
	case replying:
		answers := 0
		stop := lifetime.OnRequest(func() {
			answers++
			fmt.Println("answer", answers)
		})
		fmt.Println("ready")
		_, _ = io.ReadAll(os.Stdin)
		stop()
		fmt.Println("stopped")
	}
}

func command(role string, consumer int) *exec.Cmd {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), roleVariable+"="+role, consumerVariable+"="+strconv.Itoa(consumer))
	child.Stderr = os.Stderr
	return child
}

// actor is this program in a role, and what it and its children say. Its lines end when the last of them is gone.
type actor struct {
	*exec.Cmd
	stdin io.WriteCloser
	lines chan string
}

func start(t *testing.T, role string, consumer int) *actor {
	t.Helper()
	child := &actor{Cmd: command(role, consumer), lines: make(chan string)}
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	child.stdin = stdin
	out, in, err := os.Pipe() // not StdoutPipe: Wait would close that while a grandchild still has it
	if err != nil {
		t.Fatal(err)
	}
	child.Stdout = in
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	go func() {
		defer close(child.lines)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			child.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
		out.Close()
	})
	return child
}

// line waits for the next; "" at the end.
func (a *actor) line(t *testing.T) string {
	t.Helper()
	select {
	case line := <-a.lines:
		return line
	case <-time.After(patience):
		t.Fatal("nothing comes, and it does not end")
		return ""
	}
}

func (a *actor) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := a.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

func TestAProcessThatIsBoundDiesWithItsParent(t *testing.T) {
	child := start(t, launcher, 0)
	if line := child.line(t); line != "bound" {
		t.Fatalf("got %q", line)
	}
	child.signal(t, unix.SIGKILL)
	// The launcher is gone; its child has the other end of the pipe for as long as it lives.
	if line := child.line(t); line != "" {
		t.Fatalf("the child lives on and says %q", line)
	}
}

func TestAProcessWhoseParentIsAnotherThanTheConsumerRefuses(t *testing.T) {
	const another = 1 << 30 // beyond the kernel's largest
	child := start(t, bound, another)
	want := fmt.Sprintf("consumer the parent is process %d, not the consumer %d ", os.Getpid(), another)
	if line := child.line(t); !strings.HasPrefix(line, want) {
		t.Fatalf("got %q, want %q", line, want)
	}
}

func TestSIGTERMIsTheCauseAndStaysItWhileSIGINTIsNone(t *testing.T) {
	child := start(t, stopping, 0)
	if line := child.line(t); line != "ready" {
		t.Fatalf("got %q", line)
	}
	child.signal(t, unix.SIGINT)
	child.signal(t, unix.SIGTERM)
	if line, want := child.line(t), "stopped stopped by SIGTERM"; line != want {
		t.Fatalf("got %q, want %q", line, want)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
}

func TestEveryRequestIsAnsweredUntilItIsStopped(t *testing.T) {
	child := start(t, replying, 0)
	if line := child.line(t); line != "ready" {
		t.Fatalf("got %q", line)
	}
	for number := range 3 {
		child.signal(t, unix.SIGUSR1)
		if line, want := child.line(t), fmt.Sprintf("answer %d", number+1); line != want {
			t.Fatalf("got %q, want %q", line, want)
		}
	}
	child.stdin.Close()
	if line := child.line(t); line != "stopped" {
		t.Fatalf("got %q", line)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
}
