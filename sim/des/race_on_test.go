//go:build race

package des

// raceFactor divides the size of the largest tests under the race detector,
// which slows them about tenfold.
const raceFactor = 10
