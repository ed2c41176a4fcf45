package wholefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Replaces reports whether Write would put a new file under the name. If not, it would
// write into what is there.
func Replaces(name string) bool {
	into, err := isWrittenInto(name)
	return err == nil && !into
}

// isWrittenInto reports whether what has the name is no file that could be replaced.
func isWrittenInto(name string) (bool, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode().IsRegular():
		return leadsToOpenFile(name), nil
	case info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe) != 0:
		return true, nil
	}
	return false, notWritable(name, info)
}

// replacedIn is the file below a folder that another one takes the place of; nil for
// none, or a link.
func replacedIn(root *os.Root, name string) (fs.FileInfo, error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Mode().IsRegular():
		return info, nil
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, nil
	}
	return nil, notWritable(filepath.Join(root.Name(), name), info)
}

func notWritable(name string, info fs.FileInfo) error {
	err := error(syscall.EISDIR)
	if !info.IsDir() {
		kind := "neither a file nor a link"
		switch mode := info.Mode(); {
		case mode&fs.ModeSocket != 0:
			kind = "a socket"
		case mode&fs.ModeNamedPipe != 0:
			kind = "a named pipe"
		case mode&fs.ModeDevice != 0:
			kind = "a device"
		}
		err = fmt.Errorf("this is %s, which no file replaces", kind)
	}
	return &fs.PathError{Op: "write", Path: name, Err: err}
}

// maxLinks is how many links in a row Linux follows.
const maxLinks = 40

// leadsToOpenFile reports whether the name of a file, or a link on the way to it, is
// one by which the system offers files that are open. Such a name cannot be had by
// another file, and a link such as /dev/stdout is there for everybody.
func leadsToOpenFile(name string) bool {
	name, err := filepath.Abs(name)
	for range maxLinks {
		if err != nil {
			return false
		}
		dir, base := filepath.Split(name)
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return false
		}
		if dir == "/dev" || dir == "/dev/fd" || strings.HasPrefix(dir, "/proc/") {
			return true
		}
		to, err := os.Readlink(filepath.Join(dir, base))
		if err != nil {
			return false
		}
		if name = to; !filepath.IsAbs(to) {
			name = dir + string(filepath.Separator) + to // Not joined: "a/.." may be another folder than this one.
		}
	}
	return false
}

// spool writes into what has the name, once write is done with a file that goes then.
func spool(name string, write func(*os.File) error) error {
	f, err := os.CreateTemp("", "."+filepath.Base(name)+".")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close() // Nothing is lost with it.
	if err := write(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return writeInto(name, f)
}

// writeInto is what a shell does for "> name". It makes no file.
func writeInto(name string, from io.Reader) error {
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
