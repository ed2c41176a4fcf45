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

// Replaces reports whether Write would put a new file under the name. Otherwise it would
// write into what exists there.
func Replaces(name string) bool {
	into, err := isWrittenInto(name)
	return err == nil && !into
}

// isWrittenInto reports whether the name is of something that Write writes into instead
// of replacing it.
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

// replacedIn returns the file below a folder that a new one would replace. It returns
// nil if there is none, or a link.
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

// leadsToOpenFile reports whether the name of a file, or a link on the way to it, is one
// under which the system offers open files. No other file can have such a name, and
// links such as /dev/stdout are shared by all users.
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
			name = dir + string(filepath.Separator) + to // Not joined: "a/.." may be a different folder.
		}
	}
	return false
}

// spool calls write with a temporary file, and then copies that file into name.
func spool(name string, write func(*os.File) error) error {
	f, err := os.CreateTemp("", "."+filepath.Base(name)+".")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close() // An error here loses no data.
	if err := write(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return writeInto(name, f)
}

// writeInto writes as a shell does for "> name". It does not create a file.
func writeInto(name string, from io.Reader) error {
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
