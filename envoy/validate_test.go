package envoy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/envoy/envoytest"
	"github.com/pilot-api/pilot-api/internal/outside"
	"github.com/pilot-api/pilot-api/internal/selfsigned"
)

// TestEnvoyAccepts checks that a real Envoy accepts every case and every bootstrap without a
// warning.
func TestEnvoyAccepts(t *testing.T) {
	outside.Slow(t)
	program := outside.Tool(t, "envoy")
	dir := t.TempDir()
	selfsigned.Write(t, filepath.Join(dir, "testdata", "tls.crt"), filepath.Join(dir, "testdata", "tls.key"))
	for _, tc := range bootstraps {
		if tc.options.API != envoy.V1 && tc.options.API != envoy.GRPC {
			t.Run("bootstrap/"+tc.name, func(t *testing.T) {
				tc.options.CAFile = filepath.Join(dir, "testdata", "tls.crt")
				if tc.options.XDSCAFile != "" {
					tc.options.XDSCAFile, tc.options.XDSCertFile = tc.options.CAFile, tc.options.CAFile
					tc.options.XDSKeyFile = filepath.Join(dir, "testdata", "tls.key")
				}
				text, err := envoy.Bootstrap(tc.options)
				if err != nil {
					t.Fatal(err)
				}
				accepts(t, program, dir, text)
			})
		}
	}
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			accepts(t, program, dir, envoytest.Standalone(t, envoytest.Encode(c.config)))
		})
	}
}

// TestEnvoyAcceptsTranslations checks that a real Envoy accepts every archive of
// testdata/translate without a warning. Other certificates replace those of the archives.
func TestEnvoyAcceptsTranslations(t *testing.T) {
	outside.Slow(t)
	program := outside.Tool(t, "envoy")
	dir := t.TempDir()
	selfsigned.Write(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	selfsigned.NewAuthority(t, dir).Revoke(t)
	files, err := filepath.Glob("../testdata/translate/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no translations found: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txtar"), func(t *testing.T) {
			accepts(t, program, dir, withCertificates(envoytest.Standalone(t, translation(t, f))))
		})
	}
}

// certificateFile matches the name of a file for TLS in a configuration.
var certificateFile = regexp.MustCompile(`("(certificateChain|trustedCa|privateKey|crl)":\s*\{"filename":\s*)"[^"]*"`)

// withCertificates replaces the names of files with those of self-signed certificates.
func withCertificates(text []byte) []byte {
	return certificateFile.ReplaceAllFunc(text, func(found []byte) []byte {
		parts := certificateFile.FindSubmatch(found)
		file := `"tls.crt"`
		switch string(parts[2]) {
		case "privateKey":
			file = `"tls.key"`
		case "crl":
			file = `"authority.crl"`
		}
		return slices.Concat(parts[1], []byte(file))
	})
}

// translation returns the resources in v3.json of an archive of testdata/translate.
func translation(t *testing.T, file string) envoytest.Resources {
	t.Helper()
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var text struct{ Clusters, Listeners, Routes []json.RawMessage }
	for _, f := range archive.Files {
		if f.Name == "v3.json" {
			if err := json.Unmarshal(f.Data, &text); err != nil {
				t.Fatal(err)
			}
		}
	}
	return envoytest.Resources{
		Clusters:  parseAll[clusterv3.Cluster](t, text.Clusters),
		Listeners: parseAll[listenerv3.Listener](t, text.Listeners),
		Routes:    parseAll[routev3.RouteConfiguration](t, text.Routes),
	}
}

func parseAll[T any, M interface {
	*T
	proto.Message
}](t *testing.T, texts []json.RawMessage) []M {
	t.Helper()
	out := make([]M, len(texts))
	for i, text := range texts {
		out[i] = new(T)
		if err := protojson.Unmarshal(text, out[i]); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func accepts(t *testing.T, program, dir string, text []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if said, err := outside.Validate(ctx, program, dir, text); err != nil {
		t.Errorf("Envoy refuses it: %v\n%s", err, text)
	} else if bytes.Contains(said, []byte("[warning]")) || bytes.Contains(said, []byte("[error]")) {
		t.Errorf("Envoy warns:\n%s", said)
	}
}
