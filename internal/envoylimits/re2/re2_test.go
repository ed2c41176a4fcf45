package re2_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/pilot-api/pilot-api/internal/envoylimits/re2"
	"github.com/pilot-api/pilot-api/internal/outside"
)

// TestTaken: what Check takes, a real Envoy takes.
func TestTaken(t *testing.T) {
	taken := []string{
		`é`, `日本`, `[a-zé]`, `(?i)é`, `\pL`, `\p{Lu}`, `\P{^Greek}`, `\p{Any}`, `[\pN\p{Han}]`, `\x{FF}`, `\x41`, `\377`,
		`\Q\p{Letter}\E`, `\Qa`, `\\p{Letter}`, `\\x{10FFFF}`, `(?P<n>a)`, `(?<n>a)`, `[[:word:]]`, `a{1000}`, `[a-z0-9-]{1,1000}`,
		`(?s).*`, `\a\f\v\z`, "a\x00b", strings.Repeat("(", 300) + strings.Repeat(")", 300), strings.Repeat("x", 4900), ``,
	}
	// Go itself refuses some names that it has.
	for _, names := range []map[string]*unicode.RangeTable{unicode.Scripts, unicode.Categories} {
		for name := range names {
			if expr := `\p{` + name + `}`; re2.Check(expr) == nil {
				taken = append(taken, expr)
			}
		}
	}
	for _, expr := range taken {
		if err := re2.Check(expr); err != nil {
			t.Errorf("%s is refused: %v", expr, err)
		}
	}
	if refusal := envoy(t, taken); refusal != "" {
		t.Errorf("Envoy refuses what is taken here: %s", refusal)
	}
}

