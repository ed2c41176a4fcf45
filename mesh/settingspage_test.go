package mesh

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/pilot-api/pilot-api/internal/golden"
	"github.com/pilot-api/pilot-api/schema"
)

const settingsIntro = `# Mesh settings

The mesh settings apply to the whole mesh. They are one YAML file, which the server reads when it starts: ` + "`pilot-api --mesh-config FILE`" + ` ([example](../../examples/bookshop/mesh.yaml)). A name that is not on this page is an error, and so is a value of another type. A setting that the file leaves out has its default.

| Name | Type | Default | Meaning |
|---|---|---|---|
`

const switchesIntro = `
## v1Compatibility

The value is one boolean for all switches, or a mapping of switches. In the mapping, ` + "`all`" + ` stands for the switches that it does not name. ` + "`true`" + ` keeps an accident of Pilot, and ` + "`false`" + ` turns it off. [v1-compatibility](../v1-compatibility.md) explains both.

| Name | Default | When true |
|---|---|---|
`

const idleIntro = `
## Without effect

These names from Pilot's files are for features that pilot-api does not have. The server accepts them, and warns unless the value asks for nothing.

| Name | No warning for | Why |
|---|---|---|
`

// TestSettingsPage keeps docs/reference/mesh-config.md what the code says: its
// texts are the comments of the fields.
func TestSettingsPage(t *testing.T) {
	golden.Page(t, "../docs/reference/mesh-config.md", settingsPage(t))
}

func settingsPage(t *testing.T) string {
	var settings, switches, idle strings.Builder
	defaults := DefaultSettings()
	meant := fieldComments(t, "settings.go", "Settings")
	for _, name := range slices.Sorted(maps.Keys(settingsFields(defaults))) {
		field, ok := reflect.TypeFor[Settings]().FieldByNameFunc(func(field string) bool { return strings.EqualFold(field, name) })
		if !ok {
			harmless, why := idleSetting(name)
			fmt.Fprintf(&idle, "| `%s` | %s | %s |\n", name, harmless, why)
			continue
		}
		value := reflect.ValueOf(defaults).Elem().FieldByIndex(field.Index).Interface()
		kind, unset := settingType(t, value)
		fmt.Fprintf(&settings, "| `%s` | %s | %s | %s |\n", name, kind, unset, meaning(t, meant, field.Name))
	}
	meant = fieldComments(t, "compatibility.go", "V1Compatibility")
	values := reflect.ValueOf(defaults.V1Compatibility)
	for i := range values.NumField() {
		field := values.Type().Field(i).Name
		fmt.Fprintf(&switches, "| `%s` | %v | %s |\n", settingName(field), values.Field(i), meaning(t, meant, field))
	}
	return settingsIntro + settings.String() + switchesIntro + switches.String() + idleIntro + idle.String()
}

// settingType is the type of a setting in words, and its default.
func settingType(t *testing.T, value any) (kind, unset string) {
	switch value := value.(type) {
	case int:
		return "port, from 0 to 65535", fmt.Sprint(value)
	case time.Duration:
		unset = value.String()
		if value == 0 {
			unset = "none"
		}
		return "duration such as `250ms`, at least `1ms`", unset
	case bool:
		return "boolean", fmt.Sprint(value)
	case string:
		if value == "" {
			return "string", "none"
		}
		return "string", "`" + value + "`"
	case OutboundMode:
		return "{`mode`: `ALLOW_ANY` or `REGISTRY_ONLY`}", "`" + string(value) + "`"
	case OnDemandMode:
		return "`off` or `hosts`", "`" + string(value) + "`"
	case Visibility:
		return "`*` or `.`", "`" + string(value) + "`"
	case []*Port:
		return "list of {`name`, `port`, `protocol`}", "none"
	case []string:
		return "list of folders", "none"
	case map[string]Certificate:
		return "map of a secret to {`certificateFile`, `keyFile`, `caFile`, `crlFile`}", "none"
	case map[string]SecretFile:
		return "map of a secret to {`certificateFile`, `keyFile`, `caFile`}", "none"
	case WorkloadCertificates:
		return "{`certificateFile`, `keyFile`, `caFile`, `crlFile`}, or {`sdsFile`}, or {`sdsSocket`}", "none"
	case map[string][]NetworkGateway:
		return "map of a network to {`gateways`: list of {`address`, `port`}}", "none"
	case *schema.HealthCheck:
		return "{`http`: {`path`, `host`}, or `tcp`: {}, or `grpc`: {`service`}; `interval`, `timeout`, `unhealthyThreshold`, `healthyThreshold`}", "none"
	case *networking.LocalityLoadBalancerSetting:
		return "{`enabled`, `distribute`, `failover`, `failoverPriority`}, as in a [DestinationRule](destinationrule.md)", "none"
	case KeyFetching:
		return "{`addresses`: list of CIDR blocks, `caFile`}", "none"
	case Budget:
		return "{`object`: number of parts, `mesh`: number of parts}", fmt.Sprintf("`object`: %d, `mesh`: %d", DefaultBudget.Object, DefaultBudget.Mesh)
	case V1Compatibility:
		return "boolean, or map of switches to boolean", "false"
	}
	t.Fatalf("no words for the type %T", value)
	return "", ""
}

func idleSetting(name string) (harmless, why string) {
	idle, warned := withoutMeaning[name]
	if !warned {
		return "any value", "pilot-api does not have the feature that it turns off"
	}
	if len(idle.harmless) == 0 {
		return "no value", idle.message
	}
	for _, value := range idle.harmless {
		harmless += fmt.Sprintf(", `%q`", value)
	}
	return strings.TrimPrefix(harmless, ", "), idle.message
}

// fieldComments are the comments of the fields of a struct.
func fieldComments(t *testing.T, file, name string) map[string]string {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	comments := map[string]string{}
	for _, field := range parsed.Scope.Lookup(name).Decl.(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
		comments[field.Names[0].Name] = field.Doc.Text()
	}
	return comments
}

// meaning is a comment without the name that it begins with.
func meaning(t *testing.T, comments map[string]string, field string) string {
	text, ok := strings.CutPrefix(strings.Join(strings.Fields(comments[field]), " "), field+" ")
	if !ok {
		t.Fatalf("the comment of %s does not begin with its name", field)
	}
	for _, verb := range []string{"is ", "are "} {
		text = strings.TrimPrefix(text, verb)
	}
	return string(unicode.ToUpper(rune(text[0]))) + text[1:]
}
