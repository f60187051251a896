package isa_test

import (
	"os"
	"os/exec"
	"testing"
)

// client finds an outside program, or skips the test where it is missing.
func client(t *testing.T, names ...string) string {
	t.Helper()
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	if os.Getenv("SPINESIM_REQUIRE_CLIENTS") == "1" {
		t.Fatalf("none of %v is on PATH", names)
	}
	t.Skipf("none of %v is on PATH", names)
	return ""
}
