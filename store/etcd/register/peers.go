package register

import (
	"log/slog"
	"net"
	"net/url"
	"sync/atomic"
	"time"
)

// peerMembers are the other members as one member last saw them. A problem is logged
// once, not at each look.
type peerMembers struct {
	logged         map[string]string // logged problems, by name
	there, missing atomic.Int64
}

// look logs members that have gone missing and addresses that cannot be right.
func (p *peerMembers) look(log *slog.Logger, self Replica, all []Replica) {
	wrongs := map[string]string{}
	var there, missing int64
	for _, other := range all {
		if other.Name == self.Name {
			continue
		}
		if other.Missing.IsZero() {
			there++
		} else {
			missing++
		}
		wrong := wrongWith(self, other)
		if wrong == "" {
			continue
		}
		wrongs[other.Name] = wrong
		if p.logged[other.Name] != wrong {
			log.Warn(wrong, "replica", other.Name, "url", other.URL, "self", self.Name, "selfURL", self.URL)
		}
	}
	p.logged = wrongs
	p.there.Store(there)
	p.missing.Store(missing)
}

// wrongWith returns what is wrong with another member as seen from self, "" for
// nothing.
func wrongWith(self, other Replica) string {
	const shared = ": the replicas do not reach each other, and each knows its own proxies only; give each its own (--advertise)"
	elsewhere := other.Host != "" && other.Host != self.Host
	switch {
	case !other.Missing.IsZero():
		return "a replica is missing since " + other.Missing.Format(time.TimeOnly) + ", and did not leave"
	case self.URL == other.URL:
		return "two replicas advertise one address" + shared
	case elsewhere && local(self.URL):
		return "this replica advertises an address of its own machine to one on another" + shared
	case elsewhere && local(other.URL):
		return "a replica on another machine advertises an address that is not reached from here" + shared
	}
	return ""
}

// local reports whether an address is reachable only from its own machine.
func local(at string) bool {
	u, err := url.Parse(at)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// There returns the number of other members in the register.
func (r *Register) There() int64 { return r.others.there.Load() }

// Missing returns the number of members that did not leave and no longer send
// heartbeats.
func (r *Register) Missing() int64 { return r.others.missing.Load() }
