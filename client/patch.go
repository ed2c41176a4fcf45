package client

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pilot-api/pilot-api/schema"
)

// Patch changes an object by a merge patch or a JSON patch (types.MergePatchType,
// types.JSONPatchType). The server applies it to the newest state, so it never
// conflicts unless the patch sets or tests a resourceVersion. The error is ErrNotFound
// if there is no such object.
func (c *Client) Patch(ctx context.Context, key schema.Key, kind types.PatchType, patch []byte) (*schema.Object, error) {
	k, err := kindOf(key)
	if err != nil {
		return nil, err
	}
	if key.Name == "" {
		return nil, invalid("a patch needs a name")
	}
	at := c.url(k, key.Namespace, key.Name, c.writeQuery())
	return c.write(ctx, http.MethodPatch, at, Text{Kind: k, Namespace: key.Namespace, Name: key.Name, Body: patch, ContentType: string(kind)})
}
