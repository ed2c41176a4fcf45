package diff

import (
	"bytes"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/cli"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/past"
	"github.com/pilot-api/pilot-api/cmd/istioctl/internal/printer"
	"github.com/pilot-api/pilot-api/schema"
)

// comparable returns an object as YAML without the fields that each write sets.
func comparable(o *schema.Object) ([]byte, error) {
	if o == nil {
		return nil, nil
	}
	fields, err := past.Authored(o)
	if err != nil {
		return nil, err
	}
	return printer.MarshalYAML(fields)
}

// showDiff prints a unified diff. It prints nothing if the texts are equal.
func showDiff(s *cli.Session, oldName string, old []byte, newName string, next []byte) (differs bool, err error) {
	_, text, _ := bytes.Cut(diff.Diff(oldName, old, newName, next), []byte("\n")) // Without "diff old new".
	_, err = s.Stdout.Write(text)
	return len(text) > 0, err
}
