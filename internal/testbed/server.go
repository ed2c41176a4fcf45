package testbed

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
	XDS string // HOST:PORT of its streams
}

// NewServer describes a pilot-api at an address of its own, but does not start it. args
// must say where its data is.
func NewServer(dir, name, program string, args ...string) (*Server, error) {
	addr, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	xds, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	p := NewProcess(dir, name, program, append([]string{"--listen", addr, "--grpc-listen", xds}, args...)...)
	return &Server{Process: p, URL: "http://" + addr, XDS: xds}, nil
}

// Ready waits until the server reports that it is ready.
func (s *Server) Ready(ctx context.Context) error {
	return s.untilReady(ctx, http.DefaultClient, s.URL)
}

// untilReady waits until the server at a URL reports that it is ready, as those of
// Kubernetes do.
func (p *Process) untilReady(ctx context.Context, client *http.Client, url string) error {
	return p.Until(ctx, p.Name+" to be ready", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
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
