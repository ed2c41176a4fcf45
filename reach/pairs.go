package reach

import (
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/compile"
	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/explain"
	"github.com/pilot-api/pilot-api/mesh"
)

// way is how a connection begins.
type way int

const (
	inPlainText way = iota
	byMutualTLS
	byOtherTLS
	numWays
)

var wayNames = [numWays]string{"plain text", "mutual TLS", "other TLS"}

// ways is a set of ways.
type ways [numWays]bool

// only returns the way of a set that has one.
func (s ways) only() (one way, is bool) {
	n := 0
	for w, has := range s {
		if has {
			n++
			one = way(w)
		}
	}
	return one, n == 1
}

// outcome is what becomes of the calls of a caller to a port.
type outcome struct {
	explain.Call
	tls, enforced string
}

// The parts of a call that are not known before it is made.
const (
	onInstance = "the instance that takes the call"
	onWay      = "how the connection begins"
	onProxy    = "whether a proxy of the workload runs"
	onItself   = "whether the workload itself takes mutual TLS"
	onCapture  = "where the machine sends a port for which the proxy has no listener"
	onUnknown  = "where the instances are"
)

// Who enforces an answer.
const (
	enforced        = "yes"
	enforcedByNone  = "no"
	enforcedPartly  = "partly"
	enforcedUnknown = "unknown"
)

// outcome returns what becomes of the calls of a caller.
func (a *asked) outcome(from *caller, to *callee) outcome {
	connections := compile.Connections{Plain: true}
	proxied := from.is != absent && !from.proxyless && from.name != explain.Outside
	if proxied {
		connections = a.questions.Connections(from.outlook, to.service, to.port)
	}
	switch {
	case connections.Closed:
		return outcome{Call: explain.Call{Answer: explain.CallDenied, Reason: "the proxy of the caller connects to nobody", Origins: []diag.Ref{to.ref()}}, enforced: enforced}
	case to.service.External:
		return outcome{Call: explain.Call{Answer: explain.CallAllowed, Reason: "the service is outside the mesh"}, tls: wayNames[inPlainText], enforced: enforcedByNone}
	case len(to.classes) == 0:
		return withoutInstances(to.service)
	}
	result := a.toAll(from, to, connections)
	if proxied && !connections.Seen {
		result.Reason = joined("the caller does not see the service, and can only call its address", result.Reason)
	}
	return result
}

// toAll combines what becomes of calls to all instances.
func (a *asked) toAll(from *caller, to *callee, by compile.Connections) outcome {
	if len(to.classes) == 1 {
		if one, is := waysOf(by, from, to.classes[0]).only(); is {
			call, who := a.callTo(to.classes[0], from, one, to)
			return outcome{Call: call, tls: wayNames[one], enforced: who}
		}
	}
	out := newOutcomes(len(to.classes))
	for _, class := range to.classes {
		for one, is := range waysOf(by, from, class) {
			if is {
				call, who := a.callTo(class, from, way(one), to)
				out.add(call, who, way(one))
			}
		}
		out.next()
	}
	if len(out.all) == 0 {
		return outcome{Call: explain.Call{Answer: explain.CallDepends, DependsOn: []string{onWay}}, enforced: enforcedUnknown}
	}
	return out.result()
}

func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

func withoutInstances(svc *mesh.Service) outcome {
	if svc.Resolution == mesh.Static {
		return outcome{Call: explain.Call{Answer: explain.CallDenied, Reason: "the service has no instances"}, enforced: enforcedByNone}
	}
	return outcome{Call: explain.Call{Answer: explain.CallDepends, DependsOn: []string{onUnknown}}, enforced: enforcedUnknown}
}

// waysOf returns how connections of a caller to the instances of a class may begin.
func waysOf(c compile.Connections, from *caller, to *class) (out ways) {
	if c.ByInstance && to.mutualTLS && from.secured {
		out[byMutualTLS] = true
	} else if c.ByInstance {
		out[inPlainText] = true
	}
	out[inPlainText] = out[inPlainText] || c.Plain || from.is == unsure
	out[byMutualTLS] = out[byMutualTLS] || c.MutualTLS
	out[byOtherTLS] = c.OtherTLS
	return out
}

type callKey struct {
	signature, caller int
	way               way
	foreign           bool // of another network
	address           string
}

// callTo returns what instances do with calls, and who enforces that.
func (a *asked) callTo(to *class, from *caller, by way, of *callee) (explain.Call, string) {
	switch {
	case to.is == absent, to.proxyless:
		if by == byMutualTLS {
			return explain.Call{Answer: explain.CallDepends, DependsOn: []string{onItself}, Reason: "no proxy of the workload is connected"}, enforcedByNone
		}
		return explain.Call{Answer: explain.CallAllowed, Reason: "no proxy of the workload is connected, so nobody enforces anything"}, enforcedByNone
	case to.listener == nil && of.port.Protocol == mesh.UDP:
		return explain.Call{Answer: explain.CallAllowed, Reason: "proxies do not take UDP, so nobody enforces anything"}, enforcedByNone
	case to.listener == nil:
		return explain.Call{Answer: explain.CallDepends, DependsOn: []string{onCapture}}, enforcedByNone
	}
	call := a.callBy(to, from, by)
	if to.is == present {
		return call, enforced
	}
	if call.Answer != explain.CallAllowed {
		call.Answer, call.DependsOn = explain.CallDepends, append(slices.Clone(call.DependsOn), onProxy)
	}
	return call, enforcedUnknown
}

// callBy asks package explain.
func (a *asked) callBy(to *class, from *caller, by way) explain.Call {
	key := callKey{to.signature, from.number, by, to.network != from.network, to.address}
	if a.shared[to.signature] > 1 {
		if known, ok := a.calls[key]; ok {
			return known
		}
	}
	who := explain.Caller{MutualTLS: by == byMutualTLS, OtherTLS: by == byOtherTLS}
	if by == byMutualTLS {
		who.Principal = from.principal
	}
	if !key.foreign {
		who.Addresses = from.addresses
	}
	call := a.evaluator.To(to.listener, who, to.address)
	if to.v1 && refuses(to) {
		call = explain.Call{Answer: explain.CallDenied, Reason: "an Envoy of the v1 API has no policies, so it closes the port"}
	}
	if a.shared[to.signature] > 1 {
		if len(a.calls) == mostKept {
			clear(a.calls)
		}
		a.calls[key] = call
	}
	return call
}

// mostKept is how many answers for listeners that share them are kept.
const mostKept = 200_000

func refuses(to *class) bool {
	found := false
	for _, c := range to.listener.Chains {
		found = found || c.HTTP != nil && c.HTTP.Access.Refuses() || c.TCP != nil && c.TCP.Access.Refuses()
	}
	l := to.listener
	return found || l.HTTP != nil && l.HTTP.Access.Refuses() || l.TCP != nil && l.TCP.Access.Refuses()
}

// outcomes combines the calls to all classes of a callee.
type outcomes struct {
	all      []explain.Call
	ways     []way
	enforced []string
	byClass  []explain.CallAnswer // "" if the ways of one class differ
	begun    int
}

func newOutcomes(classes int) *outcomes { return &outcomes{all: make([]explain.Call, 0, classes)} }

func (o *outcomes) add(call explain.Call, who string, by way) {
	o.all = append(o.all, call)
	if !slices.Contains(o.ways, by) {
		o.ways = append(o.ways, by)
	}
	if !slices.Contains(o.enforced, who) {
		o.enforced = append(o.enforced, who)
	}
}

// next ends a class.
func (o *outcomes) next() {
	answer := explain.CallAnswer("")
	if own := o.all[o.begun:]; len(own) > 0 {
		answer = own[0].Answer
		for _, call := range own {
			if call.Answer != answer {
				answer = ""
			}
		}
	}
	o.byClass = append(o.byClass, answer)
	o.begun = len(o.all)
}

func (o *outcomes) result() outcome {
	out := outcome{Call: o.all[0], enforced: o.who()}
	slices.Sort(o.ways)
	var ways []string
	for _, one := range o.ways {
		ways = append(ways, wayNames[one])
	}
	out.tls = strings.Join(ways, " or ")
	if len(o.all) == 1 {
		return out
	}
	differ := slices.ContainsFunc(o.all, func(c explain.Call) bool { return c.Answer != out.Answer })
	out.Call = merged(o.all)
	if !differ {
		return out
	}
	out.Answer = explain.CallDepends
	if slices.Contains(o.byClass, "") {
		out.DependsOn = append(out.DependsOn, onWay)
	}
	if slices.ContainsFunc(o.byClass, func(answer explain.CallAnswer) bool { return answer != o.byClass[0] }) {
		out.DependsOn = append(out.DependsOn, onInstance)
	}
	slices.Sort(out.DependsOn)
	return out
}

func (o *outcomes) who() string {
	switch {
	case len(o.enforced) == 1:
		return o.enforced[0]
	case slices.Contains(o.enforced, enforcedUnknown):
		return enforcedUnknown
	}
	return enforcedPartly
}

// merged returns the first answer, with what decides in all.
func merged(all []explain.Call) explain.Call {
	out := explain.Call{Answer: all[0].Answer}
	var reasons []string
	for _, c := range all {
		for _, on := range c.DependsOn {
			if !slices.Contains(out.DependsOn, on) {
				out.DependsOn = append(out.DependsOn, on)
			}
		}
		for _, by := range c.By {
			if !slices.ContainsFunc(out.By, func(known explain.Access) bool { return known.Policy == by.Policy }) {
				out.By = append(out.By, by)
			}
		}
		for _, ref := range c.Origins {
			if !slices.Contains(out.Origins, ref) {
				out.Origins = append(out.Origins, ref)
			}
		}
		if c.Reason != "" && !slices.Contains(reasons, c.Reason) {
			reasons = append(reasons, c.Reason)
		}
	}
	out.Reason = joined(reasons...)
	return out
}
