package main

import (
	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/mesh"
)

// certificateFiles returns the files of the secrets in the settings and of the
// listeners.
func (o *options) certificateFiles(settings *mesh.Settings) map[string]rotation.Files {
	all := map[string]rotation.Files{}
	if files := o.streamFiles(); o.grpcListen != "" && files.CertificateFile != "" {
		all[streamFiles] = files
	}
	if o.pollsByCertificate() {
		all[discoveryFiles] = rotation.Files{CertificateFile: o.access.tls.CertificateFile, KeyFile: o.access.tls.KeyFile, CAFile: o.grpcTLS.CAFile}
	}
	if o.access.tls.CertificateFile != "" {
		all[apiFiles] = o.access.tls
	}
	if o.authority.kind == authorityFiles {
		all[authorityFilesName] = o.authority.files
	}
	for name, f := range settings.SecretFiles {
		all[name] = rotation.Files(f)
	}
	return all
}

// secretFiles provides discovery with the secrets from files. The server's own
// certificates are among them, without their keys: no setting names them, so no proxy is
// sent them.
type secretFiles struct {
	*rotation.Follower
	named map[string]mesh.SecretFile
}

func (f secretFiles) Secrets() *mesh.FileSecrets {
	all := map[string]mesh.FileSecret{}
	for name, state := range f.States() {
		if _, named := f.named[name]; !named {
			state.Pair.Key = credential.Key{}
		}
		all[name] = mesh.FileSecret(state)
	}
	return mesh.NewFileSecrets(all)
}
