package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/schema"
)

// exportMode is for files without private keys.
const exportMode = 0o644

// writeExport writes the objects of a namespace, "" for all, where -o says.
func (s *session) writeExport(output, namespace string, objects []*schema.Object) error {
	if isFolder(output) {
		return s.exportFolder(output, namespace, objects)
	}
	text, err := exportFile(objects)
	switch {
	case err != nil:
		return err
	case output == "" || output == "-":
		_, err = s.Stdout.Write(text)
		return err
	case len(text) > maxInput:
		return fmt.Errorf("%d MiB are more than 'istioctl apply' reads from one file: name a folder, -o %s/", len(text)>>20, output)
	}
	return wholefile.Write(output, exportMode, wholefile.Text(text))
}

func isFolder(output string) bool {
	if strings.HasSuffix(output, string(filepath.Separator)) {
		return true
	}
	info, err := os.Stat(output)
	return err == nil && info.IsDir()
}

// exportFolder writes a file an object. One that is as it was is not touched.
func (s *session) exportFolder(root, namespace string, objects []*schema.Object) error {
	defer s.clearProgress()
	written := make(map[string]bool)
	for i, o := range objects {
		name := filepath.Join(root, o.Meta.Namespace, o.Kind.Plural, o.Meta.Name+".yaml")
		written[name] = true
		text, err := exportText(o)
		if err != nil {
			return err
		}
		if err := writeChanged(name, text); err != nil {
			return err
		}
		s.progress(fmt.Sprintf("%d of %d", i+1, len(objects)))
	}
	return removeOthers(root, namespace, written)
}

func writeChanged(name string, text []byte) error {
	before, err := os.ReadFile(name)
	if err == nil && slices.Equal(before, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return wholefile.Write(name, exportMode, wholefile.Text(text))
}

// removeOthers takes the files away that an export has written and would not
// write now. All else in the folder is somebody else's.
func removeOthers(root, namespace string, written map[string]bool) error {
	if namespace == "" {
		namespace = "*"
	}
	var failed []error
	for _, kind := range schema.Kinds() {
		files, err := filepath.Glob(filepath.Join(globSafe(root), namespace, kind.Plural, "*.yaml"))
		failed = append(failed, err)
		for _, name := range files {
			if written[name] || strings.HasPrefix(filepath.Base(name), ".") {
				continue
			}
			if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

var globSafe = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace
