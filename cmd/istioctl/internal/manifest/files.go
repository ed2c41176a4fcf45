package manifest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/schema"
)

// Files say where to read objects from.
type Files struct {
	Names     []string // files, folders, URLs, or - for standard input
	Recursive bool     // also the folders within folders
}

// Add adds the flags to a command.
func (f *Files) Add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.Names, "filename", "f", nil, "file, folder, URL, or - for standard input; may be repeated")
	cmd.Flags().BoolVarP(&f.Recursive, "recursive", "R", false, "also read the folders within folders")
	// The flag exists, so these cannot fail.
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml", "json")
}

// Given reports whether there are any.
func (f *Files) Given() bool { return len(f.Names) > 0 }

// Required checks the flags of verbs that take objects only from files.
func (f *Files) Required() error {
	if !f.Given() {
		return cli.Usagef("say what to read with -f FILE (a file, folder, URL, or - for standard input)")
	}
	return nil
}

// NoObjects returns the error for files without objects.
func (f *Files) NoObjects() error {
	names := slices.Clone(f.Names)
	for i, name := range names {
		if name == cli.StdinFlag {
			names[i] = cli.StdinName
		}
	}
	return fmt.Errorf("no objects in %s", strings.Join(names, ", "))
}

// Documents reads everything that the flags name, in order, and then reports everything
// that could not be read.
func Documents(ctx context.Context, s *cli.Session, f Files) ([]schema.Document, error) {
	var docs []schema.Document
	var failed []error
	for _, name := range f.Names {
		got, err := readSource(ctx, s, name, f.Recursive)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			failed = append(failed, err)
		}
		docs = append(docs, got...)
	}
	return docs, errors.Join(failed...)
}

func readSource(ctx context.Context, s *cli.Session, name string, recursive bool) ([]schema.Document, error) {
	switch {
	case name == cli.StdinFlag:
		return open(ctx, s, name)
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		return fetch(ctx, s, name)
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return open(ctx, s, name)
	}
	return folder(ctx, s, name, recursive)
}

func fetch(whole context.Context, s *cli.Session, url string) ([]schema.Document, error) {
	ctx := whole
	if s.RequestTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.RequestTimeout)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	text, err := s.Receive(whole, url, func() (io.ReadCloser, error) {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusOK {
			resp.Body.Close()
			return nil, fmt.Errorf("%s: the server answers %s", url, resp.Status)
		}
		return resp.Body, nil
	})
	if err != nil {
		return nil, err
	}
	return schema.Split(text, url), nil
}

// folder reads the YAML and JSON files of a folder, sorted by name. It skips names that
// begin with a dot, which belong to editors and other programs.
func folder(ctx context.Context, s *cli.Session, root string, recursive bool) ([]schema.Document, error) {
	var docs []schema.Document
	var failed []error
	files := 0
	walked := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil: // The other files may be readable.
			failed = append(failed, err)
			return nil
		case path == root:
			return nil
		case entry.IsDir() && (!recursive || hidden(entry)):
			return filepath.SkipDir
		case entry.IsDir() || hidden(entry) || !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			return nil
		}
		files++
		got, err := open(ctx, s, path)
		docs, failed = append(docs, got...), append(failed, err)
		return ctx.Err()
	})
	if ctx.Err() != nil {
		return nil, s.Fail(ctx, ctx.Err())
	}
	err := errors.Join(append(failed, walked)...)
	if err == nil && files == 0 {
		err = fmt.Errorf("%s: no .yaml, .yml or .json file in this folder", root)
	}
	return docs, err
}

func hidden(entry fs.DirEntry) bool { return strings.HasPrefix(entry.Name(), ".") }

// open reads a file, or standard input.
func open(ctx context.Context, s *cli.Session, name string) ([]schema.Document, error) {
	text, err := s.ReadFile(ctx, name)
	if err != nil {
		return nil, err
	}
	if name == cli.StdinFlag {
		name = cli.StdinName
	}
	return schema.Split(text, name), nil
}

// NoArgs refuses arguments, because each file needs a -f. The error suggests no whole
// command, because the suggestion would lack the given flags, such as a dry run.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return cli.Usagef("files are named with -f: say -f %s", strings.Join(args, " -f "))
}
