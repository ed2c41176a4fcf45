package selfsigned

import (
	"os"
	"path/filepath"
	"testing"
)

// PEM returns the content of HOST.crt and HOST.key after Issue.
func (a *Authority) PEM(t testing.TB, host string, uris ...string) (certificate, key string) {
	t.Helper()
	a.Issue(t, host, uris...)
	return read(t, filepath.Join(a.dir, host+".crt")), read(t, filepath.Join(a.dir, host+".key"))
}

// AuthorityPEM returns the content of authority.crt.
func (a *Authority) AuthorityPEM(t testing.TB) string {
	t.Helper()
	return read(t, filepath.Join(a.dir, "authority.crt"))
}

func read(t testing.TB, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
