package bridge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
)

func fileSource(path string) object {
	return object{"resource_api_version": "V3", "path_config_source": object{"path": path}}
}

func (b *Bridge) file(kind string) string { return filepath.Join(b.dir, kind+".json") }

// write writes resources where Envoy reads them: clusters before the routes to them, and
// routes before the listener that refers to their file.
func (b *Bridge) write(r *Resources) (map[string]string, error) {
	versions := map[string]string{}
	put := func(key, file, message string, resources ...any) (err error) {
		versions[key], err = put(file, message, resources)
		return err
	}
	if err := put("clusters", b.file("clusters"), "envoy.config.cluster.v3.Cluster", r.Clusters...); err != nil {
		return nil, err
	}
	for name, table := range r.Routes {
		if err := put("routes/"+name, b.tableFile(name), "envoy.config.route.v3.RouteConfiguration", table); err != nil {
			return nil, err
		}
	}
	err := put("listeners", b.file("listeners"), "envoy.config.listener.v3.Listener", r.Listeners...)
	return versions, err
}

// put replaces the file atomically, which is what Envoy watches for, and returns the
// version in it: a hash of the resources.
func put(file, message string, resources []any) (string, error) {
	all := make(list, len(resources))
	for i, r := range resources {
		all[i] = withType(message, r.(object))
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256(text)
	version := hex.EncodeToString(hash[:8])
	text, err = json.Marshal(object{"version_info": version, "resources": json.RawMessage(text)})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return "", err
	}
	return version, os.Rename(file+".new", file)
}
