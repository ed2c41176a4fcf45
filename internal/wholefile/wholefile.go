// Package wholefile writes files of which nobody ever sees a part: after a crash
// at any moment there is the old one or the new one under the name. What is no file,
// such as a device, stays what it is.
package wholefile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts what write makes of an empty file under a name. write may read the file
// again; if it fails, all stays as it was. What a killed process leaves is a hidden
// file beside, whose name begins with a dot and that of the file.
//
// A new file has the mode, less the umask of the process. A file that is replaced
// keeps those bits of its mode that are in this one.
//
// Only a file is replaced, and a symbolic link to a file or to nothing: the file that
// the link leads to stays as it is. A device, a named pipe and an open file of a
// process (/dev/stdout, /proc/self/fd/1), and links to them, are written into, as a
// shell does for "> name", once write is done. A folder and a socket are errors.
func Write(name string, mode fs.FileMode, write func(*os.File) error) error {
	into, err := isWrittenInto(name)
	switch {
	case err != nil:
		return err
	case into:
		return spool(name, write)
	}
	dir, base := filepath.Split(name)
	root, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	return WriteIn(root, base, mode, write)
}

// WriteText is Write for what is at hand. It needs no room on a disk to write into a
// device or a named pipe.
func WriteText(name string, mode fs.FileMode, text []byte) error {
	into, err := isWrittenInto(name)
	switch {
	case err != nil:
		return err
	case into:
		return writeInto(name, bytes.NewReader(text))
	}
	return Write(name, mode, Text(text))
}

// WriteIn is Write for a file below a folder: nothing is written outside it, whatever
// the name says and wherever links lead. A link in the place of the file is replaced,
// wherever it leads. Nothing is written into a device or a named pipe: both are errors.
func WriteIn(root *os.Root, name string, mode fs.FileMode, write func(*os.File) error) error {
	before, err := replacedIn(root, name)
	if err != nil {
		return err
	}
	if before != nil {
		mode &= before.Mode()
	}
	dir, base := filepath.Split(name)
	hidden := filepath.Join(dir, "."+base+"."+rand.Text())
	next, err := root.OpenFile(hidden, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer root.Remove(hidden) // Unless it has the other name by then.
	err = write(next)
	if err == nil && before != nil {
		err = next.Chmod(mode) // The umask is for new files.
	}
	if err == nil {
		err = next.Sync()
	}
	if err := errors.Join(err, next.Close()); err != nil {
		return err
	}
	if err := root.Rename(hidden, name); err != nil {
		return err
	}
	folder, err := root.Open(filepath.Clean(dir))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Text is a write of WriteIn for what is at hand.
func Text(text []byte) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.Write(text)
		return err
	}
}

// SyncFolder makes new names in a folder last.
func SyncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
