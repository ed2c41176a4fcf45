package xds

import (
	"encoding/json"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/ir"
)

// SecretSummary is the form of a secret for people. The whole secret goes only to proxies
// whose configuration refers to it.
type SecretSummary struct {
	Name string `json:"name"`
	// Certificate is the presented certificate with its chain; CACertificates are
	// authorities. A secret has one of the two.
	Certificate    []credential.Summary `json:"certificate,omitempty"`
	CACertificates []credential.Summary `json:"caCertificates,omitempty"`
	// PrivateKey is a mark in place of the key.
	PrivateKey string     `json:"privateKey,omitempty"`
	Origins    []diag.Ref `json:"origins,omitempty"`
}

func shownSecret(s *ir.Secret) json.RawMessage {
	out := SecretSummary{
		Name: s.Name, Certificate: credential.Summaries(s.Certificate),
		CACertificates: credential.Summaries(s.CACertificates), Origins: s.Origins,
	}
	if !s.Key.None() {
		out.PrivateKey = credential.Mark(s.Name, s.Key.Reveal())
	}
	text, err := json.Marshal(out)
	if err != nil {
		return json.RawMessage("{}") // Texts and times always encode.
	}
	return text
}
