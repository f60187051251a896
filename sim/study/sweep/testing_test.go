package sweep

import (
	"encoding/json"
	"testing"

	"spinesim/sim"
)

// scenario loads a scenario with settings.
func scenario(t testing.TB, name string, settings ...string) *sim.Scenario {
	t.Helper()
	sc, err := sim.Load(name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