// TestRefused: each is refused here, and by a real Envoy.
func TestRefused(t *testing.T) {
	for _, expr := range []string{
		`\p{Letter}`, `\p{greek}`, `\p{ASCII}`, `\p{Cn}`, `\p{LC}`, `[a\p{Letter}]`, `\PX`, `\x{10FFFF}`, `\x{100}`, `[^\x{0}-\x{10FFFF}]`, `\400`,
		`\Qa\E\p{Letter}`, `\8`, `a**`, `a{1001}`, `((a{100}){100}){100}`, `[[:foo:]]`, `(`, `(?=a)`, `\`,
		strings.Repeat(`[a-zé0-9-]{1,1000}`, 12), strings.Repeat(`[a-z0-9-]{1,1000}`, 3), strings.Repeat("x", 10_001),
	} {
		if re2.Check(expr) == nil {
			t.Errorf("%.40s is taken", expr)
		}
		if envoy(t, []string{expr}) == "" {
			t.Errorf("Envoy takes %.40s", expr)
		}
	}
}

// TestAnyTaken: of expressions drawn at random, Envoy refuses none that Check
// takes.
func TestAnyTaken(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	var taken []string
	refused := 0
	for len(taken) < 1000 {
		if expr := expression(draw, 6); re2.Check(expr) == nil {
			taken = append(taken, expr)
		} else {
			refused++
		}
	}
	if refused == 0 {
		t.Error("nothing drawn is refused: the bounds are not tried")
	}
	if refusal := envoy(t, taken); refusal != "" {
		t.Errorf("Envoy refuses what is taken here: %s", refusal)
	}
}

func expression(draw *rand.Rand, depth int) string {
	atoms := []string{
		"a", "é", "[a-z]", "[^a-z]", ".", `\d`, `\w`, `\pL`, `\PL`, `\p{Greek}`, `\p{greek}`, "(?i:k)", "(?i:é)", "(?i:abc)", "^", "$", `\b`,
		"(?s:.)", "[à-é]", "(?i:[s-z])", "日", "[日]", `\x{ff}`, `\x{100}`, "[[:alpha:]]", `[^\n]`, "", `\Qa.b\E`,
	}
	if depth == 0 || draw.IntN(4) == 0 {
		return atoms[draw.IntN(len(atoms))]
	}
	sub := func() string { return expression(draw, depth-1) }
	switch draw.IntN(5) {
	case 0:
		return "(?:" + sub() + "|" + sub() + "|" + sub() + ")"
	case 1:
		return "(" + sub() + ")" + []string{"*", "+", "?", "*?"}[draw.IntN(4)]
	case 2:
		least := draw.IntN(20)
		return fmt.Sprintf("(?:%s){%d,%d}", sub(), least, least+draw.IntN(20))
	case 3:
		return fmt.Sprintf("(?:%s){%d,}", sub(), draw.IntN(30))
	default:
		return sub() + sub()
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, expr := range []string{`^(.*?;)?(user=jason)(;.*)?$`, strings.Repeat(`(a{10}){10}`, 900)} {
		b.Run(fmt.Sprintf("%.12s", expr), func(b *testing.B) {
			for b.Loop() {
				_ = re2.Check(expr)
			}
		})
	}
}

// envoy is why an Envoy with our bound refuses a table of routes with these
// expressions; "" when it takes it.
func envoy(t *testing.T, exprs []string) string {
	t.Helper()
	type object = map[string]any
	type list = []any
	var routes list
	for _, expr := range exprs {
		// Envoy's constraints refuse the empty one.
		routes = append(routes, object{"match": object{"safe_regex": object{"regex": "(?:)" + expr}}, "route": object{"cluster": "c"}})
	}
	manager := object{
		"@type":        "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
		"stat_prefix":  "http",
		"route_config": object{"validate_clusters": false, "virtual_hosts": list{object{"name": "all", "domains": list{"*"}, "routes": routes}}},
		"http_filters": list{object{"name": "router", "typed_config": object{"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}},
	}
	text, err := json.Marshal(object{
		"layered_runtime": object{"layers": list{object{"name": "bounds", "static_layer": object{"re2.max_program_size.error_level": re2.EnvoyProgram}}}},
		"static_resources": object{"listeners": list{object{
			"name":          "http",
			"address":       object{"socket_address": object{"address": "127.0.0.1", "port_value": 0}},
			"filter_chains": list{object{"filters": list{object{"name": "http", "typed_config": manager}}}},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outside.Validate(t.Context(), outside.Tool(t, "envoy"), "", text); err != nil {
		return err.Error()
	}
	return ""
}

// costly are parts of expressions that are much for a parser, by their length: many
// ranges, characters of which each has other cases, nodes and repetitions.
var costly = []string{
	`\pL`, `\PL`, `\p{L}`, `[\pL]`, `\p{Greek}`, "B-\U0001e942", "[B-\U0001e942]", "\\x{42}-\U0001e942", "\\102-\U0001e942", "[\\Q-\U0001e942]",
	`\w`, `\W`, `[^a]`, `[[:^word:]]`, `[A-\xff]`, `á-ÿ`, `aé`, `a|b`, `ab|`, `.|`, `(`, `(a|`, `(?:a?)`, `(a{10}){10}`, `a{1000}`, `a*|`, `\pL|a*|`,
	`\Q\pL\E\pL`, `\x{\pL}`, `\p{`, `\p`, `(?i)`, `(?-i)`, `(?P<n>`, `\8`, `]`, `[`,
}

// TestCostIsBounded gives Check what costs most by its length, and reads as Go does
// whatever Check takes, as those must who explain an expression.
func TestCostIsBounded(t *testing.T) {
	const length, perByte, atLeast = 1024, 600, 200_000
	for _, part := range costly {
		many := strings.Repeat(part, length/len(part))
		for _, expr := range []string{many, "[" + many + "]", "(?i)" + many, "(?i)[" + many + "]", "(?i)[^" + many + "]"} {
			bound := uint64(perByte*len(expr) + atLeast)
			var err error
			if got := allocated(func() { err = re2.Check(expr) }); got > bound {
				t.Errorf("%.30s: Check allocates %d bytes, want at most %d", expr, got, bound)
			}
			if err != nil {
				continue
			}
			if got := allocated(func() { _, _ = syntax.Parse(expr, syntax.Perl) }); got > bound {
				t.Errorf("%.30s is taken, and Go's parser allocates %d bytes, want at most %d", expr, got, bound)
			}
		}
	}
}

// allocated is how many bytes a call allocates.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestBounds: classes and ranges are counted before an expression is parsed, and the
// error says how many there may be.
func TestBounds(t *testing.T) {
	wide := "[B-\U0001e942]"
	for _, tc := range []struct{ taken, refused, says string }{
		{strings.Repeat(`\pL`, 8), strings.Repeat(`\pL`, 9), "more than 8 classes of Unicode characters such as \\pL"},
		{`[^` + strings.Repeat(`\p{Greek}`, 8) + `]`, `[` + strings.Repeat(`\p{Greek}`, 9) + `]`, "such as \\p{Greek}"},
		{`\Q` + strings.Repeat(`\pL`, 20), `(` + strings.Repeat(`\pL`, 20), "more than 8 classes"},
		{wide, "(?i)" + wide, "more than 65536 characters"},
		{"(?i)[一-龥]", "(?i)" + strings.Repeat("[一-龥]", 4), "more than 65536 characters"},
		{"(?i)" + strings.Repeat("[a-zà-é]", 20), "(?si:" + strings.Repeat("[!-\uffff]", 2) + ")", "more than 65536 characters"},
	} {
		if err := re2.Check(tc.taken); err != nil {
			t.Errorf("%s is refused: %v", tc.taken, err)
		}
		if err := re2.Check(tc.refused); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: got %v, want an error with %q", tc.refused, err, tc.says)
		}
	}
}

// TestErrorsAreReadable: an error repeats a part of the expression as it was
// written.
func TestErrorsAreReadable(t *testing.T) {
	for expr, want := range map[string]string{
		`é(`:     "missing closing ): `é(`",
		`[a`:     "missing closing ]: `[a`",
		`é\é`:    "invalid escape sequence",
		"a\xff":  "invalid UTF-8",
		`(?P<é>`: "invalid named capture: `(?P<é>`",
	} {
		if err := re2.Check(expr); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", expr, err, want)
		}
	}
}

// TestMatchesEmpty: the answer is that of the expression compiled.
func TestMatchesEmpty(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	answers := map[bool]int{}
	for range 2000 {
		expr := expression(draw, 4)
		got, err := re2.MatchesEmpty(expr)
		if err != nil {
			continue
		}
		if want := regexp.MustCompile("^(?:" + expr + ")$").MatchString(""); got != want {
			t.Errorf("%s: got %v, want %v", expr, got, want)
		}
		answers[got]++
	}
	if answers[true] < 100 || answers[false] < 100 {
		t.Errorf("too few of one answer: %v", answers)
	}
}
