package ads_test

import (
	"os"
	"testing"
)

// TestMain is also the program in which the benchmark's clients run.
func TestMain(m *testing.M) {
	if addr := os.Getenv(crowdAddress); addr != "" {
		crowd(addr)
		return
	}
	os.Exit(m.Run())
}
