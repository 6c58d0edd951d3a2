//go:build unix && !linux

package stdio

import "syscall"

// processAttributes puts the child into a group of its own.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// onlyZombies cannot tell here.
func onlyZombies(int) bool { return false }
