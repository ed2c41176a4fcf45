package programmed

import (
	"slices"
	"testing"
	"time"

	"github.com/pilot-api/pilot-api/internal/consistency"
	"github.com/pilot-api/pilot-api/schema"
)

var (
	rule  = schema.Key{Kind: "VirtualService", Namespace: "a", Name: "web"}
	other = schema.Key{Kind: "VirtualService", Namespace: "a", Name: "api"}
)

// at is a time of these histories.
func at(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func wrote(key schema.Key, number int, when float64, revision int64) Write {
	return Write{Key: key, Number: number, Call: at(when), Return: at(when + 0.1), Outcome: consistency.OK, Revision: revision}
}

func said(key schema.Key, number int, when float64, running int) Status {
	return Status{Server: "s", Key: key, Number: number, True: true, Fresh: true, Running: running, Call: at(when), Return: at(when + 0.1)}
}

func shown(proxy string, revision int64, when float64) Shown {
	return Shown{Server: "s", Proxy: proxy, Revision: revision, Call: at(when), Return: at(when + 0.1)}
}

// story is a history in which every answer is true. Two proxies take two writes of a rule and
// one of another; later writes are for each case.
func story() *History {
	proxy := func(name string) *Proxy {
		return &Proxy{
			Name: name, Namespace: "a",
			Streams: []Stream{{Server: 0, Begin: at(1), From: at(1.1), End: Open}},
			Had: map[schema.Key][]Had{
				rule:  {{At: at(2), Number: 1}, {At: at(12), Number: 2}},
				other: {{At: at(2), Number: 1}},
			},
		}
	}
	return &History{
		Writes:   []Write{wrote(rule, 1, 0.5, 10), wrote(other, 1, 0.6, 11), wrote(rule, 2, 11, 20)},
		Proxies:  []*Proxy{proxy("p"), proxy("q")},
		Statuses: []Status{said(rule, 1, 3, 2), said(other, 1, 3, 2), said(rule, 2, 13, 2)},
		Shown:    []Shown{shown("p", 11, 3), shown("q", 25, 13)},
	}
}

// ends ends the first stream of a proxy.
func ends(p *Proxy, how StreamEnd, when float64) { p.Streams[0].End, p.Streams[0].To = how, at(when) }

// TestCheck checks that true histories have no violation, and that each of those that are
// damaged in one way has the one violation.
func TestCheck(t *testing.T) {
	third := func(h *History, when float64) {
		h.Writes = append(h.Writes, wrote(rule, 3, when, 30))
		h.Proxies[0].Had[rule] = append(h.Proxies[0].Had[rule], Had{At: at(when + 0.2), Number: 3})
	}
	for _, tc := range []struct {
		name, rule string // the rule is "" for a true history
		change     func(h *History)
	}{
		{"as it is", "", func(*History) {}},
		{"nobody has it", "false programmed", func(h *History) { h.Statuses[2] = said(rule, 2, 11.5, 0) }},
		{"one does not have it", "false programmed", func(h *History) { third(h, 20); h.Statuses = append(h.Statuses, said(rule, 3, 21, 1)) }},
		{"it has it during the request", "", func(h *History) { h.Statuses[2].Call, h.Statuses[2].Return = at(11.95), at(12.05) }},
		{"a stored status is older", "", func(h *History) {
			h.Statuses[2].Fresh = false
			h.Proxies[1].Streams[0] = Stream{Begin: at(12.5), From: at(12.5), End: Open}
			h.Proxies[1].Had[rule] = []Had{{At: at(14), Number: 2}}
			h.Proxies[1].Had[other] = nil
			h.Statuses = h.Statuses[2:]
			h.Statuses[0].Running = 1
			h.Shown = nil
		}},
		{"a stored status is not older than the write", "false programmed", func(h *History) {
			third(h, 20)
			s := said(rule, 3, 21, 1)
			s.Fresh = false
			h.Statuses = append(h.Statuses, s)
		}},
		{"too many", "more running than have it", func(h *History) { h.Statuses[0].Running = 3 }},
		{"a write that was refused", "status of nothing", func(h *History) { h.Writes[2].Outcome = consistency.Refused }},
		{"closed and so not counted", "", func(h *History) {
			ends(h.Proxies[1], Closed, 15)
			third(h, 20)
			h.Statuses = append(h.Statuses, said(rule, 3, 21, 1))
		}},
		{"silent and counted", "false programmed", func(h *History) {
			ends(h.Proxies[1], Silent, 15)
			third(h, 20)
			h.Statuses = append(h.Statuses, said(rule, 3, 48, 1))
		}},
		{"silent for too long", "", func(h *History) {
			ends(h.Proxies[1], Silent, 15)
			third(h, 20)
			h.Statuses = append(h.Statuses, said(rule, 3, 51, 1))
		}},
		{"lost with its server and counted", "false programmed", func(h *History) {
			h.Deaths = []Death{{Server: 0, At: at(15)}}
			ends(h.Proxies[1], Broken, 15.1)
			third(h, 20)
			h.Statuses = append(h.Statuses, said(rule, 3, 23, 1))
		}},
		{"lost with its server for too long", "", func(h *History) {
			h.Deaths = []Death{{Server: 0, At: at(15)}}
			ends(h.Proxies[1], Broken, 15.1)
			third(h, 20)
			h.Statuses = append(h.Statuses, said(rule, 3, 25, 1))
		}},
		{"the server is back", "false programmed", func(h *History) {
			h.Deaths = []Death{{Server: 0, At: at(15), Back: at(17)}}
			ends(h.Proxies[1], Broken, 15.1)
			third(h, 20)
			h.Statuses = append(h.Statuses, said(rule, 3, 40, 1))
		}},
		{"the server died soon after it had come", "", func(h *History) {
			h.Deaths = []Death{{Server: 0, At: at(5)}}
			ends(h.Proxies[1], Broken, 5.1)
			h.Proxies[1].Had[rule] = h.Proxies[1].Had[rule][:1]
			h.Statuses[2].Running = 1
			h.Shown = h.Shown[:1]
		}},
		{"it has closed a later stream", "", func(h *History) {
			ends(h.Proxies[1], Silent, 15)
			h.Proxies[1].Streams = append(h.Proxies[1].Streams, Stream{Begin: at(16), From: at(16.1), To: at(17), End: Closed})
			third(h, 20)
			h.Statuses = append(h.Statuses, said(rule, 3, 22, 1))
		}},
		{"a deletion hides it", "", func(h *History) {
			w := wrote(rule, 3, 20, 0)
			w.Deleted = true
			h.Writes = append(h.Writes, w)
			h.Proxies[0].Had[rule] = append(h.Proxies[0].Had[rule], Had{At: at(21)})
			h.Statuses = append(h.Statuses, said(rule, 2, 22, 2))
		}},
		{"still there for another namespace", "false programmed", func(h *History) {
			h.Proxies[1].Namespace = "b"
			w := wrote(rule, 3, 20, 30)
			w.Private = true
			h.Writes = append(h.Writes, w)
			h.Proxies[0].Had[rule] = append(h.Proxies[0].Had[rule], Had{At: at(21), Number: 3})
			h.Statuses = append(h.Statuses, said(rule, 3, 22, 1))
		}},
		{"revision of a proxy", "false revision of a proxy", func(h *History) { h.Shown[0].Revision = 20 }},
		{"revision of a proxy that refuses the service", "", func(h *History) {
			h.Shown[0].Revision = 20
			h.Proxies[0].Refused = []Refusal{{Key: rule, Number: 2, At: at(2.5)}}
		}},
		{"goes back", "accepted part disturbed", func(h *History) {
			h.Proxies[0].Had[rule] = append(h.Proxies[0].Had[rule], Had{At: at(14), Number: 1})
		}},
		{"is gone", "accepted part disturbed", func(h *History) {
			h.Proxies[0].Had[rule] = append(h.Proxies[0].Had[rule], Had{At: at(14)})
		}},
		{"begins anew", "", func(h *History) {
			ends(h.Proxies[0], Closed, 13.5)
			h.Proxies[0].Had[rule] = append(h.Proxies[0].Had[rule], Had{At: at(14), Anew: true})
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := story()
			tc.change(h)
			found := h.Check()
			switch {
			case tc.rule == "" && len(found) > 0:
				t.Errorf("found %v in a true history", found)
			case tc.rule != "" && !slices.ContainsFunc(found, func(v consistency.Violation) bool { return v.Rule == tc.rule }):
				t.Errorf("found %v, not %q", found, tc.rule)
			}
		})
	}
}
