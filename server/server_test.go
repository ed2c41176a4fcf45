package server_test

import (
	"net/http"
	"testing"
)

// anyAnswer skips the comparison with OpenAPI, for a server over a store that fails
// as no real one does.
func anyAnswer(_ *testing.T, h http.Handler) http.Handler { return h }
