// Package runs is what the studies share to carry out many runs: spreading them
// over the processors without letting the schedule show in a result, telling
// how far the work is, and copying a scenario before it is changed.
package runs
