package apply

import (
	"context"

	"github.com/pilot-api/pilot-api/client"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/manifest"
)

// SetWarnings are the server's warnings about objects that are written one after the
// other. A warning may be about a reference to an object that is written later, or that
// a dry run does not store. So SetWarnings holds the warnings until all objects are
// sent, and then asks for them again, about all objects together.
type SetWarnings struct {
	session *cli.Session
	connect func(client.Options) (Transactor, error)
	hold    bool
	held    []string
}

// HoldWarnings holds warnings, or prints each of them at once. With connect it asks for
// them again.
func HoldWarnings(s *cli.Session, hold bool, connect func(client.Options) (Transactor, error)) *SetWarnings {
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
	if err != nil {
		texts = w.held
	}
	for _, text := range texts {
		w.session.WarnUnknown(text)
	}
}

// ofTogether returns the warnings about a dry run of all objects in one transaction.
func (w *SetWarnings) ofTogether(ctx context.Context, list []manifest.Manifest) ([]string, error) {
	var texts []string
	c, err := w.connect(client.Options{Warn: func(text string) { texts = append(texts, text) }, DryRun: true})
	if err != nil {
		return nil, err
	}
	t := atomicApply{Session: w.session, client: c, list: list}
	steps, err := t.operations(ctx)
	if err != nil {
		return nil, err
	}
	_, err = c.Txn(ctx, opsOf(steps))
	return texts, err
}
