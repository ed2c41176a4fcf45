package mesh

import (
	"cmp"
	"fmt"
	"strings"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/schema"
)

// ports returns the ports of an entry. Numbers and names must be unique, as
// services are called by port number and identified by port name; of two ports with
// the same one, the first is used.
func (r *registry) ports(o *schema.Object, entry *networking.ServiceEntry) []*Port {
	var ports []*Port
	names, numbers := map[string]bool{}, map[uint32]bool{}
	for i, p := range entry.GetPorts() {
		at := fmt.Sprintf("spec.ports[%d]", i)
		protocol, known := ParseProtocol(p.GetProtocol())
		switch {
		case !known:
			r.leftOutPort(o, diag.FieldNotSupported, at+".protocol", fmt.Sprintf("%q", p.GetProtocol()), "use HTTP, HTTP2, GRPC, HTTPS, TCP, TLS, Mongo, Redis or UDP")
		case !validPort(p.GetNumber()):
			r.leftOutPort(o, diag.FieldInvalid, at+".number", fmt.Sprint(p.GetNumber()), "use 1 to 65535")
		case !validPort(cmp.Or(p.GetTargetPort(), p.GetNumber())):
			r.leftOutPort(o, diag.FieldInvalid, at+".targetPort", fmt.Sprint(p.GetTargetPort()), "use 1 to 65535")
		case names[p.GetName()]:
			r.leftOutPort(o, diag.FieldDuplicate, at+".name", fmt.Sprintf("%q", p.GetName()), "an earlier port has the name")
		case numbers[p.GetNumber()]:
			r.leftOutPort(o, diag.FieldDuplicate, at+".number", fmt.Sprint(p.GetNumber()), "an earlier port has the number")
		default:
			names[p.GetName()], numbers[p.GetNumber()] = true, true
			ports = append(ports, &Port{Name: p.GetName(), Number: int(p.GetNumber()), Protocol: protocol, Unstated: p.GetProtocol() == "", ServerFirst: strings.EqualFold(p.GetProtocol(), "MYSQL"), TargetPort: int(cmp.Or(p.GetTargetPort(), p.GetNumber()))})
		}
	}
	return ports
}

func validPort(number uint32) bool { return number >= 1 && number <= 65535 }

func (r *registry) leftOutPort(o *schema.Object, reason diag.Reason, field, value, message string) {
	r.report(diag.Problem{
		Severity: diag.Warning, Reason: reason, Code: diag.PartLeftOut, Object: o.Key().Ref(), Field: field, Value: value,
		Message: "the port is left out: " + message,
	})
}
