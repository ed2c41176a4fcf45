package credential_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

// TestAuthorities checks that a file without a certificate never means the authorities of
// the system.
func TestAuthorities(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if pool, err := credential.Authorities(""); pool != nil || err != nil {
		t.Errorf("no file: got %v, %v, want the authorities of the system", pool, err)
	}
	for _, bad := range []string{filepath.Join(dir, "missing.crt"), file("empty.crt", ""), file("text.crt", "no PEM")} {
		if pool, err := credential.Authorities(bad); pool != nil || err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: got %v, %v, want an error with the name of the file", bad, pool, err)
		}
	}
	good := file("good.crt", selfsigned.NewAuthority(t, dir).AuthorityPEM(t))
	if pool, err := credential.Authorities(good); pool == nil || err != nil {
		t.Errorf("a certificate: got %v, %v", pool, err)
	}
}
