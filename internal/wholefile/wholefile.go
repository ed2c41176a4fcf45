// Package wholefile writes files of which nobody ever sees a part: after a crash
// at any moment there is the old one or the new one under the name.
package wholefile

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts what write makes of an empty file in the place of a file, or makes
// it new, with a mode. write may read the file again; if it fails, all stays as it
// was. What a killed process leaves is a hidden file beside, whose name begins with
// a dot and that of the file.
func Write(name string, mode fs.FileMode, write func(*os.File) error) error {
	dir, base := filepath.Split(name)
	root, err := os.OpenRoot(filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	return WriteIn(root, base, mode, write)
}

// WriteIn is Write for a file below a folder: nothing is written outside it, whatever
// the name says and wherever links lead. A link in the place of the file is replaced.
func WriteIn(root *os.Root, name string, mode fs.FileMode, write func(*os.File) error) error {
	dir, base := filepath.Split(name)
	hidden := filepath.Join(dir, "."+base+"."+rand.Text())
	next, err := root.OpenFile(hidden, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer root.Remove(hidden) // Unless it has the other name by then.
	err = write(next)
	if err == nil {
		err = errors.Join(next.Chmod(mode), next.Sync())
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

// Text is a write of Write for what is at hand.
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
