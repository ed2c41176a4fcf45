package ca

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Step is a step of the rotation of a root. Each step waits until it cuts nobody off.
type Step string

// The steps of a rotation, in this order. Cancel goes back instead of forward.
const (
	// Add makes a new root. Workloads trust it beside the old one.
	Add Step = "add"
	// Sign makes the new root sign. All workloads must trust it.
	Sign Step = "sign"
	// Drop ends the trust in the old root. All certificates that it signed must have ended.
	Drop Step = "drop"
	// Cancel drops the new root, or lets the old one sign again if the new one does.
	Cancel Step = "cancel"
)

// Steps are all steps.
var Steps = []Step{Add, Sign, Drop, Cancel}

// BlockedError says why a step of a rotation would cut somebody off.
type BlockedError struct {
	Step    Step
	Reasons []string
}

// Error has the first reasons.
func (b *BlockedError) Error() string {
	const most = 10
	text := fmt.Sprintf("the step %s would cut somebody off:", b.Step)
	for i, reason := range b.Reasons {
		if i == most {
			return fmt.Sprintf("%s and %d more", text, len(b.Reasons)-most)
		}
		text += "\n- " + reason
	}
	return text
}

// ErrNoStep means that a rotation has not come to a step.
var ErrNoStep = errors.New("this is not the next step")

// ErrNotOurs means that the authority is not one that servers make.
var ErrNotOurs = errors.New("the authority is in files (--ca files): to rotate its root, add the new root to the file of --ca-root, then replace --ca-cert and --ca-key, then remove the old root")

// AuthorityStatus is an authority that workloads trust.
type AuthorityStatus struct {
	Name     string    `json:"name"`
	Subject  string    `json:"subject"`
	NotAfter time.Time `json:"notAfter"`
	// Signs says that it signs the certificates of workloads.
	Signs bool `json:"signs,omitempty"`
	// LastEnd is when the last certificate ends that the authority may have signed; zero if
	// that is not known.
	LastEnd time.Time `json:"lastEnd,omitzero"`
}

// Status is the state of an authority.
type Status struct {
	// Authorities are the roots, the oldest first.
	Authorities []AuthorityStatus `json:"authorities"`
	// Lack says why this server cannot sign; "" if it can.
	Lack string `json:"lack,omitempty"`
	// Revoked is the number of revoked certificates that have perhaps not ended.
	Revoked int `json:"revoked,omitempty"`
	// Next is the next step of the rotation of the root; "" if the authority is in files.
	Next Step `json:"next,omitempty"`
}

// Status returns the state as this server knows it.
func (c *CA) Status() Status {
	trust, _ := c.Trust()
	out := Status{Authorities: []AuthorityStatus{}, Lack: "its authority is not known yet"}
	if trust == nil {
		return out
	}
	out.Lack, out.Next, out.Revoked = trust.Lack, trust.next, trust.revoked
	for _, root := range trust.Roots {
		name := Name(root)
		out.Authorities = append(out.Authorities, AuthorityStatus{
			Name: name, Subject: root.Subject.String(), NotAfter: root.NotAfter.UTC(), LastEnd: trust.lastEnds[name],
			Signs: trust.Issuer != nil && trust.Issuer.Root.Equal(root),
		})
	}
	return out
}

// Blocking returns why the step that a rotation comes to next would cut somebody off. without
// returns a text for each workload that is not known to trust a root.
func (c *CA) Blocking(step Step, without func(root string) []string) []string {
	status := c.Status()
	if len(status.Authorities) == 0 {
		return []string{"the authority is not known to this server"}
	}
	newest := status.Authorities[len(status.Authorities)-1]
	switch {
	case step == Sign:
		return without(newest.Name)
	case step == Drop:
		return unended(status.Authorities[0])
	case step == Cancel && !newest.Signs:
		return unended(newest)
	}
	return nil
}

// unended returns a reason if certificates of an authority may still count.
func unended(a AuthorityStatus) []string {
	switch {
	case a.LastEnd.IsZero():
		return []string{fmt.Sprintf("it is not known when the last certificate ends that %s signed", a.Name)}
	case time.Now().After(a.LastEnd):
		return nil
	}
	return []string{fmt.Sprintf("certificates that %s signed count until %s", a.Name, a.LastEnd.UTC().Format(time.RFC3339))}
}

// Rotate does a step of a rotation for all servers. Nothing checks whether it cuts somebody
// off: see Blocking. The error is ErrNoStep, or one of the document.
func (s *Shared) Rotate(ctx context.Context, step Step) error {
	return s.decide(ctx, func(state *sharedState) (changed bool, err error) {
		if err := state.rotate(step, s.make); err != nil {
			return false, err
		}
		if step == Add { // The lists of the others stay, also if their keys are lost.
			return true, s.list(state, state.Authorities[len(state.Authorities)-1:])
		}
		return true, nil
	})
}

// next returns the next step.
func (s *sharedState) next() Step {
	switch {
	case len(s.Authorities) < 2:
		return Add
	case s.newestSigns():
		return Drop
	}
	return Sign
}

func (s *sharedState) newestSigns() bool { return s.Authorities[len(s.Authorities)-1].Name == s.Signer }

// rotate changes the state by a step. make returns a new root.
func (s *sharedState) rotate(step Step, make func() (sharedAuthority, error)) error {
	if len(s.Authorities) == 0 {
		return errors.New("the shared authority has no root")
	}
	next := s.next()
	switch {
	case step == Cancel && next == Sign:
		s.Authorities = s.Authorities[:len(s.Authorities)-1]
	case step == Cancel && next == Drop:
		s.Signer = s.Authorities[0].Name
	case step != next:
		return fmt.Errorf("%w: %s comes next", ErrNoStep, next)
	case step == Add:
		one, err := make()
		if err != nil {
			return err
		}
		s.Authorities = append(s.Authorities, one)
	case step == Sign:
		s.Signer = s.Authorities[len(s.Authorities)-1].Name
	case step == Drop:
		s.Authorities = slices.DeleteFunc(s.Authorities, func(a sharedAuthority) bool { return a.Name != s.Signer })
	}
	return nil
}

// cover records, before a certificate leaves the server, that an authority has signed one that
// ends at a time. It records a later time than that, so that it writes seldom.
func (s *Shared) cover(ctx context.Context, name string, end time.Time) error {
	_, err := s.change(ctx, func(state *sharedState) (changed bool, err error) {
		at := slices.IndexFunc(state.Authorities, func(a sharedAuthority) bool { return a.Name == name })
		switch {
		case at < 0 || state.Signer != name:
			return false, fmt.Errorf("%w: another authority signs now", ErrNoIssuer)
		case !end.After(state.Authorities[at].LastEnd):
			return false, nil
		}
		state.Authorities[at].LastEnd = end.Add(time.Until(end) / coverAhead).UTC()
		return true, nil
	})
	if err != nil && !errors.Is(err, ErrNoIssuer) {
		err = fmt.Errorf("%w: %w", ErrNoIssuer, err)
	}
	return err
}

// coverAhead is the part of the life of a certificate by which the recorded end is later.
const coverAhead = 8
