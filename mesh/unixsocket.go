package mesh

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

// unixScheme begins the address of a Unix socket.
const unixScheme = "unix://"

// RefusesSocket returns why proxies do not connect to a Unix socket, given as
// unix:// and its path, or "" if they do. A proxy opens a socket with the rights of
// its own user, so an object must not name a socket that the operator has not
// allowed.
func (s *Settings) RefusesSocket(address string) string {
	name := strings.TrimPrefix(address, unixScheme)
	clean := path.Clean(name)
	switch {
	case strings.HasPrefix(name, "@"):
		return "proxies never connect to abstract sockets: anybody on the machine may listen at one"
	case !isPlainPath(name) || strings.HasSuffix(name, "/"):
		return "proxies connect to a socket by its absolute path, without .. in it"
	case slices.ContainsFunc(s.PrivateFolders, func(folder string) bool { return liesIn(clean, folder) }):
		return "proxies never connect to sockets in the data folder of the server, whatever unixSocketFolders of the mesh settings has"
	case !slices.ContainsFunc(s.UnixSocketFolders, func(folder string) bool { return liesIn(clean, folder) }):
		return fmt.Sprintf("proxies connect only to sockets in the folders that unixSocketFolders of the mesh settings allows, found %s", listed(s.UnixSocketFolders))
	}
	return ""
}

// liesIn reports whether a clean path is below a folder. The folder itself is not.
func liesIn(clean, folder string) bool {
	folder = path.Clean(folder)
	return clean != folder && strings.HasPrefix(clean, strings.TrimSuffix(folder, "/")+"/")
}

// isPlainPath reports whether a path is absolute and has no ".." element.
func isPlainPath(name string) bool {
	return path.IsAbs(name) && !slices.Contains(strings.Split(name, "/"), "..")
}

func listed(folders []string) string {
	if len(folders) == 0 {
		return "none"
	}
	return strings.Join(folders, ", ")
}

// takeFolders reads a list of absolute paths.
func takeFolders(to *[]string) settingReader {
	return func(f *settingsFile, at string, value *yaml.Node) {
		if value.Kind != yaml.SequenceNode {
			f.report(value, diag.FieldTypeInvalid, at, "must be a list of folders, found "+shown(value))
			return
		}
		*to = make([]string, len(value.Content))
		for i, item := range value.Content {
			scalar(takeFolder(&(*to)[i]))(f, fmt.Sprintf("%s[%d]", at, i), resolved(item))
		}
	}
}

// takeFolder rejects the root: every file has other names below it, as in
// /proc/self/root.
func takeFolder(to *string) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		if n.Tag != "!!str" || !isPlainPath(n.Value) || path.Clean(n.Value) == "/" {
			return "must be the absolute path of a folder other than /, without .. in it"
		}
		*to = path.Clean(n.Value)
		return ""
	}
}
