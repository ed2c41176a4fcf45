package client

import (
	"context"

	"k8s.io/apimachinery/pkg/version"
)

// ServerVersion returns the version of the server.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	var info version.Info
	if err := c.ask(ctx, "/version", nil, &info, func() error { return member("gitVersion", info.GitVersion != "") }); err != nil {
		return nil, err
	}
	return &info, nil
}
