package bootstrap

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMayTrust: the owner of a socket decides what an Envoy does, so it must be root or
// the user.
func TestMayTrust(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make a file of another user")
	}
	foreign := filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(foreign, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(foreign)
	if err != nil {
		t.Fatal(err)
	}
	if !mayTrust(info, 0) || !mayTrust(info, 65534) || mayTrust(info, 1000) {
		t.Error("who made the socket is not looked at")
	}
}
