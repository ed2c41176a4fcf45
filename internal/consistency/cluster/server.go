package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Server is a pilot-api.
type Server struct {
	*Process
	URL string
}

// NewServer describes a pilot-api on an address of its own; nothing runs yet.
func NewServer(dir, name, program string, args ...string) (*Server, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := newProcess(dir, name, program, append([]string{"--listen", addr, "--log-level", "warn"}, args...)...)
	return &Server{Process: p, URL: "http://" + addr}, err
}

// Ready waits until the server says that it is.
func (s *Server) Ready(ctx context.Context) error {
	return until(ctx, s.Name+" to be ready", func(ctx context.Context) error {
		if !s.Running() {
			return fmt.Errorf("%s has ended", s.Name)
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", resp.Status, text)
		}
		return nil
	})
}
