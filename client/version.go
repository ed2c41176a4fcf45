package client

import (
	"context"

	"k8s.io/apimachinery/pkg/version"
)

// ServerVersion returns the version of the server.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	var info struct {
		GitVersion *string `json:"gitVersion"` // A server that was built without a version says "".
		version.Info
	}
	if err := c.ask(ctx, "/version", nil, &info, func() error { return member("gitVersion", info.GitVersion != nil) }); err != nil {
		return nil, err
	}
	info.Info.GitVersion = *info.GitVersion
	return &info.Info, nil
}
