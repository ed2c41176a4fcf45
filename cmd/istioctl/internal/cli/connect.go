package cli

import "github.com/pilot-api/pilot-api/client"

// Connect makes the client. It does not send anything yet.
func (s *Session) Connect(warn func(string)) (*client.Client, error) {
	return s.ConnectWith(client.Options{Warn: warn})
}

// ConnectWith is Connect with options besides those of the session.
func (s *Session) ConnectWith(opts client.Options) (*client.Client, error) {
	opts.Timeout, opts.UserAgent = s.RequestTimeout, "istioctl/"+s.Version
	if err := s.credentials.Apply(&opts, s.Server); err != nil {
		return nil, err
	}
	c, err := client.New(s.Server, opts)
	if err != nil {
		return nil, Usage(err)
	}
	return c, nil
}
