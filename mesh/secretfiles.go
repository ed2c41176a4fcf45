package mesh

import (
	"maps"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// FileSecrets has the contents of the files of Settings.SecretFiles at one moment,
// by "namespace/name", and the roots of the mesh at that moment, which are no objects
// either. A nil value has none. It is immutable.
type FileSecrets struct {
	byName map[string]FileSecret
	roots  Roots
}

// FileSecret is the content of one secret's files. Values that are equal by == have
// the same content.
type FileSecret struct {
	Pair credential.Pair // zero until the files were usable once
	// Problem says why newer files are not used, or what else is wrong, or is "".
	Problem string
}

// NewFileSecrets returns a value that keeps the map.
func NewFileSecrets(byName map[string]FileSecret) *FileSecrets { return &FileSecrets{byName: byName} }

// WithRoots returns the same with the roots of the mesh.
func (s *FileSecrets) WithRoots(roots Roots) *FileSecrets { return &FileSecrets{s.All(), roots} }

// Roots returns the roots of the mesh.
func (s *FileSecrets) Roots() Roots {
	if s == nil {
		return Roots{}
	}
	return s.roots
}

// All returns all secrets by name. The map must not be modified.
func (s *FileSecrets) All() map[string]FileSecret {
	if s == nil {
		return nil
	}
	return s.byName
}

// Equal reports whether both have the same contents.
func (s *FileSecrets) Equal(other *FileSecrets) bool {
	return s.Roots() == other.Roots() && maps.Equal(s.All(), other.All())
}

// WithFiles sets the contents of files and returns the snapshot. Only the creator
// of the snapshot may call it, before sharing the snapshot.
func (s *Snapshot) WithFiles(files *FileSecrets) *Snapshot {
	s.Files = files
	return s
}

// SecretFile has the paths of a secret's files on the server's machine: a pair,
// authorities, or both.
type SecretFile struct{ CertificateFile, KeyFile, CAFile string }

// takeSecretFiles reads files by the name of a secret, with or without its
// namespace.
func takeSecretFiles(to *map[string]SecretFile) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		*to = map[string]SecretFile{}
		f.eachPair(path, value, func(at string, name, value *yaml.Node) {
			var files SecretFile
			f.mapping(map[string]settingReader{
				"certificateFile": scalar(takeString(&files.CertificateFile)),
				"keyFile":         scalar(takeString(&files.KeyFile)),
				"caFile":          scalar(takeString(&files.CAFile)),
			})(at, value)
			full, must := secretNamed(name.Value)
			if must == "" {
				must = files.must()
			}
			if _, again := (*to)[full]; again {
				must = "must be named once, and " + full + " already is"
			}
			if must != "" {
				f.report(value, diag.FieldInvalid, at, must)
			}
			(*to)[full] = files
		})
	}
}

// secretNamed returns the namespace/name of a secret, or what is required of it.
func secretNamed(text string) (full, must string) {
	namespace, name, both := strings.Cut(text, "/")
	if !both {
		namespace, name = metav1.NamespaceDefault, text
	}
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		must = "must be named like a Secret, after its namespace unless that is default, as in shop/shop-tls"
	}
	return namespace + "/" + name, must
}

func (f SecretFile) must() string {
	switch {
	case (f.CertificateFile == "") != (f.KeyFile == ""):
		return "must have both a certificateFile and a keyFile, or neither"
	case f.CertificateFile == "" && f.CAFile == "":
		return "must have a certificateFile and a keyFile, a caFile, or all three"
	}
	return ""
}
