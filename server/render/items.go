package render

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"

	"github.com/pilot-api/pilot-api/schema"
)

// rowLength is the approximate length, in bytes, of a table row or of an object's
// metadata in an answer.
const rowLength = 512

// writeItems writes item(o) for each object of a list. It stops when ctx ends.
func writeItems(ctx context.Context, out *bufio.Writer, objs []*schema.Object, item func(*schema.Object) any) error {
	for i, o := range objs {
		if i > 0 {
			_ = out.WriteByte(',')
		}
		text, err := json.Marshal(item(o))
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		_, _ = out.Write(text)
	}
	return nil
}
