package stdio

import "syscall"

// processAttributes puts the child into a group of its own and ties it to this
// process: it gets SIGTERM when the thread that starts it ends.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
