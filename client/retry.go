package client

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// The bounds of what is waited between two tries.
const (
	mostPause         = 30 * time.Second
	leastConflict     = 5 * time.Millisecond
	mostConflictPause = time.Second
)

// send is sendOnce, as often as Options.Retries allow.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	for try := 0; ; try++ {
		resp, again, err := c.sendOnce(ctx, r)
		if err == nil || again == 0 || try >= c.opts.Retries || !c.pause(ctx, retryPause(again, try)) {
			return resp, err
		}
	}
}

// retryAfter is when an answer wants to be asked for again, 0 for never.
func retryAfter(resp *http.Response) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// retryPause is not less than what the server wants, within the bound, and by
// chance up to as much more: twice that with each try.
func retryPause(again time.Duration, try int) time.Duration {
	again = min(again, mostPause)
	return min(again+rand.N(again<<min(try, 5)), mostPause)
}

// conflictPause lets those who write the same object come apart. The first few
// tries are quick.
func conflictPause(try int) time.Duration {
	return rand.N(min(leastConflict<<min(try, 10), mostConflictPause))
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
