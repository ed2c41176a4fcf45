//go:build unix

package wholefile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pilot-api/pilot-api/internal/wholefile"
)

// write is one of the ways to write a file by its name.
type write func(name string, mode fs.FileMode, text string) error

var writes = map[string]write{
	"Write": func(name string, mode fs.FileMode, text string) error {
		return wholefile.Write(name, mode, func(f *os.File) error {
			if _, err := f.WriteString(text); err != nil {
				return err
			}
			if again, err := os.ReadFile(f.Name()); err != nil || string(again) != text {
				return fmt.Errorf("read again: %q, %v", again, err)
			}
			return nil
		})
	},
	"WriteText": func(name string, mode fs.FileMode, text string) error {
		return wholefile.WriteText(name, mode, []byte(text))
	},
}

// below is WriteIn for the folder of the name.
func below(name string, mode fs.FileMode, text string) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer root.Close()
	return wholefile.WriteIn(root, filepath.Base(name), mode, wholefile.Text([]byte(text)))
}

// TestWhatIsNoFileStays: whatever has the name, is it no file then it is still there
// and has what was written, or there is an error.
func TestWhatIsNoFileStays(t *testing.T) {
	for _, c := range []struct {
		name  string
		make  func(t *testing.T, name string) (written func() string)
		in    string // the error of WriteIn, "" for none: then the name is that of a file
		wrong string // the error of the others
	}{
		{name: "named pipe", make: pipe, in: "a named pipe"},
		{name: "link to a named pipe", make: linkTo(pipe)},
		{name: "link to a link to a named pipe", make: linkTo(linkTo(pipe))},
		{name: "device", make: device, in: "a device"},
		{name: "link to a device", make: linkTo(device)},
		{name: "link to an open pipe", make: openPipe},
		{name: "link to a link to an open pipe", make: linkTo(openPipe)},
		{name: "link to an open file", make: openFile},
		{name: "link to an open file that is removed", make: removedFile},
		{name: "link by a folder to an open file", make: openFileByFolder},
		{name: "folder", make: folder, in: "is a directory", wrong: "is a directory"},
		{name: "link to a folder", make: linkTo(folder), wrong: "is a directory"},
		{name: "socket", make: socket, in: "a socket", wrong: "a socket"},
		{name: "link to a socket", make: linkTo(socket), wrong: "a socket"},
	} {
		for by, write := range writes {
			t.Run(c.name+"/"+by, func(t *testing.T) {
				name := filepath.Join(t.TempDir(), "file")
				written := c.make(t, name)
				before := kindOf(t, name)
				err := write(name, 0o644, "text")
				if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
					t.Errorf("got %v, want %q", err, c.wrong)
				}
				if wholefile.Replaces(name) {
					t.Error("a file would replace it")
				}
				if after := kindOf(t, name); after != before {
					t.Errorf("there was %s, there is %s", before, after)
				}
				if c.wrong == "" {
					if got := written(); got != "text" {
						t.Errorf("it has %q", got)
					}
				}
			})
		}
		t.Run(c.name+"/WriteIn", func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file")
			c.make(t, name)
			before := kindOf(t, name)
			err := below(name, 0o644, "text")
			if c.in == "" {
				if err != nil {
					t.Fatal(err)
				}
				is(t, name, "text")
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.in) {
				t.Errorf("got %v, want %q", err, c.in)
			}
			if after := kindOf(t, name); after != before {
				t.Errorf("there was %s, there is %s", before, after)
			}
		})
	}
}

