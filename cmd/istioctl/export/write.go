package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/schema"
)

// exportMode is the mode of files without private keys, before the umask.
const exportMode = 0o644

// writeExport writes the objects of a namespace, "" for all, to the target of -o.
func writeExport(s *cli.Session, output, namespace string, objects []*schema.Object) error {
	if isFolder(output) {
		if err := checkExportNames(objects); err != nil {
			return err
		}
		return exportFolder(s, output, namespace, objects)
	}
	text, err := exportFile(objects)
	switch {
	case err != nil:
		return err
	case output == "" || output == "-":
		_, err = s.Stdout.Write(text)
		return err
	case len(text) > cli.MaxInput:
		return fmt.Errorf("%d MiB are more than 'istioctl apply' reads from one file: name a folder, -o %s/", len(text)>>20, output)
	}
	return wholefile.WriteText(output, exportMode, text)
}

func isFolder(output string) bool {
	if strings.HasSuffix(output, string(filepath.Separator)) {
		return true
	}
	info, err := os.Stat(output)
	return err == nil && info.IsDir()
}

// exportFolder writes one file per object. It leaves unchanged files alone, and touches
// nothing outside the folder.
func exportFolder(s *cli.Session, folder, namespace string, objects []*schema.Object) error {
	defer s.ClearProgress()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	keep := make(map[string]bool)
	for _, o := range objects {
		keep[exportName(o)] = true
	}
	// Remove first, because one folder may be a link to another one that is written.
	if err := removeOthers(root, namespace, keep); err != nil {
		return err
	}
	for i, o := range objects {
		text, err := exportText(o)
		if err != nil {
			return err
		}
		if err := writeChanged(root, exportName(o), text); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
		s.Progress(fmt.Sprintf("%d of %d", i+1, len(objects)))
	}
	return nil
}

// exportName returns the path of an object's file below the folder, with slashes.
func exportName(o *schema.Object) string {
	return path.Join(o.Meta.Namespace, o.Kind.Plural, o.Meta.Name+".yaml")
}

// checkExportNames refuses invalid object names, because they become file names.
func checkExportNames(objects []*schema.Object) error {
	for _, o := range objects {
		wrong := validation.IsDNS1123Label(o.Meta.Namespace)
		if wrong = append(wrong, validation.IsDNS1123Subdomain(o.Meta.Name)...); len(wrong) > 0 {
			return fmt.Errorf("the server answers %s %q in namespace %q, and nothing is written by such a name: %s",
				o.Kind.Kind, o.Meta.Name, o.Meta.Namespace, wrong[0])
		}
	}
	return nil
}

func writeChanged(root *os.Root, name string, text []byte) error {
	// Only regular files are read: reading a named pipe would block.
	if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
		if before, err := root.ReadFile(name); err == nil && slices.Equal(before, text) {
			return nil
		}
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	return wholefile.WriteIn(root, name, exportMode, wholefile.Text(text))
}

// removeOthers removes the files that an export has written and would not write now.
// It leaves everything else in the folder alone.
func removeOthers(root *os.Root, namespace string, keep map[string]bool) error {
	namespace = globSafe(namespace)
	if namespace == "" {
		namespace = "*"
	}
	var failed []error
	for _, kind := range schema.Kinds() {
		files, err := fs.Glob(root.FS(), path.Join(namespace, kind.Plural, "*.yaml"))
		failed = append(failed, err)
		for _, name := range files {
			if keep[name] || strings.HasPrefix(path.Base(name), ".") || !isFileOrLink(root, name) {
				continue
			}
			if err := root.Remove(name); !errors.Is(err, fs.ErrNotExist) {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

// isFileOrLink reports whether name is a file or link, so that an export, or a person,
// may have written it. An export writes no devices, named pipes or folders.
func isFileOrLink(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && (info.Mode().IsRegular() || info.Mode()&fs.ModeSymlink != 0)
}

var globSafe = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace
