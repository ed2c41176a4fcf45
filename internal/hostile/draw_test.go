package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pilot-api/pilot-api/diag"
	"github.com/pilot-api/pilot-api/mesh"
	"github.com/pilot-api/pilot-api/schema"
)

// spec is an object's spec as a person writes it.
type spec map[string]any

// object is one that somebody writes.
type object struct {
	kind, namespace, name string
	spec                  spec
	probe                 *probe // nil where only its Problems tell whether it is withheld
}

func (o object) ref() diag.Ref {
	return diag.Ref{Kind: o.kind, Namespace: o.namespace, Name: o.name}
}

func (o object) String() string {
	text, _ := json.Marshal(o.spec)
	const most = 120
	return fmt.Sprintf("%s %s/%s, %d bytes: %.*s", o.kind, o.namespace, o.name, len(text), most, text)
}

// Bounds of what may be written: the bytes of a spec in JSON, and its values.
const (
	maxText   = 900_000
	maxValues = schema.MaxValues - 100
)

// draw makes objects from a seed.
type draw struct {
	*rand.Rand
	budget mesh.Budget
	// apart: the objects share no host, namespace or port with the honest ones, so what
	// honest proxies are told of these may not change at all.
	apart  bool
	named  int // objects and hosts so far
	out    []object
	shapes []string // of the objects
}

func newDraw(seed uint64, combination int, budget mesh.Budget) *draw {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, uint64(combination))), budget: budget}
	d.apart = !d.oneIn(3)
	return d
}

// shape is a way in which objects multiply.
type shape struct {
	name string
	draw func(*draw) // adds some objects
}

// shapes are ways in which objects multiply.
var shapes = []shape{
	{"entry", (*draw).entry}, {"manyEntries", (*draw).manyEntries}, {"selections", (*draw).selections}, {"manyPorts", (*draw).manyPorts}, {"egress", (*draw).egress}, {"inbound", (*draw).inbound},
	{"routes", (*draw).routes}, {"delegates", (*draw).delegates}, {"wildcardRoutes", (*draw).wildcardRoutes}, {"connections", (*draw).connections}, {"longTexts", (*draw).longTexts},
	{"subsets", (*draw).subsets}, {"wildcardRules", (*draw).wildcardRules}, {"gateways", (*draw).gateways}, {"passthrough", (*draw).passthrough}, {"sidecars", (*draw).sidecars},
	{"routeRules", (*draw).routeRules}, {"policies", (*draw).policies}, {"ingressRules", (*draw).ingressRules},
}

// combination is a few shapes together.
func (d *draw) combination() []object {
	for range d.upTo(4) {
		before := len(d.out)
		way := pick(d, shapes...)
		if *only != "" {
			way = shapes[slices.IndexFunc(shapes, func(s shape) bool { return s.name == *only })]
		}
		if way.draw(d); !slices.ContainsFunc(d.out[before:], tooLong) {
			d.shapes = append(d.shapes, way.name)
		} else {
			d.out = d.out[:before] // Nobody may write it.
		}
	}
	return d.out
}

// tooLong reports whether nobody may write an object, whatever is in it.
func tooLong(o object) bool {
	text, err := json.Marshal(o.spec)
	return err != nil || len(text) > maxText || values(text) > maxValues
}

// values is at least how many there are in a JSON text: one more than signs before one.
func values(text []byte) int {
	return 1 + bytes.Count(text, []byte(",")) + bytes.Count(text, []byte(":")) + bytes.Count(text, []byte("[")) + bytes.Count(text, []byte("{"))
}

func (d *draw) oneIn(n int) bool { return d.IntN(n) == 0 }

// upTo is from 1 to most: as often from 1 to 10 as from 10 to 100, and often the most.
func (d *draw) upTo(most int) int {
	if most <= 1 || d.oneIn(8) {
		return max(1, most)
	}
	return int(math.Exp(d.Float64() * math.Log(float64(most)+0.999)))
}

