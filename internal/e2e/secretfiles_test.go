package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

// TestSecretFilesReachAnEnvoy: who is connected stays so while the files are replaced,
// as Kubernetes does it, and while they do not fit together.
func TestSecretFilesReachAnEnvoy(t *testing.T) {
	outside.Slow(t)
	t.Parallel()
	mount := newMount(t)
	mount.swap(t, "first.example")
	w := openSecrets(t, "delta", "--mesh-config", mount.settings(t))
	w.authority = mount.authority
	w.write(fmt.Sprintf(secretsGateway, w.port))
	w.shows("first.example", "first.example")

	held := w.connect("first.example")
	before := w.listeners()
	mount.swap(t, "rotated.example")
	w.shows("first.example", "rotated.example")
	w.serves(held)
	if after := w.listeners(); after != before {
		t.Errorf("the listeners became\n%s\nand were\n%s", after, before)
	}

	certificate, key := mount.authority.PEM(t, "third.example")
	mount.write(t, "tls.crt", certificate)
	w.wait("files that do not fit to be told", func(ctx context.Context) error {
		text, err := w.pilot.Istioctl(ctx, "problems")
		if err == nil && !strings.Contains(string(text), "keyFile is not a key that belongs") {
			err = fmt.Errorf("the problems are\n%s", text)
		}
		return err
	})
	metrics, err := fetch(t.Context(), w.pilot.URL+"/metrics")
	if err != nil || !strings.Contains(string(metrics), "\npilot_certificate_files_problems 1\n") {
		t.Errorf("the metrics do not tell (%v)", err)
	}
	if _, err := fetch(t.Context(), w.pilot.URL+"/readyz"); err != nil {
		t.Error(err)
	}
	w.shows("first.example", "rotated.example")
	mount.write(t, "tls.key", key)
	w.shows("first.example", "third.example")
	w.serves(held)
	w.wait("the problem to be over", func(ctx context.Context) error {
		text, err := w.pilot.Istioctl(ctx, "problems")
		if err == nil && strings.Contains(string(text), "secretFiles") {
			err = errors.New(string(text))
		}
		return err
	})
	if log := w.pilot.Tail(); strings.Contains(log, strings.Split(key, "\n")[1]) {
		t.Errorf("the log shows a key:\n%s", log)
	}
}

// mount is a folder of links to what is behind ..data, as of a Kubernetes Secret.
type mount struct {
	dir       string
	authority *selfsigned.Authority
	swaps     int
}

func newMount(t *testing.T) *mount {
	m := &mount{dir: t.TempDir(), authority: selfsigned.NewAuthority(t, t.TempDir())}
	for _, file := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", file), filepath.Join(m.dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *mount) settings(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "mesh.yaml")
	text := fmt.Sprintf("secretFiles:\n  first: {certificateFile: %[1]s/tls.crt, keyFile: %[1]s/tls.key}\n", m.dir)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// swap has a new pair for the host in the place of all that is there, at once.
func (m *mount) swap(t *testing.T, host string) {
	t.Helper()
	m.swaps++
	version := fmt.Sprintf("..%d", m.swaps)
	certificate, key := m.authority.PEM(t, host)
	next := filepath.Join(m.dir, "..next")
	if err := errors.Join(
		os.Mkdir(filepath.Join(m.dir, version), 0o700),
		os.WriteFile(filepath.Join(m.dir, version, "tls.crt"), []byte(certificate), 0o600),
		os.WriteFile(filepath.Join(m.dir, version, "tls.key"), []byte(key), 0o600),
		os.Symlink(version, next),
		os.Rename(next, filepath.Join(m.dir, "..data")),
	); err != nil {
		t.Fatal(err)
	}
}

// write replaces the text of a file that a link leads to.
func (m *mount) write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
