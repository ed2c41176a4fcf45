package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pilot-api/pilot-api/discovery"
	"github.com/pilot-api/pilot-api/internal/wholefile"
	"github.com/pilot-api/pilot-api/mesh"
)

// settingsMemory holds the mesh settings that proxies may still run: those of this
// start and of earlier starts. It forgets the earlier ones once this server has run
// for so long that every proxy has connected. Time in which no server ran does not
// count, because proxies keep their last configuration. The memory is a file in the
// data folder. Its failure costs at most a few failed requests after a change of
// settings, so it does not prevent the server from starting.
type settingsMemory struct {
	file   string // "" if nothing is remembered
	served []servedSettings
	log    *slog.Logger
	// private lists the folders that no endpoint may lie in.
	private []string
}

// servedSettings holds the settings of one start.
type servedSettings struct {
	Domain     string `json:"domain"`
	MeshConfig string `json:"meshConfig"` // the text of the file
}

const (
	settingsFile = "mesh-config.last"
	// maxServed bounds the number of remembered settings. Each of them costs a
	// compilation when a proxy connects.
	maxServed = 8
)

// rememberSettings adds the settings of this start to the memory.
func (o *options) rememberSettings(private []string, log *slog.Logger) *settingsMemory {
	m := &settingsMemory{log: log, private: private}
	if len(o.etcdEndpoints) > 0 {
		return m
	}
	now := servedSettings{Domain: o.domain}
	if o.meshConfig != "" {
		text, err := os.ReadFile(o.meshConfig)
		if err != nil {
			return m // The file was there a moment ago.
		}
		now.MeshConfig = string(text)
	}
	m.file = filepath.Join(o.dataDir, settingsFile)
	before := m.read(o.domain)
	others := slices.DeleteFunc(slices.Clone(before), func(t servedSettings) bool { return t == now })
	m.served = append([]servedSettings{now}, others...)
	m.served = m.served[:min(len(m.served), maxServed)]
	if !slices.Equal(m.served, before) {
		m.write()
	}
	return m
}

// past returns the settings of earlier starts that this version can read.
func (m *settingsMemory) past() []*mesh.Settings {
	var past []*mesh.Settings
	for _, one := range m.served[min(1, len(m.served)):] {
		settings, problems := mesh.ParseSettings([]byte(one.MeshConfig), m.file)
		if problems.Err() != nil {
			continue
		}
		settings.Domain = one.Domain
		settings.PrivateFolders = m.private
		settings.Budget = settings.Budget.Or(budget())
		past = append(past, settings)
	}
	return past
}

// run forgets the settings of earlier starts when no proxy can still run them.
func (m *settingsMemory) run(ctx context.Context, serving func() bool) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var since time.Time // since when the server serves
	for since.IsZero() || time.Since(since) < discovery.PastFor {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if since.IsZero() && serving() {
			since = time.Now()
		}
	}
	if len(m.served) > 1 {
		m.served = m.served[:1]
		m.write()
	}
	<-ctx.Done()
	return ctx.Err()
}

// read also accepts the older format, which is the text of one start's settings.
func (m *settingsMemory) read(domain string) []servedSettings {
	text, err := os.ReadFile(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		m.log.Warn("mesh settings of the last start are not known", "err", err)
		return nil
	}
	var served []servedSettings
	if json.Unmarshal(text, &served) != nil {
		return []servedSettings{{Domain: domain, MeshConfig: string(text)}}
	}
	return served
}

func (m *settingsMemory) write() {
	text, err := json.Marshal(m.served)
	if err == nil {
		err = wholefile.WriteText(m.file, 0o600, text)
	}
	if err != nil {
		m.log.Warn("mesh settings are not remembered for the next start", "err", err)
	}
}
