package schema

import (
	"fmt"
	"strings"
	"time"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// Secret is the spec of a Secret.
type Secret struct {
	Certificate    string         `json:"certificate,omitempty"`
	PrivateKey     credential.Key `json:"privateKey,omitzero"`
	CACertificates string         `json:"caCertificates,omitempty"`
}

// Pair returns the contents of the Secret.
func (s *Secret) Pair() credential.Pair {
	return credential.Pair{Certificate: s.Certificate, Key: s.PrivateKey, CACertificates: s.CACertificates}
}

func init() {
	register(&Kind{
		Group: registryGroup, Version: "v1",
		Kind: "Secret", Plural: "secrets", Singular: "secret",
		Dashed: "secret", ShortNames: []string{"sec"},
		Doc: "A Secret has a certificate with its private key, authorities that verify other certificates, or both. " +
			"Gateway and DestinationRule objects of its namespace use it if they name it as credentialName. The server sends it to the proxies that such an object concerns, and its private key only to proxies that prove that they may have it. " +
			"When it changes, proxies get the new version and drop no connection. If a Secret has no authorities, those of the Secret with the same name and the ending -cacert are used.",
		Columns: []Column{
			stringColumn("Subject", "The subject of the certificate.", ofLeaf(func(c credential.Summary) string { return c.Subject })),
			stringColumn("Expires", "When the certificate ends.", ofLeaf(func(c credential.Summary) string { return c.NotAfter.Format(time.RFC3339) })),
			listColumn("Names", "The names that the certificate is for.", ",", func(s *Secret) []string { return leafOf(s).Names }),
			wideColumn("Authorities", "The number of authorities.", func(s *Secret) string {
				return fmt.Sprint(len(credential.Summaries(s.CACertificates)))
			}),
			wideColumn("Fingerprint", "SHA-256 of the certificate.", ofLeaf(func(c credential.Summary) string { return c.Fingerprint })),
		},
		private: []string{credential.KeyField},
		spec:    inJSON[Secret](),
		check:   checkAs(checkSecret),
	})
}

// leafOf returns the certificate that is presented, or the zero value.
func leafOf(s *Secret) credential.Summary {
	for _, c := range credential.Summaries(s.Certificate) {
		return c
	}
	return credential.Summary{}
}

func ofLeaf(text func(credential.Summary) string) func(*Secret) string {
	return func(s *Secret) string {
		if s.Certificate == "" {
			return ""
		}
		return text(leafOf(s))
	}
}

func checkSecret(s *Secret) diag.List {
	var p problems
	now := time.Now()
	for _, flaw := range s.Pair().Check(now) {
		field := "spec." + flaw.Field
		switch {
		case flaw.Missing:
			p.required(field, flaw.Message)
		case flaw.Advice:
			p.suspect(field, flaw.Message)
		default:
			p.invalid(field, flaw.Message)
		}
	}
	return append(p.list, SecretExpiryProblems(diag.Ref{}, s.Pair().Ends(), now)...)
}

// CACertSuffix ends the name of the Secret that holds the authorities for another
// one.
const CACertSuffix = "-cacert"

// lastApplied is the annotation in which kubectl keeps the whole text that it
// applied last.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// checkNoKey rejects metadata with a private key, because everybody can read
// metadata. kubectl's own annotation is handled when the object is built.
func (d *candidate) checkNoKey() {
	if d.kind == nil || len(d.kind.private) == 0 {
		return
	}
	for _, in := range []struct {
		field string
		texts map[string]string
	}{{"metadata.annotations", d.meta.Annotations}, {"metadata.labels", d.meta.Labels}} {
		for name, text := range in.texts {
			if name != lastApplied && credential.HoldsKey(text) {
				d.forbidden(keyField(in.field, name), "must not hold a private key: everybody can read it there")
			}
		}
	}
}

// withoutValues removes the values found from problems, because some may be
// private.
func withoutValues(list diag.List) diag.List {
	for i := range list {
		if at := list[i].Field; strings.HasPrefix(at, "spec") || strings.HasPrefix(at, "metadata.annotations") || strings.HasPrefix(at, "metadata.labels") {
			list[i].Value = ""
		}
	}
	return list
}
