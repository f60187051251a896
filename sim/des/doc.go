// Package des is the discrete-event kernel: time in whole picoseconds, clocks
// of rational frequency, and an engine that runs events in a total order.
package des
