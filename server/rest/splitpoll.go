package rest

import "bytes"

// splitPoll splits a body as Envoy writes it into the small fields and the node:
//
//	{"version_info":"…","node":{…},"resource_names":["…"],"type_url":"…"}
//
// There is no white space, and version_info and resource_names are present only if
// they are not empty. splitPoll checks everything except the node; ok is false if
// anything differs. It finds the ends of the node from both sides of the body, so
// the caller must check that the node is one JSON value.
func splitPoll(body []byte) (out poll, node []byte, ok bool) {
	rest, ok := bytes.CutPrefix(body, []byte(`{`))
	if !ok {
		return poll{}, nil, false
	}
	if quoted, found := bytes.CutPrefix(rest, []byte(`"version_info":"`)); found {
		if out.Version, rest, ok = plainString(quoted); !ok {
			return poll{}, nil, false
		}
		if rest, ok = bytes.CutPrefix(rest, []byte(`,`)); !ok {
			return poll{}, nil, false
		}
	}
	if rest, ok = bytes.CutPrefix(rest, []byte(`"node":`)); !ok {
		return poll{}, nil, false
	}
	if rest, out.TypeURL, ok = cutType(rest); !ok {
		return poll{}, nil, false
	}
	node, out.Names, ok = cutNames(rest)
	return out, node, ok
}

// cutType removes the type URL and everything after it from the end.
func cutType(b []byte) (before []byte, typeURL string, ok bool) {
	key := []byte(`,"type_url":"`)
	at := bytes.LastIndex(b, key)
	if at < 0 {
		return nil, "", false
	}
	typeURL, rest, ok := plainString(b[at+len(key):])
	return b[:at], typeURL, ok && string(rest) == "}"
}

// cutNames removes the resource names, if there are any, from the end.
func cutNames(b []byte) (before []byte, names []string, ok bool) {
	if !bytes.HasSuffix(b, []byte(`]`)) {
		return b, nil, true
	}
	key := []byte(`,"resource_names":[`)
	at := bytes.LastIndex(b, key)
	if at < 0 {
		return nil, nil, false
	}
	rest := b[at+len(key) : len(b)-1]
	for len(rest) > 0 {
		if len(names) > 0 {
			if rest, ok = bytes.CutPrefix(rest, []byte(`,`)); !ok {
				return nil, nil, false
			}
		}
		if rest, ok = bytes.CutPrefix(rest, []byte(`"`)); !ok {
			return nil, nil, false
		}
		var name string
		if name, rest, ok = plainString(rest); !ok {
			return nil, nil, false
		}
		names = append(names, name)
	}
	return b[:at], names, true
}

// plainString reads up to the closing quote. It accepts only printable ASCII
// without escapes.
func plainString(b []byte) (text string, rest []byte, ok bool) {
	for i, c := range b {
		switch {
		case c == '"':
			return string(b[:i]), b[i+1:], true
		case c == '\\' || c < 0x20 || c > 0x7e:
			return "", nil, false
		}
	}
	return "", nil, false
}
