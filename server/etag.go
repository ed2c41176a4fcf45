package server

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/pilot-api/pilot-api/schema"
)

// inGzip ends the tags of answers in gzip.
const inGzip = "-gzip"

// unchanged answers 304 where the client has the very answer already, and else
// gives it its tag. It is for answers to GET, in formats that do not tell ages.
func unchanged(w http.ResponseWriter, r *http.Request, tag string) bool {
	if !isRead(r) {
		return false
	}
	w.Header().Add("Vary", "Accept")
	w.Header().Set("ETag", `"`+tag+`"`)
	if !namesTag(r.Header.Values("If-None-Match"), tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// tagOf is a resourceVersion and a hash of what it does not tell: what objects look
// like follows from it, from which objects they are, and from their statuses, nil for
// none. Another store may have had the same resourceVersion for other objects: theirs
// have other uids.
func tagOf(f format, revision string, objs []*schema.Object, statuses [][]byte) string {
	var hash xxhash.Digest
	hash.Reset()
	if len(objs) > 0 {
		_, _ = hash.WriteString(string(objs[0].Meta.UID) + string(objs[len(objs)-1].Meta.UID))
	}
	for _, status := range statuses {
		_, _ = hash.Write(status)
	}
	tag := revision + "-" + strconv.FormatUint(hash.Sum64(), 36)
	if f == formatYAML {
		tag += "-yaml"
	}
	return tag
}

// namesTag reports whether If-None-Match names a tag, in gzip or not. A weak tag
// names the strong one, as RFC 9110 wants it for GET.
func namesTag(headers []string, tag string) bool {
	for _, header := range headers {
		for one := range strings.SplitSeq(header, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || one == `"`+tag+`"` || one == `"`+tag+inGzip+`"` {
				return true
			}
		}
	}
	return false
}
