package mesh

import (
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

// WorkloadCertificates are where a proxy finds the certificate of its workload and the
// authorities by which it verifies others. Exactly one of the files in Certificate, SDSFile and
// SDSSocket is set, or nothing is.
type WorkloadCertificates struct {
	Certificate
	// SDSFile is a file on the proxy's machine with the certificate and its key, as a Secret of
	// Envoy with the name "default". The proxy reads it again when it is replaced by a rename.
	// This server sends the authorities.
	SDSFile string
	// SDSSocket is the Unix socket of an agent on the proxy's machine that serves the secrets
	// "default" and "ROOTCA" by Envoy's SecretDiscoveryService.
	SDSSocket string
}

// None reports whether workloads have no certificates.
func (w WorkloadCertificates) None() bool { return w == WorkloadCertificates{} }

// takeWorkloadCertificates reads one of the three forms.
func takeWorkloadCertificates(to *WorkloadCertificates) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		fields := certificateFields(&to.Certificate)
		fields["sdsFile"], fields["sdsSocket"] = scalar(takeString(&to.SDSFile)), scalar(takeString(&to.SDSSocket))
		f.mapping(fields)(path, value)
		if message := to.must(); message != "" {
			f.report(value, diag.FieldRequired, path, message)
		}
	}
}

// maxSocketPath is the longest path of a Unix socket.
const maxSocketPath = 107

func (w WorkloadCertificates) must() string {
	forms := 0
	for _, is := range []bool{w.Certificate != Certificate{}, w.SDSFile != "", w.SDSSocket != ""} {
		if is {
			forms++
		}
	}
	switch {
	case forms > 1:
		return "must have files, or an sdsFile, or an sdsSocket, and only one of the three"
	case w.SDSFile != "" && !filepath.IsAbs(w.SDSFile):
		return "must have an sdsFile that begins with /"
	case w.SDSSocket != "" && (!filepath.IsAbs(w.SDSSocket) || len(w.SDSSocket) > maxSocketPath):
		return "must have an sdsSocket that begins with / and has at most 107 bytes"
	case w.SDSFile != "" || w.SDSSocket != "":
		return ""
	case w.CertificateFile == "" || w.KeyFile == "" || w.CAFile == "":
		return "must have a certificateFile, a keyFile and a caFile, or an sdsFile, or an sdsSocket"
	}
	return ""
}
