//go:build !linux

package probe

import (
	"context"
	"time"
)

func dialAs(context.Context, uint32, uint32, string, string, time.Duration) error { return errSender }
