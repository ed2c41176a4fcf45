package main

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/pilot-api/pilot-api/mesh"
)

// lastSettings is the file in the data folder with the mesh settings of the
// last start.
const lastSettings = "mesh-config.last"

// pastSettings are the settings that proxies were told by before this start, if
// they were others, and makes those of this start the next one's past. Without a
// data folder there is no memory of them. That it fails costs at most a few
// failed requests after a change of settings, and so does not keep the server
// from starting.
func (o *options) pastSettings(log *slog.Logger) []*mesh.Settings {
	if len(o.etcdEndpoints) > 0 {
		return nil
	}
	file := filepath.Join(o.dataDir, lastSettings)
	now, err := o.settingsText()
	if err != nil {
		return nil
	}
	before, err := os.ReadFile(file)
	known := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("mesh settings of the last start are not known", "err", err)
	}
	if known && bytes.Equal(before, now) {
		return nil
	}
	if err := os.WriteFile(file, now, 0o600); err != nil {
		log.Warn("mesh settings are not remembered for the next start", "err", err)
	}
	if !known {
		return nil
	}
	past, problems := mesh.ParseSettings(before, file)
	if problems.Err() != nil {
		return nil // Of a version with other settings.
	}
	past.Domain = o.domain
	return []*mesh.Settings{past}
}

// settingsText is the file of mesh settings, empty if there is none.
func (o *options) settingsText() ([]byte, error) {
	if o.meshConfig == "" {
		return nil, nil
	}
	return os.ReadFile(o.meshConfig)
}
