package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"
)

// Shop is the backends of a registry file: one HTTP server for each endpoint of each
// ServiceEntry in it, at exactly its address and port.
type Shop struct {
	servers []*http.Server

	mu     sync.Mutex
	hits   map[string]int      // By backend, as in Backend.
	failed map[string]struct{} // Requests (by Attempt header) that failed once.
}

// Backend returns the name of an instance of a service in answers and counters.
func Backend(service, version string) string { return service + " " + version }

// Headers by which a request asks a backend for special behaviour.
const (
	// FailFirst contains an id. The first request with that id is answered with 503.
	FailFirst = "X-Fail-First"
	// Hang asks for no answer.
	Hang = "X-Hang"
)

// Echo is the answer of a backend: its name and the request that reached it.
type Echo struct {
	Service string `json:"service"`
	Version string `json:"version"`
	Path    string `json:"path"`
}

// OpenShop serves the backends of the registry file until Close.
func OpenShop(file string) (*Shop, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s := &Shop{hits: map[string]int{}, failed: map[string]struct{}{}}
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		if err := s.open(doc); err != nil {
			s.Close()
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return s, nil
}

// open serves the endpoints of one ServiceEntry.
func (s *Shop) open(doc string) error {
	var entry struct {
		Metadata struct{ Name string }
		Spec     struct {
			Ports     []struct{ Number int }
			Endpoints []struct {
				Address string
				Labels  map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(doc), &entry); err != nil {
		return err
	}
	for _, e := range entry.Spec.Endpoints {
		for _, p := range entry.Spec.Ports {
			l, err := net.Listen("tcp", net.JoinHostPort(e.Address, strconv.Itoa(p.Number)))
			if err != nil {
				return err
			}
			server := &http.Server{Handler: s.backend(entry.Metadata.Name, e.Labels["version"])}
			s.servers = append(s.servers, server)
			go server.Serve(l) // Ends with Close.
		}
	}
	return nil
}

func (s *Shop) backend(service, version string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail := s.count(Backend(service, version), r.Header.Get(FailFirst))
		switch {
		case r.Header.Get(Hang) != "":
			<-r.Context().Done()
		case fail:
			http.Error(w, "the first attempt fails", http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(Echo{service, version, r.URL.Path})
		}
	})
}

// count counts a hit and reports whether it is the one that has to fail.
func (s *Shop) count(backend, failFirst string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hits[backend]++
	if failFirst == "" {
		return false
	}
	_, before := s.failed[failFirst]
	s.failed[failFirst] = struct{}{}
	return !before
}

// Hits returns the number of requests to each backend.
func (s *Shop) Hits() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.hits)
}

// Close ends all backends at once.
func (s *Shop) Close() {
	for _, server := range s.servers {
		server.Close()
	}
}
