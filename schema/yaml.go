package schema

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

func (d Document) parseYAML() (*tree, diag.List) {
	var root yaml.Node
	if err := readYAML(d.Text, &root); err != nil {
		return nil, d.malformedYAML()
	}
	if len(root.Content) == 0 {
		return &tree{places: places{doc: d}, nodes: func() *yaml.Node { return nil }}, nil
	}
	top := root.Content[0]
	c := converter{places: places{doc: d}}
	value := c.value(top, 0)
	return &tree{value: value, places: c.places, nodes: func() *yaml.Node { return top }}, c.list
}

// readYAML reads the only document of a text. The library stops after the first
// one, and reports an error in the text after a map in braces only if it is asked
// for a second document.
func readYAML(text []byte, into *yaml.Node) error {
	in := yaml.NewDecoder(bytes.NewReader(text))
	if err := in.Decode(into); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var more yaml.Node
	if err := in.Decode(&more); !errors.Is(err, io.EOF) {
		return cmp.Or(err, errMoreYAML)
	}
	return nil
}

var errMoreYAML = errors.New("yaml: there is more text after the end of the object")

// converter converts YAML nodes to plain values. It reports YAML features that
// objects do not have.
type converter struct {
	places
	list    diag.List
	aliased int // values and texts reached through aliases
	inAlias int // the depth of nested aliases
}

func (c *converter) problem(n *yaml.Node, reason diag.Reason, message string) {
	if len(c.list) <= mostProblems {
		c.list = append(c.list, diag.Problem{
			Severity: diag.Error, Reason: reason, Code: diag.CodeOf(reason), Message: message, Position: c.position(n.Line, n.Column),
		})
	}
}

func (c *converter) value(n *yaml.Node, depth int) any {
	if depth > maxDepth {
		c.problem(n, diag.Malformed, tooDeep)
		return nil
	}
	if c.repeats(n) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		c.untagged(n, "!!map")
		return c.mapping(n, depth)
	case yaml.SequenceNode:
		c.untagged(n, "!!seq")
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			list[i] = c.value(item, depth+1)
		}
		return list
	case yaml.AliasNode:
		return c.alias(n, depth)
	}
	return c.scalar(n)
}

// untagged reports a tag other than that of a plain map or list.
func (c *converter) untagged(n *yaml.Node, plain string) {
	if n.ShortTag() != plain {
		c.foreignTag(n)
	}
}

func (c *converter) foreignTag(n *yaml.Node) {
	c.problem(n, diag.Malformed, fmt.Sprintf("the tag %s is not supported; leave it out", n.ShortTag()))
}

// repeats counts what aliases repeat, and reports when that is too much.
func (c *converter) repeats(n *yaml.Node) bool {
	if c.inAlias == 0 {
		return false
	}
	before := c.aliased
	c.aliased += 1 + len(n.Value)
	if before <= maxAliased && c.aliased > maxAliased {
		c.problem(n, diag.Malformed, errAliased.Error())
	}
	return c.aliased > maxAliased
}

// alias relies on the depth limit, because an anchor may hold an alias to itself.
func (c *converter) alias(n *yaml.Node, depth int) any {
	c.inAlias++
	defer func() { c.inAlias-- }()
	return c.value(n.Alias, depth+1)
}

// isWholeNumber reports whether a name is a number as JSON writes it, such as a port. Every
// reader of YAML makes the same text of it.
func isWholeNumber(key *yaml.Node) bool {
	n, err := strconv.ParseUint(key.Value, 10, 64)
	return err == nil && key.ShortTag() == "!!int" && strconv.FormatUint(n, 10) == key.Value
}

func (c *converter) mapping(n *yaml.Node, depth int) any {
	out := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.ShortTag() == "!!merge":
			c.problem(key, diag.Malformed, "merge keys (<<) are not supported; write the fields out")
			continue
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" && !isWholeNumber(key):
			c.problem(key, diag.Malformed, "the name of a field must be a text; put it in quotes")
			continue
		}
		c.booleanLike(key)
		if c.repeats(key) {
			break
		}
		if _, twice := out[key.Value]; twice {
			c.problem(key, diag.FieldDuplicate, fmt.Sprintf("%s is given twice in one map", key.Value))
			continue
		}
		out[key.Value] = c.value(n.Content[i+1], depth+1)
	}
	return out
}

func (c *converter) scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!str", "!!timestamp":
		c.booleanLike(n)
		return n.Value
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int":
		return c.integer(n)
	case "!!float":
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			c.problem(n, diag.Malformed, fmt.Sprintf("%s is not a number that can be written in JSON", n.Value))
		}
		return f
	}
	c.foreignTag(n)
	return nil
}

var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9]*)$`)

// integer accepts only decimal numbers, because readers of YAML differ on 010.
func (c *converter) integer(n *yaml.Node) any {
	if !decimal.MatchString(n.Value) {
		c.problem(n, diag.Malformed, fmt.Sprintf("the number %s must be written in decimal, without leading zeros or underscores; for a text, put it in quotes", n.Value))
		return nil
	}
	if i, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
		return i
	}
	f, _ := strconv.ParseFloat(n.Value, 64)
	return f
}

var notABool = regexp.MustCompile(`^(?i:yes|no|on|off)$`)

// booleanLike rejects words such as yes: YAML 1.1, which kubectl reads, takes yes
// for true; YAML 1.2 takes it for a text.
func (c *converter) booleanLike(n *yaml.Node) {
	if n.Style == 0 && notABool.MatchString(n.Value) {
		c.problem(n, diag.Malformed, fmt.Sprintf("%s without quotes is true or false to some readers of YAML and a text to others; write true or false, or put it in quotes", n.Value))
	}
}

// CheckAliases refuses a YAML text whose aliases repeat more than an object may have.
// Call it before a library expands them: a short text can become very long. A text
// that is not YAML passes.
func CheckAliases(text []byte) error {
	if bytes.IndexByte(text, '*') < 0 {
		return nil // It has no aliases.
	}
	var root yaml.Node
	if yaml.Unmarshal(text, &root) != nil {
		return nil
	}
	if expanded(&root, false, 0) > maxAliased {
		return errAliased
	}
	return nil
}

var errAliased = fmt.Errorf("aliases repeat more than %d values and characters", maxAliased)

// expanded returns how many values and characters the aliases in a node repeat, in
// addition to repeated. It stops counting after maxAliased.
func expanded(n *yaml.Node, inAlias bool, repeated int) int {
	if inAlias {
		repeated += 1 + len(n.Value)
	}
	if n.Kind == yaml.AliasNode {
		n, inAlias = n.Alias, true
		repeated += 1 + len(n.Value)
	}
	for _, part := range n.Content {
		if repeated > maxAliased {
			break
		}
		repeated = expanded(part, inAlias, repeated)
	}
	return repeated
}
