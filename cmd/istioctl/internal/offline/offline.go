package offline

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/credential/rotation"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// Flags name the files that replace a server.
type Flags struct {
	Files      manifest.Files
	meshConfig string
	domain     string
}

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command) {
	f.Files.Add(cmd)
	flags := cmd.Flags()
	flags.Lookup("filename").Usage = "ask no server: compile the objects of this file, folder, URL, or - for standard input; may be repeated"
	flags.StringVar(&f.meshConfig, "mesh-config", "", "file with the mesh settings for the objects of -f, as for pilot-api --mesh-config")
	flags.StringVar(&f.domain, "domain", mesh.DefaultSettings().Domain, "DNS domain of the mesh for which the objects of -f are compiled")
	// The flag exists, so this cannot fail.
	_ = cmd.MarkFlagFilename("mesh-config", "yaml", "yml")
}

// Check refuses flags that have no effect.
func (f *Flags) Check(cmd *cobra.Command) error {
	for _, name := range []string{"mesh-config", "domain", "recursive"} {
		if !f.Offline() && cmd.Flags().Changed(name) {
			return cli.Usagef("--%s goes with -f: a server has its own", name)
		}
	}
	return nil
}

// Offline reports whether files replace the server.
func (f *Flags) Offline() bool { return f.Files.Given() }

// Snapshot returns the mesh that consists of the files alone. It checks the files as any
// verb does.
func (f *Flags) Snapshot(ctx context.Context, s *cli.Session) (*mesh.Snapshot, []*schema.Object, error) {
	settings, err := f.Settings(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	found, err := manifest.Read(ctx, s, f.Files, manifest.Repeated(diag.Error))
	if err != nil {
		return nil, nil, err
	}
	objects := make([]*schema.Object, len(found))
	for i, m := range found {
		objects[i] = m.Object
	}
	return mesh.NewSnapshot(0, settings, objects).WithFiles(SecretFiles(settings)), objects, nil
}

// SecretFiles returns the secrets that the settings name, from the files on this
// machine.
func SecretFiles(settings *mesh.Settings) *mesh.FileSecrets {
	all := map[string]mesh.FileSecret{}
	for name, files := range settings.SecretFiles {
		all[name] = mesh.FileSecret(rotation.Files(files).Read())
	}
	return mesh.NewFileSecrets(all)
}

// Settings returns the settings of the mesh, and shows the problems in them.
func (f *Flags) Settings(ctx context.Context, s *cli.Session) (*mesh.Settings, error) {
	settings := mesh.DefaultSettings()
	if f.meshConfig != "" {
		text, err := s.ReadFile(ctx, f.meshConfig)
		if err != nil {
			return nil, fmt.Errorf("--mesh-config: %w", err)
		}
		parsed, problems := mesh.ParseSettings(text, f.meshConfig)
		s.ShowProblems(problems)
		if n := len(problems.Errors()); n > 0 {
			return nil, fmt.Errorf("--mesh-config: %s", cli.Count(n, "error"))
		}
		settings = parsed
	}
	settings.Domain = f.domain
	return settings, nil
}