// factors are lengths of lists that come to about as many parts as a budget has, up to
// the most that each list may have.
func (d *draw) factors(most ...int) []int {
	target := float64(pick(d, d.budget.Object, d.budget.Mesh, 100_000)) * math.Exp2(6*d.Float64()-4)
	out := make([]int, len(most))
	for n, i := range d.Perm(len(most)) {
		left := max(1, int(min(target, 1<<30)))
		if n < len(most)-1 {
			out[i] = d.upTo(min(most[i], left))
		} else {
			out[i] = min(most[i], left)
		}
		target /= float64(out[i])
	}
	return out
}

func pick[T any](d *draw, from ...T) T { return from[d.IntN(len(from))] }

// items are n of a list.
func items[T any](n int, of func(i int) T) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = of(i)
	}
	return out
}

// word is a name that is used once.
func (d *draw) word() string {
	d.named++
	return fmt.Sprintf("x%d", d.named)
}

// namespaces are those of hostile objects. A proxy lives in the first one.
var namespaces = []string{"hostile-a", "hostile-b"}

func (d *draw) namespace() string {
	if !d.apart && d.oneIn(4) {
		return pick(d, "quiet", "istio-system")
	}
	return pick(d, namespaces...)
}

// add puts an object into the combination.
func (d *draw) add(kind, namespace string, s spec) *object {
	if _, may := exported[kind]; may && d.oneIn(3) {
		s["exportTo"] = pick(d, []string{"."}, []string{"*"}, append([]string{"."}, items(d.upTo(200), func(i int) string { return fmt.Sprintf("n%d", i) })...))
	}
	d.out = append(d.out, object{kind: kind, namespace: namespace, name: d.word(), spec: s})
	return &d.out[len(d.out)-1]
}

var exported = map[string]bool{"ServiceEntry": true, "VirtualService": true, "DestinationRule": true}

// hosts are n names, which share an ending that is theirs. Beside the honest mesh the
// first one may be among these.
func (d *draw) hosts(n int, honest ...string) []string {
	ending := d.word() + pick(d, ".example", ".hostile.svc.cluster.local", ".hostile-a.svc.cluster.local")
	leading := pick(d, "", "", "", "*.")
	if d.oneIn(6) {
		ending = strings.Repeat("long.", 40) + ending
	}
	overlaps := !d.apart && len(honest) > 0 && d.oneIn(2)
	if overlaps {
		ending = d.word() + ".test" // One host of an object must not cover another one.
	}
	out := items(n, func(i int) string { return fmt.Sprintf("%sh%d.%s", leading, i, ending) })
	if overlaps {
		out[0] = pick(d, honest...)
	}
	return out
}

// Hosts that cover honest ones, and hosts of honest services.
var (
	covering   = []string{"*.quiet.svc.cluster.local", "*.svc.cluster.local", "*.quiet.example", "*.local", "*.example"}
	overlapped = append([]string{quietHost, "shop.quiet.example", "nobody.quiet.example"}, covering...)
)

// firstPort is the number of the first of some ports of hostile services.
func (d *draw) firstPort(protocol string) int {
	if !d.apart || protocol == "HTTP" {
		return pick(d, 80, 1024, 20_000)
	}
	return 20_000
}

func (d *draw) protocol() string {
	return pick(d, "HTTP", "HTTP", "HTTP", "HTTP2", "GRPC", "TCP", "TCP", "TLS", "HTTPS", "MONGO", "UDP")
}

func portList(n, first int, protocol string) []spec {
	return items(n, func(i int) spec {
		return spec{"number": first + i, "name": fmt.Sprintf("p-%d", i), "protocol": protocol}
	})
}

// regex is an expression that costs something to compile.
func (d *draw) regex() string {
	return pick(d, ".*", "a{1,100}", "(a|b|c|d){1,30}", strings.Repeat("(", 50)+"a"+strings.Repeat(")", 50), strings.Repeat("[a-z]*x", d.upTo(60)), "(?i)"+strings.Repeat("abc|", d.upTo(200))+"z")
}

func address(a, i int) string { return fmt.Sprintf("10.%d.%d.%d", a, i/250%250, i%250+1) }
