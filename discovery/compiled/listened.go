package compiled

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pilot-api/pilot-api/envoy"
	"github.com/pilot-api/pilot-api/ir"
)

// listenedTable is a route table that a listener names.
type listenedTable struct{ listener, table string }

// listened returns the route tables that the listeners of the view name.
func (v *View) listened() []listenedTable {
	return *v.tables.Get(func() *[]listenedTable {
		var all []listenedTable
		for _, l := range v.Config.Listeners {
			l.EachHTTP(func(h *ir.HTTPListener) {
				if h.Inline == nil {
					all = append(all, listenedTable{envoy.ListenerName(l), h.Table})
				}
			})
		}
		return &all
	})
}

// Listens reports whether a listener of the view names a route table. listener is the name of
// the listener, "" for any.
func (v *View) Listens(listener, table string) bool {
	return slices.ContainsFunc(v.listened(), func(l listenedTable) bool {
		return l.table == table && (listener == "" || listener == l.listener)
	})
}

// AllTables reports whether a condition holds for all route tables that listeners name.
func (v *View) AllTables(holds func(table string) bool) bool {
	return !slices.ContainsFunc(v.listened(), func(l listenedTable) bool { return !holds(l.table) })
}

// UnaskedTable returns a route table that a listener of the proxy at an address names and for
// which asks returns false, or "" if there is none. It passes over the listeners for which
// skips returns true, and those that are left out.
func (a *V3Answers) UnaskedTable(ip string, asks, skips func(name string) bool) (table string) {
	if a.View.AllTables(asks) {
		return "" // This is the usual case.
	}
	served := a.ListenersAt(ip)
	for _, l := range a.View.Config.ListenersAt(ip) {
		if name := envoy.ListenerName(l); served.Named(name) == nil || skips(name) {
			continue
		}
		l.EachHTTP(func(h *ir.HTTPListener) {
			if table == "" && h.Inline == nil && !asks(h.Table) {
				table = h.Table
			}
		})
	}
	return table
}

// SharesPort reports whether a gateway's listener of the view is at the port in the name of a
// route table.
func (v *View) SharesPort(listener, table string) bool {
	port, _, _ := strings.Cut(table, "|")
	return slices.ContainsFunc(v.Config.Listeners, func(l *ir.Listener) bool {
		return envoy.ListenerName(l) == listener && strconv.Itoa(l.Port) == port
	})
}

// IsGatewayTable reports whether a name is that of a route table for connections which proved
// something to a server of a gateway: a port, a bar, and what the server asks for.
func IsGatewayTable(name string) bool {
	port, asked, _ := strings.Cut(name, "|")
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil && asked != "" && !strings.Contains(name, ",")
}
