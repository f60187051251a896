package runs

import (
	"fmt"

	"spinesim/sim"
)

// InputErrorf is a user's mistake.
func InputErrorf(format string, args ...any) error {
	return &sim.InputError{Err: fmt.Errorf(format, args...)}
}

// With copies a scenario, so that the copy's own values can be changed.
func With(sc *sim.Scenario, change func(*sim.Scenario)) *sim.Scenario {
	c := *sc
	change(&c)
	return &c
}
