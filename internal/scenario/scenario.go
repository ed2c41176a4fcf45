// Package scenario reads archives of config objects, and of requests that show their
// effect in a real Envoy.
//
// An archive has objects.yaml, steps, and optionally proxy (a node identity) and
// mesh.yaml. A line of steps is a request and, after =>, the expected result. The comment
// before it names the fields whose effect it shows:
//
//	# VirtualService http[].match[].uri.prefix http[].rewrite.uri
//	GET http://shop/old/7 x-user:ann => 200 from=v2 path=/new/7
//
// A request consists of, in this order: a number such as 20x to repeat it, the method,
// the URL, and headers. -to is the address that the connection is going to, and -from
// the address that it comes from. {i} is the number of the request. Single quotes
// enclose text with blanks. The expected result is the status, 0 for a connection that
// ends without an answer, and any of:
//
//	from=v1,v2       who answers, each of them at least once; one is any of them,
//	                 but always the same, several are two or more
//	mostly=v1        who gives more than half of the answers
//	peers=1          the number of connections on which backends get the requests
//	host= path= proto=   host, path and HTTP version that the backend gets
//	>name=value      a header as the backend gets it; no value means no such header
//	<name=value      a header or trailer of the answer
//	body=text        the complete body of the answer
//	tries=2          the number of requests that backends get
//	copies=v2        who gets a copy of each request
//	slow=100ms       the minimum time of an answer
//	stat=name        a counter or gauge of the proxy that is above 0
//
// A value that begins with ~ is a regular expression.
package scenario

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Scenario is an archive.
type Scenario struct {
	Name                 string
	Proxy, Mesh, Objects string
	Steps                []Step
}

// Step is a request and its expected result.
type Step struct {
	Line        string
	Observes    []Field
	Times       int
	Method, URL string
	To, From    string
	Headers     []Pair
	Status      int
	Expect      []Pair
}

// Field is a field of a kind, as in schema/effects.json.
type Field struct{ Kind, Path string }

// Pair is a header or an expectation.
type Pair struct{ Name, Value string }

// ReadAll reads the archives of a folder.
func ReadAll(dir string) ([]Scenario, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no archives in %s", dir)
	}
	if err != nil {
		return nil, err
	}
	out := make([]Scenario, len(files))
	for i, file := range files {
		if out[i], err = read(file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return out, nil
}

func read(file string) (Scenario, error) {
	s := Scenario{Name: strings.TrimSuffix(filepath.Base(file), ".txtar")}
	archive, err := txtar.ParseFile(file)
	if err != nil {
		return s, err
	}
	for _, f := range archive.Files {
		switch text := string(f.Data); f.Name {
		case "proxy":
			s.Proxy = strings.TrimSpace(text)
		case "mesh.yaml":
			s.Mesh = text
		case "objects.yaml":
			s.Objects = text
		case "steps":
			s.Steps, err = steps(text)
		default:
			err = fmt.Errorf("nobody reads %s", f.Name)
		}
		if err != nil {
			return s, err
		}
	}
	if len(s.Steps) == 0 {
		return s, fmt.Errorf("nothing is asked")
	}
	return s, nil
}

func steps(text string) ([]Step, error) {
	var out []Step
	var observes []Field
	said := false // whether a step has followed the comment
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		comment, isComment := strings.CutPrefix(line, "# ")
		switch {
		case line == "":
		case isComment:
			if said {
				observes, said = nil, false
			}
			fields := strings.Fields(comment)
			for _, path := range fields[1:] {
				observes = append(observes, Field{fields[0], path})
			}
		default:
			step, err := parse(line)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			step.Observes, said = observes, true
			out = append(out, step)
		}
	}
	return out, nil
}

var (
	word  = regexp.MustCompile(`'[^']*'|[^\s']+`)
	times = regexp.MustCompile(`^(\d+)x$`)
)

func parse(line string) (Step, error) {
	ask, want, ok := strings.Cut(line, " => ")
	if !ok {
		return Step{}, fmt.Errorf("want => between a request and what is to be seen")
	}
	s := Step{Line: line, Times: 1}
	if err := s.ask(words(ask)); err != nil {
		return s, err
	}
	seen := words(want)
	var err error
	if s.Status, err = strconv.Atoi(seen[0]); err != nil {
		return s, fmt.Errorf("want a status, found %q", seen[0])
	}
	for _, w := range seen[1:] {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			return s, fmt.Errorf("want what=value, found %q", w)
		}
		s.Expect = append(s.Expect, Pair{name, value})
	}
	return s, nil
}

func (s *Step) ask(words []string) error {
	if m := times.FindStringSubmatch(words[0]); m != nil {
		s.Times, _ = strconv.Atoi(m[1])
		words = words[1:]
	}
	if len(words) < 2 {
		return fmt.Errorf("want a method and a URL")
	}
	s.Method, s.URL, words = words[0], words[1], words[2:]
	for i := 0; i < len(words); i++ {
		name, value, ok := strings.Cut(words[i], ":")
		switch at := words[i]; {
		case i+1 < len(words) && at == "-to":
			i, s.To = i+1, words[i+1]
		case i+1 < len(words) && at == "-from":
			i, s.From = i+1, words[i+1]
		case ok:
			s.Headers = append(s.Headers, Pair{name, value})
		default:
			return fmt.Errorf("want name:value, found %q", at)
		}
	}
	return nil
}

func words(text string) []string {
	out := word.FindAllString(text, -1)
	for i, w := range out {
		out[i] = strings.Trim(w, "'")
	}
	return out
}
