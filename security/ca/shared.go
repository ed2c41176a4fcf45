package ca

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pilot-api/pilot-api/credential"
)

// Document is a text that all servers share.
type Document interface {
	// Update replaces the text with the result of change, which gets "" if there is none. It
	// calls change again if another server was faster.
	Update(ctx context.Context, change func(text string) (string, error)) (string, error)
	// Follow calls changed with the text, now and after each change, until ctx ends.
	Follow(ctx context.Context, changed func(text string)) error
}

// rootLife is how long a root that a server makes lasts.
const rootLife = 10 * 365 * 24 * time.Hour

// Shared is an authority that servers make and share. Make it with NewShared.
type Shared struct {
	ca       *CA
	document Document
	key      StoreKey
	sealer   atomic.Pointer[Sealer] // nil if the key is missing
	log      *slog.Logger
	mu       sync.Mutex // held while the trust is replaced
	// version is that of the last text that this server wrote, at a time.
	version int64
	wrote   time.Time
}

// StoreKey is the key that encrypts the keys of an authority in its document.
type StoreKey struct {
	// Sealer is nil if the key is missing.
	Sealer *Sealer
	// Make makes the missing key. It is called only if the document has no authority yet: another
	// key would open nothing.
	Make func() (*Sealer, error)
	// Name is the name of the key in messages.
	Name string
}

// NewShared returns the authority in a document for a CA.
func NewShared(c *CA, document Document, key StoreKey, log *slog.Logger) *Shared {
	s := &Shared{ca: c, document: document, key: key, log: log}
	s.sealer.Store(key.Sealer)
	return s
}

// sharedState is the content of the document.
type sharedState struct {
	Authorities []sharedAuthority `json:"authorities"` // the oldest first
	// Signer is the name of the authority that signs.
	Signer string `json:"signer"`
	// Revoked are the revoked certificates that have not ended, and Revocations counts all.
	Revoked     []revokedCertificate `json:"revoked,omitempty"`
	Revocations int64                `json:"revocations,omitempty"`
	// Version counts the changes.
	Version int64 `json:"version,omitempty"`
}

type sharedAuthority struct {
	Name        string `json:"name"`
	Certificate string `json:"certificate"` // in PEM
	Key         []byte `json:"key"`         // PKCS #8, encrypted
	// LastEnd is when the last certificate ends that the authority may have signed; zero if
	// that is not known.
	LastEnd time.Time `json:"lastEnd,omitzero"`
	// List is the list of revoked certificates that the authority signed, in PEM.
	List string `json:"list,omitempty"`
}

// parseShared reads the content of the document.
func parseShared(text string) (*sharedState, error) {
	var state sharedState
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return nil, fmt.Errorf("the shared authority cannot be read: %w", err)
	}
	return &state, nil
}

// text returns the state as the next version of the document.
func (s *sharedState) text() (string, error) {
	s.Version++
	out, err := json.Marshal(s)
	return string(out), err
}

// Run makes the first authority, if there is none, and keeps the trust of the CA up to date
// until ctx ends. It returns ctx's error.
func (s *Shared) Run(ctx context.Context) error {
	return s.document.Follow(ctx, func(text string) {
		if text == "" {
			s.begin(ctx)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.isOlder(text) {
			s.take(text)
		}
	})
}

// ownLead is how long the watch of the document may be behind what this server wrote.
const ownLead = 10 * time.Second

// isOlder reports whether a text is from before the last one that this server wrote, which the
// watch of the document has not seen yet. s.mu must be held.
func (s *Shared) isOlder(text string) bool {
	state, err := parseShared(text)
	return err == nil && state.Version < s.version && time.Since(s.wrote) < ownLead
}

// takeOwn takes a text that this server wrote.
func (s *Shared) takeOwn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state, err := parseShared(text); err == nil && !s.isOlder(text) {
		s.version, s.wrote = state.Version, time.Now()
		s.take(text)
	}
}

// take sets the trust of the CA to that of a document. If it cannot be read, workloads go on to
// trust what they did, and nothing is signed. s.mu must be held.
func (s *Shared) take(text string) {
	trust, err := s.read(text)
	if err != nil {
		s.log.Error("the shared authority cannot be read: nothing is signed until it can", "error", err)
		trust = &Trust{Lack: "the shared authority cannot be read"}
		if before, _ := s.ca.Trust(); before != nil {
			trust.Roots, trust.lastEnds, trust.next = before.Roots, before.lastEnds, before.next
			trust.Lists, trust.ListsPEM, trust.Revocations, trust.revoked = before.Lists, before.ListsPEM, before.Revocations, before.revoked
		}
	} else if trust.Issuer == nil {
		s.log.Error("this server cannot sign certificates", "error", trust.Lack)
	}
	s.ca.SetTrust(trust)
}

