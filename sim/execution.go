package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"spinesim/lanai/loader"
	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/spine/firmware"
	"spinesim/traces"
)

// executes tells whether the scenario's cards execute compiled code.
func (s *Scenario) executes() bool {
	return s.Firmware.Execution != "" && s.Firmware.Execution != string(spine.ExecuteTable)
}

// checkExecution returns the first thing that executed firmware cannot do, with
// its key.
func (s *Scenario) checkExecution() (string, error) {
	f := &s.Firmware
	how := spine.Execution(f.Execution)
	switch how {
	case "", spine.ExecuteTable:
		if len(f.Extension) > 0 {
			return "firmware.extension", fmt.Errorf("with execution: table nothing is executed; want firmware.execution: %s or %s", spine.ExecuteHandlers, spine.ExecuteFull)
		}
		return "", nil
	case spine.ExecuteHandlers, spine.ExecuteFull:
	default:
		return "firmware.execution", fmt.Errorf("%q, want %s, %s or %s", how, spine.ExecuteTable, spine.ExecuteHandlers, spine.ExecuteFull)
	}
	because := func(format string, a ...any) error {
		return fmt.Errorf("with execution: %s, "+format, append([]any{how}, a...)...)
	}
	p, err := spine.NewPolicy(s.Policy, s.Seed, 0)
	if err != nil {
		return "policy", err
	}
	if err := spine.ExecutablePolicy(p, how); err != nil {
		return "policy", because("%w", err)
	}
	switch {
	case s.Traffic.Link != "ip":
		return "traffic.link", because("%s: the firmware in C knows IP packets only", s.Traffic.Link)
	case s.Host.Return != "none":
		return "host.return", because("%s: the firmware in C takes no packets from the host", s.Host.Return)
	}
	for i := range s.Extensions {
		if k := s.Extensions[i].Kind; k != "ipv4" || i > 0 {
			return fmt.Sprintf("extensions[%d]", i), because("the router handler is compiled from C and forwards by IPv4, once, so %s cannot run; extensions in C are given as firmware.extension", k)
		}
	}
	fw, err := s.firmware()
	if err != nil {
		return "firmware.costs", err
	}
	if err := spine.Executable(&fw, p, how); err != nil {
		var se *spine.SpecError
		if errors.As(err, &se) {
			return "firmware." + se.Field, because("%s", se.Reason)
		}
		return "firmware.execution", err
	}
	return "", nil
}

// code is what executed firmware routes by.
func (s *Simulation) code() (firmware.Inputs, error) {
	spec := s.sc.ipv4()
	in := firmware.Inputs{
		Image: s.table.AppendImage(nil), OwnWire: spec.OwnWire, MTU: spec.MTU,
		BadSources: masked(spec.MartianSources), Locals: masked(spec.Local), BadTargets: masked(spec.MartianDestinations),
	}
	for _, path := range s.sc.Firmware.Extension {
		o, err := ReadObject(path)
		if err != nil {
			return in, err
		}
		in.Extension = append(in.Extension, o)
	}
	return in, nil
}

// executedCosts are what the handlers in C take, as scenario executed has it.
// Measures need to know how long a DMA chain's are when nothing interrupts them.
func executedCosts() (spine.CostTable, error) {
	sc, err := Load("executed")
	if err != nil {
		return spine.CostTable{}, err
	}
	fw, err := sc.firmware()
	return fw.Costs, err
}

// executed adds to a result what executed firmware has to tell.
func (s *Simulation) executed(r *Result) {
	if !s.sc.executes() {
		return
	}
	r.Execution = s.sc.Firmware.Execution
	var marks [traces.NumMarks]uint64
	for i := range s.router.Cards() {
		rt := s.router.Card(i)
		for j, n := range rt.Marks() {
			marks[j] += n
		}
		faults, more := rt.Faults()
		for _, f := range faults {
			r.Faults = append(r.Faults, Fault{Card: f.Card, Count: f.Count, First: f.First, PC: f.PC, Symbol: f.Symbol, Text: f.Text})
		}
		if more > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("the extension on card %d was stopped another %d times, at other places", i, more))
		}
	}
	s.stopped(r)
	if marks != [traces.NumMarks]uint64{} {
		r.Marks = marks[:]
	}
}

// maxObject bounds an object file: what no card's memory has room for.
const maxObject = 16 << 20

// ReadObject reads a compiled object. What is wrong with it is an *InputError.
func ReadObject(path string) (*loader.Object, error) {
	st, err := os.Stat(path)
	if err == nil && st.Size() > maxObject {
		err = fmt.Errorf("%s: %d bytes, want an object of at most %d", path, st.Size(), maxObject)
	}
	if err != nil {
		return nil, &InputError{err}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &InputError{err}
	}
	o, err := loader.Parse(path, b)
	if err != nil {
		return nil, &InputError{err}
	}
	return o, nil
}

func masked(ps []netip.Prefix) (out []firmware.Prefix) {
	for _, p := range ps {
		a := p.Masked().Addr().As4()
		out = append(out, firmware.Prefix{Addr: binary.BigEndian.Uint32(a[:]), Mask: uint32(^uint64(0) << (32 - p.Bits()))})
	}
	return out
}

// CardPeriod is one cycle of card 0's processor.
func CardPeriod(sc *Scenario) (des.Time, error) {
	c, err := sc.cardSpec(0)
	if err != nil || c.Clock.Num == 0 {
		return 0, inputErrorf("card: no clock")
	}
	return des.Time(float64(des.Second)/c.Clock.Hz() + 0.5), nil
}
