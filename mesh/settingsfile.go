package mesh

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pilot-api/pilot-api/diag"
)

// settingsFile parses one mesh configuration.
type settingsFile struct {
	file     string
	settings *Settings
	problems diag.List
}

// ParseSettings parses a mesh configuration as strictly as an object: unknown names
// and bad values are problems with line and column. Names that Pilot had and that
// have no effect here are accepted, with a warning if their value asks for
// something. Settings are nil if the list contains an error. Settings that the text
// omits have their default, so an empty text is valid.
func ParseSettings(text []byte, file string) (*Settings, diag.List) {
	f := &settingsFile{file: file, settings: DefaultSettings()}
	if root := f.document(text); root != nil {
		f.mapping(settingsFields(f.settings))("", root)
		f.checkPorts(root)
	}
	if f.problems.Err() != nil {
		return nil, f.problems
	}
	return f.settings, f.problems
}

// settingsFields maps each name to the reader of its value.
func settingsFields(s *Settings) map[string]settingReader {
	return map[string]settingReader{
		"proxyListenPort":       scalar(takePort(&s.ProxyListenPort)),
		"proxyHttpPort":         scalar(takePort(&s.ProxyHTTPPort)),
		"connectTimeout":        scalar(takeDuration(&s.ConnectTimeout)),
		"rdsRefreshDelay":       scalar(takeDuration(&s.RDSRefreshDelay)),
		"discoveryRefreshDelay": scalar(takeDuration(&s.DiscoveryRefreshDelay)),
		"enableTracing":         scalar(takeBool(&s.EnableTracing)),
		"accessLogFile":         scalar(takeString(&s.AccessLogFile)),
		"trustDomain":           scalar(takeTrustDomain(&s.TrustDomain)),
		"rootNamespace":         scalar(takeString(&s.RootNamespace)),
		"defaultVisibility":     scalar(takeOneOf(&s.DefaultVisibility, VisibleToAll, VisibleInside)),
		"outboundTrafficPolicy": takeOutboundTrafficPolicy(&s.OutboundTrafficPolicy),
		"onDemand":              scalar(takeOneOf(&s.OnDemand, OnDemandOff, OnDemandHosts)),
		"managementPorts":       takeManagementPorts(&s.ManagementPorts),
		"localityLbSetting":     takeLocalities(&s.LocalityLbSetting),
		"healthCheck":           takeHealthCheck(&s.HealthCheck),
		"ingressCertificates":   takeCertificates(&s.IngressCertificates, DefaultIngressCertificate, pairOfFiles),
		"clientCertificates":    takeCertificates(&s.ClientCertificates, Certificate{}, verifyingFiles),
		"secretFiles":           takeSecretFiles(&s.SecretFiles),
		"workloadCertificates":  takeWorkloadCertificates(&s.WorkloadCertificates),
		"jwksFetching":          takeKeyFetching(&s.JWKSFetching),
		"systemRootsFile":       scalar(takeString(&s.SystemRootsFile)),
		"networks":              takeNetworks(&s.Networks),
		"unixSocketFolders":     takeFolders(&s.UnixSocketFolders),
		"budget":                takeBudget(&s.Budget),
		"v1Compatibility":       takeSwitches(&s.V1Compatibility),
		"authPolicy":            scalar(takeString(new(string))),
		"ingressClass":          scalar(takeString(new(string))),
		"ingressService":        scalar(takeString(new(string))),
		"ingressControllerMode": scalar(takeString(new(string))),
		"mixerCheckServer":      scalar(takeString(new(string))),
		"mixerReportServer":     scalar(takeString(new(string))),
		"disablePolicyChecks":   scalar(takeBool(new(bool))),
		"mtlsExcludedServices":  ignored(yaml.SequenceNode, "must be a list of services"),
		"defaultConfig":         ignored(yaml.MappingNode, "must be a mapping"),
	}
}

// withoutMeaning has the names that Pilot used for features that do not exist here,
// with the harmless values and the text of the warning.
var withoutMeaning = map[string]struct {
	harmless []string
	message  string
}{
	"authPolicy":            {[]string{"", "NONE"}, "it has no effect; a PeerAuthentication turns mutual TLS on"},
	"ingressClass":          {[]string{"", "istio"}, "pilot-api reads no Kubernetes ingresses; write IngressRules"},
	"ingressService":        {[]string{"", "istio-ingress"}, "pilot-api reads no Kubernetes ingresses, and writes no address into their status"},
	"ingressControllerMode": {[]string{"", "STRICT", "OFF"}, "pilot-api reads no Kubernetes ingresses; write IngressRules"},
	"mixerCheckServer":      {[]string{""}, "there is no Mixer: no request is checked"},
	"mixerReportServer":     {[]string{""}, "there is no Mixer: nothing is reported to it"},
	"defaultConfig":         {nil, "pilot-api does not start proxies; put these settings into their bootstrap"},
}

// document returns the mapping that the text consists of, or nil if it is empty or
// invalid.
func (f *settingsFile) document(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc, next yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			f.malformed(err)
		}
		return nil
	}
	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		f.report(&next, diag.Malformed, "", "want one YAML document, found another one here")
		return nil
	}
	root := doc.Content[0]
	switch {
	case root.Kind == yaml.MappingNode:
		return root
	case root.Tag != "!!null":
		f.report(root, diag.Malformed, "", "want a mapping of setting names to values")
	}
	return nil
}

var yamlLine = regexp.MustCompile(`line (\d+)`)

// malformed reports a text that is not valid YAML. The parser reports the line only
// in its message.
func (f *settingsFile) malformed(err error) {
	at := &yaml.Node{}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		at.Column = 1
	}
	f.report(at, diag.Malformed, "", strings.TrimPrefix(err.Error(), "yaml: "))
}

func (f *settingsFile) checkPorts(root *yaml.Node) {
	listen, proxy := f.settings.ProxyListenPort, f.settings.ProxyHTTPPort
	if listen != 0 && listen == proxy {
		f.report(root, diag.FieldInvalid, "proxyHttpPort",
			fmt.Sprintf("must differ from proxyListenPort, both are %d", listen))
	}
	if listen == 0 && proxy == 0 {
		f.report(root, diag.NotHonoured, "proxyListenPort",
			"sidecars take no traffic at all: set it, or proxyHttpPort, to a port")
	}
	f.checkOnDemand(root)
}

// checkOnDemand reports settings with which no host can be on demand.
func (f *settingsFile) checkOnDemand(root *yaml.Node) {
	if why := f.settings.WithoutOnDemand(); f.settings.OnDemand == OnDemandHosts && why != "" {
		f.report(root, diag.FieldInvalid, "onDemand", why)
	}
}

// checkMeaning warns of a value that asks for a feature that does not exist here.
func (f *settingsFile) checkMeaning(name string, value *yaml.Node) {
	if idle, ok := withoutMeaning[name]; ok && !slices.Contains(idle.harmless, value.Value) {
		f.report(value, diag.NotHonoured, name, idle.message)
	}
}

func (f *settingsFile) report(at *yaml.Node, reason diag.Reason, field, message string) {
	severity := diag.Error
	if reason == diag.NotHonoured {
		severity = diag.Warning
	}
	f.problems = append(f.problems, diag.Problem{
		Severity: severity, Reason: reason, Code: diag.CodeOf(reason), Field: field, Message: message,
		Position: &diag.Position{File: f.file, Line: at.Line, Column: at.Column},
	})
}
