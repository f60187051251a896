package sim

import "spinesim/traces"

// Recorded parses the scenario that a record carries; it is nil where the
// record carries none. path names the record in errors.
func Recorded(m *traces.Meta, path string) (*Scenario, error) {
	if m.ScenarioYAML == "" {
		return nil, nil
	}
	return load([]byte(m.ScenarioYAML), "scenario in "+path, "", nil, true)
}

// RecordSpec says how a record of the scenario is measured and what its
// validator may take for granted, as Run does with a live one.
func (sc *Scenario) RecordSpec() (traces.MeasureSpec, traces.Limits, error) {
	fw, err := sc.firmware()
	if err != nil {
		return traces.MeasureSpec{}, traces.Limits{}, &InputError{err}
	}
	card, err := sc.cardSpec(0)
	if err != nil {
		return traces.MeasureSpec{}, traces.Limits{}, &InputError{err}
	}
	s := Simulation{sc: sc}
	chain, err := sc.chainTime(&fw, card.Clock)
	if err != nil {
		return traces.MeasureSpec{}, traces.Limits{}, err
	}
	return traces.MeasureSpec{ChainHandlers: chain, BusPeriod: busPeriod(sc)}, s.limits(), nil
}

// WarmUpPackets and WindowPackets bound where RunReplay looks for windows: after
// the first ones, and among the second ones.
const (
	WarmUpPackets = replaySkip
	WindowPackets = replayLimit
)
