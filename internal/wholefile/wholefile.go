// Package wholefile reads files up to a size, and writes files atomically: after a crash at any moment the name refers
// to the complete old file or the complete new one. It does not replace what is not a
// file, such as a device.
package wholefile

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts a file with the content that write writes under a name. write gets an empty
// file and may read it again. If write fails, nothing changes. A killed process leaves
// behind a hidden file beside the target: its name is a dot and the target's name with
// a suffix.
//
// A new file has the given mode, less the umask of the process. A replaced file keeps
// those bits of its mode that are also in the given one.
//
// Write replaces only files, and symbolic links to a file or to nothing. The file that a
// link leads to stays as it is. If the name is of a device, a named pipe or an open file
// of a process (/dev/stdout, /proc/self/fd/1), or of a link to one, Write writes into
// it, as a shell does for "> name", once write is done. Folders and sockets are errors.
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

// WriteText is Write for a text in memory. It needs no disk space to write into a device
// or a named pipe.
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

// WriteIn is Write for a file below a folder. It writes nothing outside the folder,
// whatever the name is and wherever links lead. It replaces a link in the place of the
// file, wherever that leads. A device or a named pipe is an error.
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
	defer root.Remove(hidden) // This fails if the file was renamed.
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

// Text returns a write function for WriteIn that writes text.
func Text(text []byte) func(*os.File) error {
	return func(f *os.File) error {
		_, err := f.Write(text)
		return err
	}
}

// SyncFolder makes new names in a folder durable.
func SyncFolder(dir string) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
