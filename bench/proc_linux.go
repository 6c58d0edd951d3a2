package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// processCPU returns the CPU time of a process, all its threads and both
// modes, but not its children: 0 if it cannot be read.
func processCPU(pid int) time.Duration {
	// The clock of another process, as clock_getcpuclockid(3) numbers it.
	const schedClock = 2
	clock := int32(^pid<<3 | schedClock)
	var ts syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0); errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}

// processRSS returns the resident memory of a process in bytes: 0 if it cannot
// be read.
func processRSS(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(status, []byte("\nVmRSS:"))
	var kib int64
	if _, err := fmt.Sscan(string(rest), &kib); err != nil {
		return 0
	}
	return kib << 10
}

// loadAverage returns how busy the machine was in the last 1, 5 and 15 minutes.
func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

// preciseSleep returns a sleep that is exact to some microseconds, where the
// runtime's timers are to about one millisecond. It holds a thread until
// release.
func preciseSleep() (sleep func(time.Duration), release func()) {
	runtime.LockOSThread()
	const setTimerSlack = 29 // PR_SET_TIMERSLACK, of this thread, in nanoseconds
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	sleep = func(d time.Duration) {
		ts := syscall.NsecToTimespec(int64(d))
		_ = syscall.Nanosleep(&ts, nil)
	}
	return sleep, runtime.UnlockOSThread
}
