package store

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/pilot-api/pilot-api/schema"
)

// Page returns the part of items that the options select, and the number of items that
// they leave out after it. items is a complete list in order. The page shares its
// array.
func (o ListOptions) Page(items []*schema.Object) (page []*schema.Object, remaining int) {
	if o.After != (schema.Key{}) {
		items = items[sort.Search(len(items), func(i int) bool { return behind(items[i], o.After) }):]
	}
	if o.Limit == 0 || len(items) <= o.Limit {
		return items, 0
	}
	return items[:o.Limit:o.Limit], len(items) - o.Limit
}

// behind reports whether an object comes after a key in lists.
func behind(obj *schema.Object, key schema.Key) bool {
	kind, ok := schema.KindByName(key.Kind)
	return ok && cmp.Or(
		schema.CompareKinds(obj.Kind, kind),
		compareNamespaces(obj.Key().Namespace, key.Namespace),
		strings.Compare(obj.Meta.Name, key.Name),
	) > 0
}

// Continue is the position of the next page of a list: after a key, in the state at a
// revision, or in the newest state if the revision is 0.
type Continue struct {
	Revision int64
	After    schema.Key
}

// continueVersion is the version of the token format. Other versions are refused.
const continueVersion = 1

// maxContinue bounds the length of a token. The longest names need far less.
const maxContinue = 1024

type continueToken struct {
	Version   int    `json:"v"`
	Revision  int64  `json:"rv"`
	Kind      string `json:"kind"`
	Namespace string `json:"ns"`
	Name      string `json:"name"`
}

// Token encodes the position as a text that is opaque to clients.
func (c Continue) Token() string {
	text, err := json.Marshal(continueToken{continueVersion, c.Revision, c.After.Kind, c.After.Namespace, c.After.Name})
	if err != nil {
		panic(err) // Numbers and strings can be encoded.
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseContinue decodes a token. The token is not trusted.
func ParseContinue(token string) (Continue, error) {
	var t continueToken
	if len(token) > maxContinue {
		return Continue{}, fmt.Errorf("is %d characters long, none has more than %d", len(token), maxContinue)
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(text, &t) != nil || t.Version != continueVersion || t.Revision < 0 {
		return Continue{}, errors.New("is none that was given out here")
	}
	c := Continue{t.Revision, schema.Key{Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}}
	return c, checkAfter(c.After)
}

// checkAfter returns an error for a key that no object can have.
func checkAfter(key schema.Key) error {
	_, known := schema.KindByName(key.Kind)
	if !known || key.Namespace == "" || key.Name == "" || strings.ContainsAny(key.Namespace+key.Name, "/\x00") {
		return errors.New("does not name a known kind, a namespace and a name")
	}
	return nil
}
