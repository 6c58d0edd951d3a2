//go:build unix

package stdio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// findExecutable returns path if it is a file that may be executed.
func findExecutable(path string, _ []string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", fmt.Errorf("%s is a directory: %w", path, fs.ErrPermission)
	}
	if info.Mode()&0o111 == 0 {
		return "", fmt.Errorf("%s is not executable: %w", path, fs.ErrPermission)
	}
	return path, nil
}

// group is the process group that a child leads.
type group struct{ id int }

func newGroup(leader *os.Process) *group { return &group{id: leader.Pid} }

// terminate asks all of the group to exit.
func (g *group) terminate() { _ = syscall.Kill(-g.id, syscall.SIGTERM) } // it may be gone

// kill ends all of the group.
func (g *group) kill() { _ = syscall.Kill(-g.id, syscall.SIGKILL) } // it may be gone

// empty reports whether nothing of the group is alive. The leader must have been
// waited for. Orphans of the group become children of this process if it is the
// init process of a container; they are reaped here. If another process is, and does
// not reap, they stay as zombies, which count as gone.
func (g *group) empty() bool {
	for {
		pid, err := syscall.Wait4(-g.id, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			break
		}
	}
	return errors.Is(syscall.Kill(-g.id, 0), syscall.ESRCH) || onlyZombies(g.id)
}

// close has nothing to release.
func (g *group) close() {}
