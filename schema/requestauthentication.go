package schema

import (
	"net/url"
	"slices"
	"strings"
	"time"

	security "istio.io/api/security/v1beta1"

	"github.com/pilot-api/pilot-api/credential"
	"github.com/pilot-api/pilot-api/diag"
)

// KindRequestAuthentication is the kind of objects that say whose tokens workloads accept.
const KindRequestAuthentication = "RequestAuthentication"

// MostKeyPatience is the longest time that the server waits for the keys of an issuer.
const MostKeyPatience = 10 * time.Second

func init() {
	register(&Kind{
		Group: securityGroup, Version: "v1", Served: securityVersions,
		Kind: KindRequestAuthentication, Plural: "requestauthentications", Singular: "requestauthentication",
		Dashed: "request-authentication", ShortNames: []string{"ra"},
		Doc: "A RequestAuthentication says which issuers of JSON Web Tokens workloads trust, and where requests have the tokens. One with a selector is for the workloads of its namespace with these labels, one without for all workloads of its namespace and, in the root namespace of the mesh, of all namespaces. " +
			"A request with an invalid token is refused. A request without a token is taken: an AuthorizationPolicy can require one.",
		Columns: []Column{
			stringColumn("Issuers", "Whose tokens are verified.", func(s *security.RequestAuthentication) string { return strings.Join(issuers(s), ",") }),
			stringColumn("Selector", "Labels of the workloads that it is for.", func(s *security.RequestAuthentication) string { return labelsText(s.GetSelector().GetMatchLabels()) }),
			wideColumn("Keys", "Where the keys of the issuers come from.", func(s *security.RequestAuthentication) string { return strings.Join(keySources(s), ",") }),
		},
		selectable: []SelectableField{selectable("spec.jwtRules.issuer", issuers)},
		spec:       inProto[security.RequestAuthentication](),
		check:      checkAs(checkRequestAuthentication),
	})
}

func issuers(s *security.RequestAuthentication) []string {
	var out []string
	for _, r := range s.GetJwtRules() {
		out = append(out, r.GetIssuer())
	}
	return out
}

// keySources returns where the keys of each issuer come from: a URL, inline for keys in the
// object, or discovery for what the issuer itself says.
func keySources(s *security.RequestAuthentication) []string {
	var out []string
	for _, r := range s.GetJwtRules() {
		switch {
		case r.GetJwks() != "":
			out = append(out, "inline")
		case r.GetJwksUri() != "":
			out = append(out, r.GetJwksUri())
		default:
			out = append(out, "discovery")
		}
	}
	return out
}

func checkRequestAuthentication(s *security.RequestAuthentication) diag.List {
	var p problems
	if s.GetTargetRef() != nil || len(s.GetTargetRefs()) > 0 {
		p.forbidden("spec.targetRefs", "is not supported: select workloads by their labels (selector)")
	}
	for i, r := range s.GetJwtRules() {
		p.jwtRule(indexField("spec.jwtRules", i), r)
	}
	return p.list
}

func (p *problems) jwtRule(at string, r *security.JWTRule) {
	switch {
	case r.GetJwks() != "":
		if _, err := credential.PublicKeys([]byte(r.GetJwks())); err != nil {
			p.invalid(at+".jwks", "cannot be used: "+err.Error())
		}
	case r.GetJwksUri() != "":
		if !isKeyURL(r.GetJwksUri()) {
			p.invalidValue(at+".jwksUri", r.GetJwksUri(), "must be an http or https URL with a host, without a user and a fragment")
		} else if strings.HasPrefix(r.GetJwksUri(), "http:") {
			p.suspect(at+".jwksUri", "whoever is between the server and this URL can replace the keys: use https")
		}
	case !isKeyURL(r.GetIssuer()) || !strings.HasPrefix(r.GetIssuer(), "https:"):
		p.required(at+".jwksUri", "must be given, unless jwks is: the issuer is no https URL by which its keys could be found")
	}
	if d := r.GetTimeout().AsDuration(); d > MostKeyPatience {
		p.invalidValue(at+".timeout", d.String(), "must be at most "+MostKeyPatience.String())
	}
	for i, from := range r.GetFromHeaders() {
		if isAuthority(from.GetName()) {
			p.forbidden(indexField(at+".fromHeaders", i)+".name", "the host of a request is no token")
		}
	}
	written := map[string]string{}
	write := func(field, header string) {
		name := strings.ToLower(header)
		if slices.Contains(headersOfHTTP, name) {
			p.forbidden(field, "is a header of HTTP itself, and no claim may replace it")
		}
		if first := written[name]; first != "" {
			p.duplicate(field, "is written by "+first+" too")
		}
		written[name] = field
	}
	if header := r.GetOutputPayloadToHeader(); header != "" {
		write(at+".outputPayloadToHeader", header)
	}
	for i, out := range r.GetOutputClaimToHeaders() {
		write(indexField(at+".outputClaimToHeaders", i)+".header", out.GetHeader())
	}
}

// headersOfHTTP are the headers by which proxies and servers read a request.
var headersOfHTTP = []string{"connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "x-forwarded-for"}

// isKeyURL reports whether keys may be fetched from a URL.
func isKeyURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil && u.Fragment == "" && !strings.Contains(text, "#")
}
