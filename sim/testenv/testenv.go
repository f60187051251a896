// Package testenv says how much a run of the tests does.
//
// By default the tests are small, of fixed seeds, and need nothing but Go, so
// that they are run after every change. Two variables of the environment ask
// for more, and a complete check sets both:
//
//   - SPINESIM_LONG=1 takes the big numbers: more machines at random, longer
//     runs, streams that have to fit into a bounded memory, timed ones.
//   - SPINESIM_REQUIRE_CLIENTS=1 compares with outside programs (tshark,
//     vcd2fst, protoc, Chromium, clang and LLVM's tools), which then have to be
//     on PATH: one that is missing is a failure.
//
// It is a package of its own, and not below an internal directory, because the
// tests of every room import it and the rooms have no common parent but the
// module. The program does not.
package testenv

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Long tells whether the big numbers are asked for.
func Long() bool { return os.Getenv("SPINESIM_LONG") == "1" }

// Clients tells whether outside programs are asked for.
func Clients() bool { return os.Getenv("SPINESIM_REQUIRE_CLIENTS") == "1" }

// Size is how many of something a test takes: small by default, long where the
// big numbers are asked for.
func Size(small, long int) int {
	if Long() {
		return long
	}
	return small
}

// NeedLong leaves a test to the long run that only a big number can fail, or
// that measures time.
func NeedLong(tb testing.TB) {
	tb.Helper()
	if !Long() {
		tb.Skip("runs with SPINESIM_LONG=1")
	}
}

// Client is the path of an outside program, by the first of its names that is
// on PATH. The test is left to runs that ask for outside programs, and fails in
// those where there is none.
func Client(tb testing.TB, names ...string) string {
	tb.Helper()
	if !Clients() {
		tb.Skipf("%s runs with SPINESIM_REQUIRE_CLIENTS=1", names[0])
	}
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p
		}
	}
	tb.Fatalf("%s is not on PATH", strings.Join(names, " or "))
	return ""
}
