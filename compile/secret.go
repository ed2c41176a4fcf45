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

// secret is what rules of its namespace may name as credentialName.
type secret struct {
	declared
	pair credential.Pair
}

func readSecret(_ *plan, of declared, spec *schema.Secret) *secret { return &secret{of, spec.Pair()} }

func (s *secret) name() string { return secretName(s.ref.Namespace, s.ref.Name) }

// secretName is how the rules of a namespace refer to a secret.
func secretName(namespace, name string) string { return namespace + "/" + name }

// authorities end the name of those of a secret: what shows a certificate and what
// verifies others are two things to a proxy. No object has such a name.
const authorities = "/ca"

// holding is what of a secret there is, which stays when that is another one.
type holding struct{ pair, authorities bool }

// pairNamed is what a name stands for; nothing where there is none.
func (p *plan) pairNamed(name string) (pair credential.Pair, origins []diag.Ref) {
	if p.inFiles(name) {
		return p.fileSecrets.Get(p.r, name).Pair, nil
	}
	for _, s := range p.secretNamed.under(p, name) {
		return s.pair, []diag.Ref{s.ref}
	}
	return credential.Pair{}, nil
}

// authoritiesNamed are those of a secret, or where it has none those of the one
// that is there for that.
func (p *plan) authoritiesNamed(name string) (text string, origins []diag.Ref) {
	for _, name := range []string{name, name + schema.CACertSuffix} {
		if pair, origins := p.pairNamed(name); pair.CACertificates != "" {
			return pair.CACertificates, origins
		}
	}
	return "", nil
}

func (p *plan) holdingOf(name string) holding {
	pair, _ := p.pairNamed(name)
	text, _ := p.authoritiesNamed(name)
	return holding{pair.Certificate != "" && !pair.Key.None(), text != ""}
}

// secretPart is nil for what is not there.
func (p *plan) secretPart(name string) *ir.Secret {
	if owner, ok := strings.CutSuffix(name, authorities); ok {
		text, origins := p.authoritiesNamed(owner)
		if text == "" {
			return nil
		}
		return &ir.Secret{Name: name, CACertificates: text, Origins: origins}
	}
	pair, origins := p.pairNamed(name)
	if pair.Certificate == "" || pair.Key.None() {
		return nil
	}
	return &ir.Secret{Name: name, Certificate: pair.Certificate, Key: pair.Key, Origins: origins}
}

// absence is why something of a secret cannot be had; the zero value where it can.
type absence struct {
	why string
	// missing: what is named is not there.
	missing bool
}

// problem is that of who names the secret, with what follows before the reason.
func (l absence) problem(ref diag.Ref, field, follows string) diag.Problem {
	reason := diag.NotHonoured
	if l.missing {
		reason = diag.NoSuchReference
	}
	return diag.Problem{Severity: diag.Warning, Reason: reason, Code: diag.TLSUnmet, Object: ref, Field: field, Message: follows + l.why}
}

func missing(format string, args ...any) absence { return absence{fmt.Sprintf(format, args...), true} }

// lackOfSecret is why proxies can be sent nothing of a secret.
func (p *plan) lackOfSecret(name, setting string) absence {
	switch {
	case p.holdings.Get(p.r, name) != (holding{}):
		return absence{}
	case p.inFiles(name):
		return missing("secretFiles of the mesh settings has files for %s, and they cannot be used", name)
	}
	return missing("there is no Secret %s that can be used, and %s of the mesh settings has no files for %q", name, setting, path.Base(name))
}

// lackOfPair is why no certificate can be shown under a name.
func (p *plan) lackOfPair(name, setting string) absence {
	l := p.lackOfSecret(name, setting)
	if l.why == "" && !p.holdings.Get(p.r, name).pair {
		l = missing("Secret %s has no certificate with a privateKey", name)
	}
	return l
}

// lackOfAuthorities is why nobody can be verified by a name.
func (p *plan) lackOfAuthorities(name, setting string) absence {
	l := p.lackOfSecret(name, setting)
	if l.why == "" && !p.holdings.Get(p.r, name).authorities {
		l = missing("Secret %s has no caCertificates, and there are none in %s", name, name+schema.CACertSuffix)
	}
	return l
}

// secretsOf are those that a configuration refers to.
func (p *plan) secretsOf(config *ir.Config) []*ir.Secret {
	var out []*ir.Secret
	for _, name := range config.SecretNames() {
		if s := p.secrets.Get(p.r, name); s != nil {
			out = append(out, s)
		}
	}
	return out
}
