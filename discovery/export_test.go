package discovery

// Knows reports whether a proxy is remembered.
func (s *Publisher) Knows(node string) bool {
	g := s.current.Load()
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.places[node] != nil
}
