package stdio

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

// processAttributes keeps console signals and windows away from the child.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
}

// findExecutable returns the file that path means: itself if it has an extension,
// else with one of those in PATHEXT.
func findExecutable(path string, env []string) (string, error) {
	if filepath.Ext(path) != "" {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	extensions := lookupVariable(env, "PATHEXT")
	if extensions == "" {
		extensions = ".com;.exe;.bat;.cmd"
	}
	for _, ext := range strings.Split(strings.ToLower(extensions), ";") {
		if !strings.HasPrefix(ext, ".") {
			continue
		}
		if info, err := os.Stat(path + ext); err == nil && !info.IsDir() {
			return path + ext, nil
		}
	}
	return "", fmt.Errorf("%s: %w", path, fs.ErrNotExist)
}

// group is a job object: it has the child and all that the child starts. Windows
// ends what is in it when the last handle is closed, which the death of this process
// does, too.
type group struct {
	kernel32 *syscall.LazyDLL
	job      syscall.Handle // 0: there is none, the child stands alone
}

// jobLimits is JOBOBJECT_EXTENDED_LIMIT_INFORMATION.
type jobLimits struct {
	perProcessUserTimeLimit int64
	perJobUserTimeLimit     int64
	limitFlags              uint32
	minimumWorkingSetSize   uintptr
	maximumWorkingSetSize   uintptr
	activeProcessLimit      uint32
	affinity                uintptr
	priorityClass           uint32
	schedulingClass         uint32
	ioCounters              [6]uint64
	processMemoryLimit      uintptr
	jobMemoryLimit          uintptr
	peakProcessMemoryUsed   uintptr
	peakJobMemoryUsed       uintptr
}

func newGroup(leader *os.Process) *group {
	const (
		extendedLimitInformation = 9
		killOnJobClose           = 0x2000
	)
	g := &group{kernel32: syscall.NewLazyDLL("kernel32.dll")}
	job, _, _ := g.kernel32.NewProc("CreateJobObjectW").Call(0, 0)
	if job == 0 {
		return g
	}
	g.job = syscall.Handle(job)
	limits := jobLimits{limitFlags: killOnJobClose}
	set, _, _ := g.kernel32.NewProc("SetInformationJobObject").Call(
		job, extendedLimitInformation, uintptr(unsafe.Pointer(&limits)), unsafe.Sizeof(limits))
	assigned := uintptr(0)
	_ = leader.WithHandle(func(handle uintptr) { // fails only if the process was released
		assigned, _, _ = g.kernel32.NewProc("AssignProcessToJobObject").Call(job, handle)
	})
	if set == 0 || assigned == 0 {
		g.close()
	}
	return g
}

// terminate does nothing: there is no polite way.
func (g *group) terminate() {}

// kill ends all of the group.
func (g *group) kill() {
	if g.job != 0 {
		_, _, _ = g.kernel32.NewProc("TerminateJobObject").Call(uintptr(g.job), 1) // it may be gone
	}
}

// empty ends what outlived the leader: nobody can ask it to.
func (g *group) empty() bool {
	g.kill()
	return true
}

// close releases the job.
func (g *group) close() {
	if g.job != 0 {
		_ = syscall.CloseHandle(g.job) // our own
		g.job = 0
	}
}
