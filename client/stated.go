package client

import (
	"encoding/json"

	"github.com/pilot-api/pilot-api/schema"
)

// Stated is an object and how it stands with the proxies.
type Stated struct {
	*schema.Object
	Raw json.RawMessage // the status as the server wrote it; nil for none
}

// Status is nil where the server tells none.
func (s Stated) Status() (*schema.Status, error) {
	if len(s.Raw) == 0 {
		return nil, nil
	}
	var out schema.Status
	return &out, json.Unmarshal(s.Raw, &out)
}
