package compile

import (
	"fmt"
	"path"
	"strings"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
	"github.com/pilot-api/pilot-api/schema"
)

// secret is a Secret that rules of its namespace may name as credentialName.
type secret struct {
	declared
	pair credential.Pair
}

func readSecret(_ *plan, of declared, spec *schema.Secret) *secret { return &secret{of, spec.Pair()} }

func (s *secret) name() string { return secretName(s.ref.Namespace, s.ref.Name) }

// secretName returns the full name of a secret that rules of a namespace refer to.
func secretName(namespace, name string) string { return namespace + "/" + name }

// authorities is the suffix of the name of a secret's authorities: to a proxy, a
// certificate and the authorities that verify others are two secrets. No object has
// such a name.
const authorities = "/ca"

// holding says which parts of a secret exist. It stays the same if only their
// contents change.
type holding struct{ pair, authorities bool }

// pairNamed returns the contents of a secret by name, or nothing if there is none.
func (rd *reader) pairNamed(name string) (pair credential.Pair, origins []diag.Ref) {
	if rd.inFiles(name) {
		return rd.fileSecrets.Get(rd.r, name).Pair, nil
	}
	for _, s := range rd.secretNamed.under(rd, name) {
		return s.pair, []diag.Ref{s.ref}
	}
	return credential.Pair{}, nil
}

// authoritiesNamed returns the authorities of a secret or, if it has none, those of
// the separate secret for them.
func (rd *reader) authoritiesNamed(name string) (text string, origins []diag.Ref) {
	for _, name := range []string{name, name + schema.CACertSuffix} {
		if pair, origins := rd.pairNamed(name); pair.CACertificates != "" {
			return pair.CACertificates, origins
		}
	}
	return "", nil
}

func (rd *reader) holdingOf(name string) holding {
	pair, _ := rd.pairNamed(name)
	text, _ := rd.authoritiesNamed(name)
	return holding{pair.Certificate != "" && !pair.Key.None(), text != ""}
}

// secretPart returns nil if the secret or the part does not exist.
func (rd *reader) secretPart(name string) *ir.Secret {
	if isRoots(name) {
		return rd.rootsSecret(name)
	}
	if owner, ok := strings.CutSuffix(name, authorities); ok {
		text, origins := rd.authoritiesNamed(owner)
		if text == "" {
			return nil
		}
		return &ir.Secret{Name: name, CACertificates: text, Origins: origins}
	}
	pair, origins := rd.pairNamed(name)
	if pair.Certificate == "" || pair.Key.None() {
		return nil
	}
	return &ir.Secret{Name: name, Certificate: pair.Certificate, Key: pair.Key, Origins: origins}
}

// absence says why a part of a secret is not available; the zero value means it is.
type absence struct {
	why string
	// missing is set if the named secret does not exist.
	missing bool
}

// problem returns the problem of the object that names the secret. follows is the
// consequence, which precedes the reason.
func (l absence) problem(ref diag.Ref, field, follows string) diag.Problem {
	reason := diag.NotHonoured
	if l.missing {
		reason = diag.NoSuchReference
	}
	return diag.Problem{Severity: diag.Warning, Reason: reason, Code: diag.TLSUnmet, Object: ref, Field: field, Message: follows + l.why}
}

func missing(format string, args ...any) absence { return absence{fmt.Sprintf(format, args...), true} }

// lackOfSecret returns why nothing of a secret can be sent to proxies.
func (rd *reader) lackOfSecret(name, setting string) absence {
	switch {
	case rd.holdings.Get(rd.r, name) != (holding{}):
		return absence{}
	case rd.inFiles(name):
		return missing("secretFiles of the mesh settings has files for %s, and they cannot be used", name)
	}
	return missing("there is no Secret %s that can be used, and %s of the mesh settings has no files for %q", name, setting, path.Base(name))
}

// lackOfPair returns why there is no certificate with a key under a name.
func (rd *reader) lackOfPair(name, setting string) absence {
	l := rd.lackOfSecret(name, setting)
	if l.why == "" && !rd.holdings.Get(rd.r, name).pair {
		l = missing("Secret %s has no certificate with a privateKey", name)
	}
	return l
}

// lackOfAuthorities returns why there are no authorities under a name.
func (rd *reader) lackOfAuthorities(name, setting string) absence {
	l := rd.lackOfSecret(name, setting)
	if l.why == "" && !rd.holdings.Get(rd.r, name).authorities {
		l = missing("Secret %s has no caCertificates, and there are none in %s", name, name+schema.CACertSuffix)
	}
	return l
}

// secretsOf returns the secrets that a configuration refers to.
func (rd *reader) secretsOf(config *ir.Config) []*ir.Secret {
	var out []*ir.Secret
	for _, name := range config.SecretNames() {
		if s := rd.secrets.Get(rd.r, name); s != nil {
			out = append(out, s)
		}
	}
	return out
}
