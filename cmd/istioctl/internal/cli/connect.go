package cli

import (
	"sync"

	"github.com/pilot-api/pilot-api/client"
)

// Connect returns a client of the server. It sends nothing yet.
func (s *Session) Connect(warn func(string)) (*client.Client, error) {
	return s.ConnectWith(client.Options{Warn: warn})
}

// ConnectToRead is Connect for verbs that show a state. If the server's store does not
// answer, they show the last known state, and warn. If several answers have the same
// warning, warn gets it once.
func (s *Session) ConnectToRead(warn func(string)) (*client.Client, error) {
	var told sync.Map
	once := func(text string) {
		if _, known := told.LoadOrStore(text, true); !known {
			warn(text)
		}
	}
	return s.ConnectWith(client.Options{Warn: once, LastKnown: true})
}

// ConnectWith is Connect with options in addition to those of the session.
func (s *Session) ConnectWith(opts client.Options) (*client.Client, error) {
	opts.Timeout, opts.UserAgent = s.RequestTimeout, "istioctl/"+s.Version
	if err := s.Access.Or(s.credentials).Apply(&opts, s.Server); err != nil {
		return nil, err
	}
	c, err := client.New(s.Server, opts)
	if err != nil {
		return nil, Usage(err)
	}
	return c, nil
}
