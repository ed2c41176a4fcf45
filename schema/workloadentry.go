package schema

import (
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
)

// unixPrefix is the prefix of the address of an instance behind a Unix socket.
const unixPrefix = "unix://"

// longestSocket is the maximum length of a socket's name in bytes with which an
// Envoy can listen or connect.
const longestSocket = 107

func init() {
	register(&Kind{
		Group: networkingGroup, Version: "v1", Served: networkingVersions,
		Kind: "WorkloadEntry", Plural: "workloadentries", Singular: "workloadentry",
		Dashed: "workload-entry", ShortNames: []string{"we"},
		Doc: "A WorkloadEntry is one instance of a service: an address, ports and labels. " +
			"ServiceEntry objects of the same namespace select it by its labels.",
		Columns: []Column{
			stringColumn("Address", "The address of the instance.", func(w *networking.WorkloadEntry) string { return w.Address }),
			stringColumn("Labels", "The labels that services select it by.", func(w *networking.WorkloadEntry) string { return labelsText(w.Labels) }),
			wideColumn("Locality", "Where the instance runs.", func(w *networking.WorkloadEntry) string { return w.Locality }),
		},
		selectable: []SelectableField{
			selectableText("spec.address", func(w *networking.WorkloadEntry) string { return w.Address }),
		},
		spec: inProto[networking.WorkloadEntry](),
		check: checkAs(func(w *networking.WorkloadEntry) diag.List {
			var p problems
			p.workload("spec", w)
			return p.list
		}),
	})
}

func (p *problems) workload(field string, w *networking.WorkloadEntry) {
	switch unix := strings.HasPrefix(w.Address, unixPrefix); {
	case w.Address == "" && w.Network == "":
		p.required(field+".address", "must be given, unless network is")
	case unix && !p.socket(field+".address", w.Address):
	case unix && len(w.Ports) > 0:
		p.forbidden(field+".ports", "cannot be given for a Unix socket, which has none")
	}
}

// socket checks an address that begins with unixPrefix.
func (p *problems) socket(field, address string) bool {
	path := strings.TrimPrefix(address, unixPrefix)
	switch {
	case !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "@"):
		p.invalidValue(field, address, "must name a socket by its absolute path (unix:///path) or as an abstract one (unix://@name)")
	case strings.HasSuffix(path, "/"):
		p.invalidValue(field, address, "must name a socket, not a folder")
	case len(path) < 2 || len(path) > longestSocket || strings.ContainsRune(path, 0):
		p.invalidValue(field, address, fmt.Sprintf("must name a socket by at most %d bytes, none of them NUL", longestSocket))
	default:
		return true
	}
	return false
}