// TestLinkIsReplaced: a link to a file, or to nothing, is replaced by the file, and
// what it leads to stays as it was.
func TestLinkIsReplaced(t *testing.T) {
	all := map[string]write{"WriteIn": below}
	for by, write := range writes {
		all[by] = write
	}
	for by, write := range all {
		t.Run(by, func(t *testing.T) {
			dir := t.TempDir()
			kept, link, dangling := filepath.Join(dir, "kept"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling")
			if err := os.WriteFile(kept, []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
			symlink(t, kept, link)
			symlink(t, filepath.Join(dir, "nothing"), dangling)
			for _, name := range []string{link, dangling} {
				if err := write(name, 0o644, "text"); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				is(t, name, "text")
				if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
					t.Errorf("%s is %v, %v", name, info.Mode(), err)
				}
			}
			is(t, kept, "mine")
			if _, err := os.Lstat(filepath.Join(dir, "nothing")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what the dangling link leads to: %v", err)
			}
		})
	}
}

// TestModes: a new file honours the umask, and one that is replaced is for nobody
// for whom it was not before.
func TestModes(t *testing.T) {
	if dir := os.Getenv("UMASK_TEST_FOLDER"); dir != "" {
		for _, name := range []string{"new-644", "new-600", "was-600", "was-644", "was-444"} {
			mode := fs.FileMode(0o644)
			if name == "new-600" {
				mode = 0o600
			}
			if err := wholefile.WriteText(filepath.Join(dir, name), mode, []byte("text")); err != nil {
				t.Error(err)
			}
		}
		return
	}
	for umask, want := range map[string]map[string]fs.FileMode{
		"022": {"new-644": 0o644, "new-600": 0o600, "was-600": 0o600, "was-644": 0o644, "was-444": 0o444},
		"077": {"new-644": 0o600, "new-600": 0o600, "was-600": 0o600, "was-644": 0o644, "was-444": 0o444},
	} {
		dir := t.TempDir()
		for name, mode := range map[string]fs.FileMode{"was-600": 0o600, "was-644": 0o644, "was-444": 0o444} {
			name = filepath.Join(dir, name)
			if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chmod(name, mode)); err != nil {
				t.Fatal(err)
			}
		}
		// The umask is that of the whole process, so another one has it.
		child := exec.Command("sh", "-c", `umask $0 && exec "$@"`, umask, os.Args[0], "-test.run=^TestModes$")
		child.Env = append(os.Environ(), "UMASK_TEST_FOLDER="+dir)
		if out, err := child.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for name, mode := range want {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
				t.Errorf("umask %s: %s has mode %v, %v, want %v", umask, name, info.Mode(), err, mode)
			}
		}
	}
}

// TestFailedWriteIntoPipe: nothing of it is written.
func TestFailedWriteIntoPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	broken := errors.New("broken")
	err = wholefile.Write(name, 0o600, func(f *os.File) error {
		_, err := f.WriteString("half")
		return errors.Join(err, broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if text, err := io.ReadAll(reader); err != nil || len(text) > 0 {
		t.Errorf("the pipe has %q, %v", text, err)
	}
}

func kindOf(t *testing.T, name string) string {
	t.Helper()
	info, err := os.Lstat(name)
	if err != nil {
		t.Fatal(err)
	}
	to, _ := os.Readlink(name)
	return fmt.Sprint(info.Mode(), " ", to)
}

func symlink(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func linkTo(make func(*testing.T, string) func() string) func(*testing.T, string) func() string {
	return func(t *testing.T, name string) func() string {
		written := make(t, name+".to")
		symlink(t, filepath.Base(name)+".to", name)
		return written
	}
}

func pipe(t *testing.T, name string) func() string {
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	// A reader that is there, so that no writer waits for one.
	reader, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	return rest(t, reader)
}

// rest is what there is to read of a pipe with no writer left.
func rest(t *testing.T, f *os.File) func() string {
	return func() string {
		text, err := io.ReadAll(f)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
}

// device is one that takes all and has nothing, as /dev/null.
func device(t *testing.T, name string) func() string {
	const null = 1<<8 | 3
	if err := syscall.Mknod(name, syscall.S_IFCHR|0o666, null); err != nil {
		t.Skipf("make a device: %v", err)
	}
	if f, err := os.OpenFile(name, os.O_WRONLY, 0); err != nil {
		t.Skipf("open a device: %v", err)
	} else {
		f.Close()
	}
	return func() string { return "text" }
}

func openPipe(t *testing.T, name string) func() string {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	linkToOpen(t, w, name)
	return func() string { w.Close(); return rest(t, r)() }
}

func openFile(t *testing.T, name string) func() string {
	f := opened(t, name+".open")
	linkToOpen(t, f, name)
	return rest(t, f)
}

func removedFile(t *testing.T, name string) func() string {
	f := opened(t, name+".open")
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	linkToOpen(t, f, name)
	return rest(t, f)
}

func openFileByFolder(t *testing.T, name string) func() string {
	f := opened(t, name+".open")
	linkToOpen(t, f, name+".unused")
	symlink(t, "/proc/self/fd", name+".folder")
	symlink(t, fmt.Sprintf("%s.folder/%d", filepath.Base(name), f.Fd()), name)
	return rest(t, f)
}

func opened(t *testing.T, name string) *os.File {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// linkToOpen makes a link such as /dev/stdout.
func linkToOpen(t *testing.T, f *os.File, name string) {
	at := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if _, err := os.Lstat(at); err != nil {
		t.Skipf("open files have no names: %v", err)
	}
	symlink(t, at, name)
}

func folder(t *testing.T, name string) func() string {
	if err := os.Mkdir(name, 0o700); err != nil {
		t.Fatal(err)
	}
	return nil
}

func socket(t *testing.T, name string) func() string {
	t.Chdir(filepath.Dir(name)) // The whole name may be too long for a socket.
	l, err := net.Listen("unix", filepath.Base(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return nil
}
