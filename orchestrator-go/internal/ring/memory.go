// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"os"

	"golang.org/x/sys/unix"

	"pybench/orchestrator/internal/fault"
)

// mapMemory maps the memory of a ring, for as long as this process lives, and checks its header.
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
