package apply

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
	"github.com/pilot-api/pilot-api/store"
)

// Judges returns the warnings that the server would give if it received objects together.
type Judges interface {
	Transactor
	Analyst
}

// Analyst returns the problems of the server's objects, and those that other objects would
// cause.
type Analyst interface {
	Problems(ctx context.Context, opts client.ProblemsOptions) (*client.Problems, error)
	PreviewWithout(ctx context.Context, text []byte, namespace string, without []schema.Key) (*client.Preview, error)
}

// SetWarnings are the server's warnings about objects that are not written together. A
// warning may be about a reference to an object that is written later, or that a dry run
// does not store. So SetWarnings holds the warnings until all objects are sent, and then
// asks for them again, about all objects together.
type SetWarnings struct {
	session *cli.Session
	connect func(client.Options) (Judges, error)
	hold    bool
	held    []string
}

// HoldWarnings holds warnings, or prints each of them at once. With connect it asks for
// them again.
func HoldWarnings(s *cli.Session, hold bool, connect func(client.Options) (Judges, error)) *SetWarnings {
	return &SetWarnings{session: s, hold: hold, connect: connect}
}

// Tell takes a warning of the server.
func (w *SetWarnings) Tell(text string) {
	if !w.hold {
		w.session.WarnUnknown(text)
		return
	}
	w.held = append(w.held, text)
}

// Judge prints the server's warnings about all objects together. If the server cannot
// give them, for example because it refuses one of the objects, Judge prints the held
// warnings.
func (w *SetWarnings) Judge(ctx context.Context, list []manifest.Manifest) {
	if len(w.held) == 0 {
		return
	}
	texts, err := w.ofTogether(ctx, list)
	if errors.Is(err, store.ErrTooLarge) {
		texts, err = w.ofAnalysis(ctx, list)
	}
	if err != nil {
		texts = w.held
	}
	w.session.WarnAll(texts)
}

// Release prints the held warnings. They are about objects that were written together.
func (w *SetWarnings) Release() {
	w.session.WarnAll(w.held)
}

// ofTogether returns the warnings about a dry run of all objects in one transaction.
func (w *SetWarnings) ofTogether(ctx context.Context, list []manifest.Manifest) ([]string, error) {
	var texts []string
	c, err := w.connect(client.Options{Warn: func(text string) { texts = append(texts, text) }, DryRun: true})
	if err != nil {
		return nil, err
	}
	steps, err := newSet(w.session, c, SetFlags{}, list).plan(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.Txn(ctx, opsOf(steps))
	return texts, err
}

// ofAnalysis returns the problems that the objects would have, and the held warnings
// about other objects. The server compiles the whole mesh for it.
func (w *SetWarnings) ofAnalysis(ctx context.Context, list []manifest.Manifest) ([]string, error) {
	c, err := w.connect(client.Options{})
	if err != nil {
		return nil, err
	}
	found, err := problemsOf(ctx, w.session, c, list, nil)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, p := range found {
		texts = append(texts, cli.OneLine(p.Coded()))
	}
	return append(texts, slices.DeleteFunc(slices.Clone(w.held), func(text string) bool {
		return slices.ContainsFunc(list, func(m manifest.Manifest) bool {
			return strings.Contains(text, m.Key().Ref().String()+":")
		})
	})...), nil
}

// problemsOf returns the problems that objects would have if the server stored them and
// deleted others, and the new ones that this would cause in others.
func problemsOf(ctx context.Context, s *cli.Session, c Analyst, list []manifest.Manifest, without []schema.Key) (diag.List, error) {
	now, err := c.Problems(ctx, client.ProblemsOptions{})
	if err != nil {
		return nil, err
	}
	would, err := c.PreviewWithout(ctx, manifest.Joined(list), s.Namespace, without)
	if err != nil {
		return nil, err
	}
	ours, solved := map[diag.Ref]bool{}, map[diag.Problem]bool{}
	for _, m := range list {
		ours[m.Key().Ref()] = true
	}
	for _, p := range would.Solved {
		solved[p] = true
	}
	remain := slices.DeleteFunc(now.Problems, func(p diag.Problem) bool { return !ours[p.Object] || solved[p] })
	return append(remain, would.Problems...), nil
}
