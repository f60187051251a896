// Package traces is the record of what happened in a simulation.
package traces
