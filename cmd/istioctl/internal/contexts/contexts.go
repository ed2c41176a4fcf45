package contexts

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/oidclogin"
	"github.com/pilot-api/pilot-api/internal/wholefile"
)

// File is the config file: named servers, and the name of the default one.
type File struct {
	Current  string    `json:"currentContext,omitempty"`
	Contexts []Context `json:"contexts,omitempty"`

	file string
}

// Context is a named server.
type Context struct {
	Name      string `json:"name"`
	Server    string `json:"server,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Access
	// Login is the issuer at which the user of the context logs in; nil for none.
	Login *oidclogin.Issuer `json:"login,omitempty"`
}

// configFile returns the path of the file with the contexts, "" if it is unknown.
func configFile(getenv func(string) string) string {
	if file := getenv("ISTIOCTL_CONFIG"); file != "" {
		return file
	}
	dir := getenv("XDG_CONFIG_HOME")
	if home := getenv("HOME"); dir == "" && home != "" {
		dir = filepath.Join(home, ".config")
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "istioctl", "config.yaml")
}

// Read reads the config file. A missing file has no contexts.
func Read(getenv func(string) string) (*File, error) {
	c := &File{file: configFile(getenv)}
	if c.file == "" {
		return c, nil
	}
	text, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = unread(yaml.UnmarshalStrict(text, c))
	}
	if err == nil {
		err = c.checkNames()
	}
	if err != nil {
		return nil, fmt.Errorf("config file %s: %w", c.file, err)
	}
	return c, nil
}

// checkNames refuses two contexts of one name, of which only the first could be used.
func (c *File) checkNames() error {
	met := map[string]bool{}
	for _, name := range c.Names() {
		if met[name] {
			return fmt.Errorf("two contexts have the name %q: rename or remove one", name)
		}
		met[name] = true
	}
	return nil
}

// unread turns a parse error into an error that a person can read, without Go's terms.
func unread(err error) error {
	if err == nil {
		return nil
	}
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return fmt.Errorf("%s cannot be of type %s: mend or remove the file", cmp.Or(typed.Field, "the whole"), typed.Value)
	}
	text := err.Error()
	for _, prefix := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return errors.New(text + ": mend or remove the file")
}

// Write replaces the config file.
func (c *File) Write() error {
	if c.file == "" {
		return errors.New("there is no place for a config file: set ISTIOCTL_CONFIG or HOME")
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.file), 0o700); err != nil {
		return err
	}
	return wholefile.WriteText(c.file, 0o600, text)
}

// Names returns the names of the contexts.
func (c *File) Names() (names []string) {
	for _, n := range c.Contexts {
		names = append(names, n.Name)
	}
	return names
}

// Find returns the context with a name.
func (c *File) Find(name string) (*Context, error) {
	i := slices.Index(c.Names(), name)
	if i < 0 {
		has := "none"
		if len(c.Contexts) > 0 {
			has = strings.Join(c.Names(), ", ")
		}
		return nil, fmt.Errorf("there is no context %q in %s, it has %s", name, c.file, has)
	}
	return &c.Contexts[i], nil
}

// Credentials returns the credentials of a context. Relative names are below the folder
// of the config file.
func (c *File) Credentials(of *Context) Access {
	out := of.below(filepath.Dir(c.file)).From(inContext(of.Name))
	if of.Login != nil {
		out.login = &oidclogin.Source{Issuer: *of.Login, File: c.LoginFile(of)}
	}
	return out
}

// Take makes the flags' credentials those of a context. They replace credentials of another
// kind. An empty value removes one.
func (c *Context) Take(given Access, changed func(flag string) bool) error {
	if given.TokenFile != "" && given.hasCertificate() {
		return given.From(Flags).Check()
	}
	switch {
	case given.TokenFile != "":
		c.ClientCertificate, c.ClientKey, c.Login = "", "", nil
	case given.hasCertificate():
		c.TokenFile, c.Login = "", nil
	}
	for flag, field := range map[string]struct{ to, from *string }{
		"token-file": {&c.TokenFile, &given.TokenFile}, "certificate-authority": {&c.CertificateAuthority, &given.CertificateAuthority},
		"client-certificate": {&c.ClientCertificate, &given.ClientCertificate}, "client-key": {&c.ClientKey, &given.ClientKey}, "tls-server-name": {&c.ServerName, &given.ServerName},
	} {
		if changed(flag) {
			*field.to = *field.from
		}
	}
	return c.Access.From(Flags).Check()
}

// LogIn makes a login the credentials of a context.
func (c *Context) LogIn(at oidclogin.Issuer) {
	c.Login = &at
	c.TokenFile, c.ClientCertificate, c.ClientKey = "", "", ""
}

// LoginFile returns the file with the tokens of a context.
func (c *File) LoginFile(of *Context) string {
	return filepath.Join(filepath.Dir(c.file), "tokens", url.PathEscape(of.Name)+".json")
}
