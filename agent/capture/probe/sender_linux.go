package probe

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// dialAs connects as another user and group. The thread that does so has their numbers for
// its files and sockets, and ends afterwards.
func dialAs(ctx context.Context, uid, gid uint32, network, to string, wait time.Duration) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // The thread ends with this goroutine.
		if err := become(syscall.SYS_SETFSGID, gid); err != nil {
			result <- err
			return
		}
		if err := become(syscall.SYS_SETFSUID, uid); err != nil {
			result <- err
			return
		}
		result <- dial(ctx, network, to, wait)
	}()
	return <-result
}

// become sets a number of the calling thread. The system call returns the number before it,
// so a second call tells whether the first one worked.
func become(call uintptr, id uint32) error {
	_, _, _ = syscall.RawSyscall(call, uintptr(id), 0, 0)
	if now, _, _ := syscall.RawSyscall(call, uintptr(id), 0, 0); uint32(now) != id {
		return fmt.Errorf("%w: no right to act as the user or group %d", errSender, id)
	}
	return nil
}
