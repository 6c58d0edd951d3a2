package interop

import (
	"time"

	"golang.org/x/sys/unix"
)

// awaitExits waits until all of some processes have ended, at most until end.
func awaitExits(pids []int, end time.Time) {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it is gone
		}
		wait := max(time.Until(end), 0)
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait.Milliseconds()))
		_ = unix.Close(fd)
	}
}
