package main

import (
	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/mesh"
)

// certificateFiles returns the files of the secrets in the settings and of the
// listener for streams.
func (o *options) certificateFiles(settings *mesh.Settings) map[string]rotation.Files {
	all := map[string]rotation.Files{}
	if o.grpcTLS.CertificateFile != "" {
		all[streamFiles] = rotation.Files(o.grpcTLS)
	}
	for name, f := range settings.SecretFiles {
		all[name] = rotation.Files(f)
	}
	return all
}

// secretFiles provides discovery with the secrets from files.
type secretFiles struct {
	*rotation.Follower
	named map[string]mesh.SecretFile
}

func (f secretFiles) Secrets() *mesh.FileSecrets {
	states, all := f.States(), map[string]mesh.FileSecret{}
	for name := range f.named {
		all[name] = mesh.FileSecret(states[name])
	}
	return mesh.NewFileSecrets(all)
}