// begin makes the first authority. If it fails, Follow tries again with the next change, and
// the servers that start later do.
func (s *Shared) begin(ctx context.Context) {
	for ctx.Err() == nil {
		_, err := s.document.Update(ctx, func(text string) (string, error) {
			if text != "" {
				return text, nil
			}
			first, err := s.makeFirst()
			if err != nil {
				return "", err
			}
			return (&sharedState{Authorities: []sharedAuthority{first}, Signer: first.Name}).text()
		})
		if err == nil {
			return
		}
		s.log.Warn("the authority of the mesh could not be stored yet", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// change changes the state of all servers, and returns its text. by may be called again if
// another server changes the state at the same time.
func (s *Shared) change(ctx context.Context, by func(*sharedState) (changed bool, err error)) (text string, err error) {
	return s.document.Update(ctx, func(text string) (string, error) {
		state, err := parseShared(text)
		if err != nil {
			return "", err
		}
		switch changed, err := by(state); {
		case err != nil:
			return "", err
		case !changed:
			return text, nil
		}
		return state.text()
	})
}

// decide is change for a decision of an operator. This server follows it at once.
func (s *Shared) decide(ctx context.Context, by func(*sharedState) (changed bool, err error)) error {
	text, err := s.change(ctx, by)
	if err == nil {
		s.takeOwn(text)
	}
	return err
}

// makeFirst returns the first root. It makes the key that encrypts it, if that is missing.
func (s *Shared) makeFirst() (sharedAuthority, error) {
	if s.sealer.Load() == nil && s.key.Make != nil {
		made, err := s.key.Make()
		if err != nil {
			return sharedAuthority{}, err
		}
		s.sealer.Store(made)
	}
	return s.make()
}

// errNoKey says that the key of the document is missing, and what to do.
func (s *Shared) errNoKey() error {
	return fmt.Errorf("%s is missing: put its copy back and restart the server. If there is no copy, write a new key (openssl rand -base64 32), restart, and rotate the root (istioctl ca rotate)", s.key.Name)
}

// make returns a new root.
func (s *Shared) make() (sharedAuthority, error) {
	sealer := s.sealer.Load()
	if sealer == nil {
		return sharedAuthority{}, s.errNoKey()
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return sharedAuthority{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serials{}.next(), NotBefore: now.Add(-s.ca.opts.Skew), NotAfter: now.Add(rootLife),
		Subject:  pkix.Name{Organization: []string{s.ca.opts.TrustDomain}, CommonName: "Mesh root of " + now.UTC().Format(time.DateOnly)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return sharedAuthority{}, err
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		return sharedAuthority{}, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return sharedAuthority{}, err
	}
	name := Name(certificate)
	return sharedAuthority{Name: name, Certificate: certificatesPEM([]*x509.Certificate{certificate}), Key: sealer.seal(name, private), LastEnd: now.UTC()}, nil
}

// read returns the trust in a document. If the key of the signer cannot be opened, there are
// roots and no issuer.
func (s *Shared) read(text string) (*Trust, error) {
	state, err := parseShared(text)
	if err != nil {
		return nil, err
	}
	trust := &Trust{next: state.next(), Revocations: state.Revocations, revoked: len(state.Revoked), lastEnds: map[string]time.Time{}, Lack: fmt.Sprintf("the authority %s, which signs, is not among the shared ones", state.Signer)}
	for _, one := range state.Authorities {
		list, err := credential.Certificates(one.Certificate)
		if err != nil {
			return nil, fmt.Errorf("authority %s: %w", one.Name, err)
		}
		root := list[0]
		trust.Roots, trust.lastEnds[one.Name] = append(trust.Roots, root), one.LastEnd
		if err := trust.addList(one.List); err != nil {
			return nil, fmt.Errorf("authority %s: %w", one.Name, err)
		}
		if one.Name != state.Signer {
			continue
		}
		key, numbers, err := s.keyOf(one)
		if err != nil {
			trust.Lack = err.Error()
			continue
		}
		trust.Issuer, trust.Lack = &Issuer{Chain: []*x509.Certificate{root}, Root: root, key: key, serials: numbers}, ""
		trust.cover = func(ctx context.Context, end time.Time) error { return s.cover(ctx, one.Name, end) }
	}
	return trust, nil
}

// keyOf returns the key of an authority, and its serial numbers.
func (s *Shared) keyOf(one sharedAuthority) (crypto.Signer, serials, error) {
	sealer := s.sealer.Load()
	if sealer == nil {
		return nil, serials{}, fmt.Errorf("the key of the authority %s cannot be opened: %w", one.Name, s.errNoKey())
	}
	private, err := sealer.open(one.Name, one.Key)
	if err != nil {
		return nil, serials{}, fmt.Errorf("the key of the authority %s cannot be opened: %w (--ca-store-key must be the key with which the authority was stored)", one.Name, err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(private)
	if err != nil {
		return nil, serials{}, fmt.Errorf("the key of the authority %s: %w", one.Name, err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, serials{}, fmt.Errorf("the key of the authority %s: a %T cannot sign", one.Name, parsed)
	}
	return key, serialsOf(private), nil
}
