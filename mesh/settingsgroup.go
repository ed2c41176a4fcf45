package mesh

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

// settingReader reads the value of one setting at a path in the file.
type settingReader func(f *settingsFile, path string, value *yaml.Node)

// scalar reads one plain value; take returns what is wrong with it.
func scalar(take func(*yaml.Node) string) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		if message := take(value); message != "" {
			f.report(value, diag.FieldInvalid, path, message+", found "+shown(value))
			return
		}
		f.checkMeaning(path, value)
	}
}

// ignored checks only the kind of a list or mapping and ignores its contents.
func ignored(kind yaml.Kind, must string) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		if value.Kind != kind {
			f.report(value, diag.FieldTypeInvalid, path, must+", found "+shown(value))
			return
		}
		f.checkMeaning(path, value)
	}
}

// mapping reads a mapping with known names, each at most once.
func (f *settingsFile) mapping(fields map[string]settingReader) func(path string, value *yaml.Node) {
	return func(path string, value *yaml.Node) {
		f.eachPair(path, value, func(at string, name, value *yaml.Node) {
			take, known := fields[name.Value]
			if !known {
				f.report(name, diag.FieldUnknown, at, unknownSetting(fields, name.Value))
				return
			}
			take(f, at, value)
		})
	}
}

// eachPair calls take for the pairs of a mapping with their paths. It reports
// repeated names.
func (f *settingsFile) eachPair(path string, value *yaml.Node, take func(at string, name, value *yaml.Node)) {
	if value.Kind != yaml.MappingNode {
		f.report(value, diag.FieldTypeInvalid, path, "must be a mapping, found "+shown(value))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(value.Content); i += 2 {
		name := value.Content[i]
		at := strings.TrimPrefix(path+"."+name.Value, ".")
		if first, again := lines[name.Value]; again {
			f.report(name, diag.FieldDuplicate, at, fmt.Sprintf("set a second time, first in line %d", first))
		} else {
			take(at, name, resolved(value.Content[i+1]))
		}
		lines[name.Value] = name.Line
	}
}

func resolved(value *yaml.Node) *yaml.Node {
	if value.Kind == yaml.AliasNode {
		return value.Alias
	}
	return value
}

func unknownSetting(fields map[string]settingReader, name string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	names := slices.Sorted(maps.Keys(fields))
	for _, known := range names {
		if plain(known) == plain(name) {
			return fmt.Sprintf("there is no such setting; did you mean %s?", known)
		}
	}
	return "there is no such setting; there are " + strings.Join(names, ", ")
}

// takeManagementPorts reads a list of {name, port, protocol}.
func takeManagementPorts(to *[]*Port) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		if value.Kind != yaml.SequenceNode {
			f.report(value, diag.FieldTypeInvalid, path, "must be a list of ports, each with name, port and protocol, found "+shown(value))
			return
		}
		numbers := map[int]bool{}
		for i, item := range value.Content {
			at, port := fmt.Sprintf("%s[%d]", path, i), &Port{}
			f.mapping(map[string]settingReader{
				"name":     scalar(takeString(&port.Name)),
				"port":     scalar(takePort(&port.Number)),
				"protocol": scalar(takeProtocol(&port.Protocol)),
			})(at, resolved(item))
			if port.Number == 0 || port.Protocol == "" {
				f.report(item, diag.FieldRequired, at, "must have a port from 1 to 65535 and a protocol")
			}
			if numbers[port.Number] {
				f.report(item, diag.FieldDuplicate, at+".port", fmt.Sprintf("port %d is already given", port.Number))
			}
			numbers[port.Number] = true
			*to = append(*to, port)
		}
	}
}

// takeOutboundTrafficPolicy reads {mode}.
func takeOutboundTrafficPolicy(to *OutboundMode) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		f.mapping(map[string]settingReader{"mode": scalar(takeOneOf(to, AllowAny, RegistryOnly))})(path, value)
	}
}

// takeBudget reads {object, mesh}.
func takeBudget(to *Budget) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		f.mapping(map[string]settingReader{
			"object": scalar(takeParts(&to.Object)),
			"mesh":   scalar(takeParts(&to.Mesh)),
		})(path, value)
	}
}

// takeCertificates reads certificates by the name of a secret.
func takeCertificates(to *map[string]Certificate, unless Certificate, must func(Certificate) string) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		*to = map[string]Certificate{}
		f.eachPair(path, value, func(at string, name, value *yaml.Node) {
			files := unless
			takeCertificate(&files, must)(f, at, value)
			(*to)[name.Value] = files
		})
	}
}

// takeCertificate reads the files of one certificate; omitted ones keep their
// value. must returns what is required of the result.
func takeCertificate(to *Certificate, must func(Certificate) string) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		f.mapping(certificateFields(to))(path, value)
		if message := must(*to); message != "" {
			f.report(value, diag.FieldRequired, path, message)
		}
	}
}

func certificateFields(to *Certificate) map[string]settingReader {
	return map[string]settingReader{
		"certificateFile": scalar(takeString(&to.CertificateFile)),
		"keyFile":         scalar(takeString(&to.KeyFile)),
		"caFile":          scalar(takeString(&to.CAFile)),
		"crlFile":         scalar(takeString(&to.CRLFile)),
	}
}

func pairOfFiles(c Certificate) string {
	if c.CertificateFile == "" || c.KeyFile == "" {
		return "must have a certificateFile and a keyFile, or leave them to the default"
	}
	return ""
}

func verifyingFiles(c Certificate) string {
	switch {
	case (c.CertificateFile == "") != (c.KeyFile == ""):
		return "must have both a certificateFile and a keyFile, or neither"
	case c.CertificateFile == "" && c.CAFile == "":
		return "must have a caFile, or a certificateFile and a keyFile"
	}
	return revokingFiles(c)
}

func revokingFiles(c Certificate) string {
	if c.CRLFile != "" && c.CAFile == "" {
		return "must have a caFile together with crlFile, whose authorities revoke"
	}
	return ""
}

// takeSwitches reads switches by name, or one value for all of them. In a mapping,
// "all" is the value of those that are not named.
func takeSwitches(to *V1Compatibility) settingReader {
	return func(f *settingsFile, path string, value *yaml.Node) {
		switches := to.switches()
		if value.Kind == yaml.ScalarNode {
			if message := takeAll(switches)(value); message != "" {
				f.report(value, diag.FieldInvalid, path, message+" for all, or a mapping of switches, found "+shown(value))
			}
			return
		}
		for i := 0; i+1 < len(value.Content); i += 2 {
			if value.Content[i].Value == allSwitches {
				_ = takeAll(switches)(resolved(value.Content[i+1])) // The mapping reports a bad value.
			}
		}
		fields := map[string]settingReader{allSwitches: scalar(takeBool(new(bool)))}
		for name, on := range switches {
			fields[name] = scalar(takeBool(on))
		}
		f.mapping(fields)(path, value)
	}
}

// allSwitches is the name that stands for every switch that is not named.
const allSwitches = "all"

func takeAll(switches map[string]*bool) func(*yaml.Node) string {
	return func(n *yaml.Node) string {
		for _, on := range switches {
			if message := takeBool(on)(n); message != "" {
				return message
			}
		}
		return ""
	}
}
