package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/internal/testbed"
)

// gatewayPort is the text of an open port in gateways' rules.
const gatewayPort = "number: 80,"

// elsewhere moves the instances, at 127.0.0.10 and up in the files, to a random /24 of
// the loopback network, and Envoy's listeners to free ports.
func elsewhere() (*strings.Replacer, error) {
	block := fmt.Sprintf("127.%d.%d.", 1+rand.IntN(254), rand.IntN(256))
	var moves []string
	for _, port := range []string{"15000", "15001", "15002", "15010", "8080"} {
		free, err := testbed.FreePort()
		if err != nil {
			return nil, err
		}
		// Listeners on 127.0.0.1 keep their address.
		moves = append(moves, "127.0.0.1:"+port, fmt.Sprintf("127.0.0.1:%d", free), port, strconv.Itoa(free))
	}
	gateway, err := testbed.FreePort()
	if err != nil {
		return nil, err
	}
	moves = append(moves, gatewayPort, fmt.Sprintf("number: %d,", gateway))
	return strings.NewReplacer(append(moves, "127.0.0.", block)...), nil
}

// copyFiles writes the files of the setting to the world's folder.
func (w *World) copyFiles(s Setting) error {
	rules, err := filepath.Glob(filepath.Join(s.Rules, "*.yaml"))
	if err != nil {
		return err
	}
	copies := map[string]string{s.Services: "services", s.Mesh: "mesh"}
	for _, file := range rules {
		copies[file] = filepath.Join("rules", strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	if err := os.MkdirAll(filepath.Join(w.Dir, "rules"), 0o700); err != nil {
		return err
	}
	for from, name := range copies {
		text, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.WriteFile(w.file(name), []byte(w.moved.Replace(string(text))), 0o600); err != nil {
			return err
		}
	}
	return nil
}
