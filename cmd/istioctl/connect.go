package main

import "github.com/pilot-api/pilot-api/client"

// connect makes the client. It does not send anything yet.
func (s *session) connect(warn func(string)) (*client.Client, error) {
	return s.connectWith(client.Options{Warn: warn})
}

func (s *session) connectWith(opts client.Options) (*client.Client, error) {
	opts.Timeout, opts.UserAgent = s.requestTimeout, "istioctl/"+s.Version
	if err := s.credentials.apply(&opts, s.server); err != nil {
		return nil, err
	}
	c, err := client.New(s.server, opts)
	if err != nil {
		return nil, usage(err)
	}
	return c, nil
}
