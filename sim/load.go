package sim

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"

	"go.yaml.in/yaml/v4"

	"spinesim/lanai"
	"spinesim/pci"
	"spinesim/spine"
	"spinesim/traces"
)

//go:embed scenarios/*.yaml
var presets embed.FS

// PresetNames lists the embedded scenarios that can be run.
func PresetNames() []string {
	entries, err := presets.ReadDir("scenarios")
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if n := strings.TrimSuffix(e.Name(), ".yaml"); n != "base" {
			out = append(out, n)
		}
	}
	sort.Strings(out)
	return out
}

// PresetText is an embedded scenario as it is written, with its comments.
func PresetText(name string) (string, error) {
	b, err := presets.ReadFile("scenarios/" + name + ".yaml")
	if err != nil {
		return "", inputErrorf("scenario %q: want one of %s", name, strings.Join(PresetNames(), ", "))
	}
	return string(b), nil
}

// Load reads a scenario: the name of a preset, or a file. Settings of the form
// path=value are laid over it. A mistake is an *InputError that names file,
// line and key.
func Load(name string, settings ...string) (*Scenario, error) {
	text, file, dir, err := open(name, "")
	if err != nil {
		return nil, &InputError{err}
	}
	return load(text, file, dir, settings, false)
}

// Parse reads a scenario from text; file names it in errors, and paths in it
// are taken from the directory dir.
func Parse(text []byte, file, dir string, settings ...string) (*Scenario, error) {
	return load(text, file, dir, settings, false)
}

// load reads a scenario, or with recorded one that a record carries, which may be
// of an earlier program.
func load(text []byte, file, dir string, settings []string, recorded bool) (*Scenario, error) {
	d, err := resolve(text, file, dir, 0)
	if err != nil {
		return nil, err
	}
	if recorded {
		d.readScale()
	}
	for _, s := range settings {
		if err := d.set(s); err != nil {
			return nil, err
		}
	}
	if err := d.refuseScale(); err != nil {
		return nil, err
	}
	// What nobody wrote down has the base scenario's value.
	base, err := presets.ReadFile("scenarios/base.yaml")
	if err != nil {
		return nil, err
	}
	b, err := parseDocument(base, "base")
	if err != nil {
		return nil, err
	}
	for n, f := range d.where {
		b.where[n] = f
	}
	b.merge(b.root, d.root)
	s := &Scenario{}
	if err := b.decode(b.root, reflect.ValueOf(s).Elem(), ""); err != nil {
		return nil, err
	}
	s.Extends = ""
	s.Policy = withScheduleFile(s.Policy, func(file string) (string, error) { return beside(dir, file), nil })
	path, err := s.check()
	if err != nil {
		return nil, b.at(path, err)
	}
	return s, nil
}

// beside makes a path in a scenario file relative to that file.
func beside(dir, path string) string {
	if path == "" || dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Validate checks a scenario made by code; its error names the key.
func (s *Scenario) Validate() error {
	path, err := s.check()
	if err != nil {
		return inputErrorf("%s: %w", path, err)
	}
	return nil
}

// check returns the first problem and the key it belongs to.
func (s *Scenario) check() (string, error) {
	type problem struct {
		bad  bool
		path string
		text string
	}
	cards := func(list []int, path string) (string, error) {
		for i, c := range list {
			if c < 0 || c >= s.Cards {
				return path, fmt.Errorf("card %d, want 0 … %d", c, s.Cards-1)
			}
			if slices.Contains(list[:i], c) {
				return path, fmt.Errorf("card %d is there twice", c)
			}
		}
		return "", nil
	}
	for _, l := range []struct {
		list []int
		path string
	}{{s.Traffic.Ingress, "traffic.ingress"}, {s.Routes.Cards, "routes.cards"}} {
		if p, err := cards(l.list, l.path); err != nil {
			return p, err
		}
	}
	a := &s.Traffic.Arrivals
	for _, p := range []problem{
		{s.Cards < 1 || s.Cards > spine.MaxCards, "cards", fmt.Sprintf("%d, want 1 … %d", s.Cards, spine.MaxCards)},
		{len(s.Traffic.Ingress) == 0, "traffic.ingress", "empty, want at least one card"},
		{s.Bus.Clock.Num == 0, "bus.clock", "want a frequency above 0"},
		{s.Card.Clock != nil && s.Card.Clock.Num == 0, "card.clock", "want a frequency above 0"},
		{s.Bus.Burst < 0 || s.Bus.Burst > 0 && s.Bus.Burst < 32, "bus.burst", fmt.Sprintf("%v, want 0 B or at least 32 B", s.Bus.Burst)},
		{a.Process != "saturating" && s.Traffic.Capture == nil && !a.Rate.Set(), "traffic.arrivals.rate", "want a rate above 0"},
		{a.Senders < 1, "traffic.arrivals.senders", "want at least 1"},
		{a.Process == "bursts" && (a.On <= 0 || a.Off <= 0), "traffic.arrivals.on", "bursts need on and off, times above 0"},
		{a.Process == "jittered" && (a.Jitter <= 0 || a.Jitter > 1), "traffic.arrivals.jitter", "want a share above 0 and at most 1"},
		{s.Traffic.Packets == 0 && s.Traffic.Capture == nil, "traffic.packets", "want at least 1"},
		{s.Traffic.Sizes.Kind == "fixed" && (s.Traffic.Sizes.Bytes < 28 || s.Traffic.Sizes.Bytes > s.Firmware.MaxPacket), "traffic.sizes.bytes", fmt.Sprintf("%v, want 28 B (IP and UDP headers) … %v (firmware.max_packet)", s.Traffic.Sizes.Bytes, s.Firmware.MaxPacket)},
		{s.Traffic.Sizes.Kind == "empirical" && (len(s.Traffic.Sizes.Lengths) == 0 || len(s.Traffic.Sizes.Lengths) != len(s.Traffic.Sizes.Weights)), "traffic.sizes.lengths", fmt.Sprintf("%d lengths and %d weights, want as many of one as of the other, at least 1", len(s.Traffic.Sizes.Lengths), len(s.Traffic.Sizes.Weights))},
		{s.Traffic.Destinations.Kind == "zipf" && (s.Traffic.Destinations.Exponent <= 0 || s.Traffic.Destinations.Exponent > 8), "traffic.destinations.exponent", "want an exponent above 0, at most 8"},
		{s.Traffic.Carry < 60 || s.Traffic.Carry > 65535, "traffic.carry", fmt.Sprintf("%v, want 60 B (the longest IP header) … 65535 B", s.Traffic.Carry)},
		{s.Traffic.Capture != nil && s.Traffic.Capture.File == "", "traffic.capture.file", "want a capture"},
		{s.Traffic.Capture != nil && s.Traffic.Capture.Pace == "rate" && !a.Rate.Set(), "traffic.arrivals.rate", "want a rate above 0 for a capture paced by rate"},
		{s.Host.Return == "card" && (s.Host.Card < 0 || s.Host.Card >= s.Cards), "host.return_card", fmt.Sprintf("card %d, want 0 … %d", s.Host.Card, s.Cards-1)},
		{s.Host.Service < 0, "host.service", "want a time of 0 or more"},
		{s.Measure.Drain < 0, "measure.drain", "want a time of 0 or more"},
		{len(s.Card.Deviation) > s.Cards, "card.deviation", fmt.Sprintf("%d deviations for %d cards", len(s.Card.Deviation), s.Cards)},
	} {
		if p.bad {
			return p.path, errors.New(p.text)
		}
	}
	if p, err := s.checkExtensions(); err != nil {
		return p, err
	}
	if _, err := spine.NewPolicy(s.Policy, s.Seed, 0); err != nil {
		return "policy", err
	}
	if p, err := s.checkCycles(); err != nil {
		return p, err
	}
	fw, err := s.firmware()
	if err != nil {
		return "firmware.costs", err
	}
	if err := fw.Validate(); err != nil {
		var se *spine.SpecError
		if errors.As(err, &se) {
			if key, ok := hostKeys[se.Field]; ok {
				return key, errors.New(se.Reason)
			}
			return "firmware." + se.Field, errors.New(se.Reason)
		}
		return "firmware.costs", err
	}
	if p, err := s.checkExecution(); err != nil {
		return p, err
	}
	bus := s.busSpec()
	if err := bus.Validate(); err != nil {
		var se *pci.SpecError
		if errors.As(err, &se) {
			if key, ok := busKeys[se.Field]; ok {
				return key, errors.New(se.Reason)
			}
		}
		return "bus", err
	}
	for i := range s.Cards {
		card, err := s.cardSpec(i)
		if err != nil {
			even := *s
			even.Card.Deviation = nil
			if _, err := even.cardSpec(i); err == nil {
				return fmt.Sprintf("card.deviation[%d]", i), errors.New("no clock runs at such an offset")
			}
			return "card", err
		}
		if err := card.Validate(); err != nil {
			var se *lanai.SpecError
			if errors.As(err, &se) {
				if key, ok := cardKeys[se.Field]; ok {
					return key, errors.New(se.Reason)
				}
			}
			return "card", err
		}
	}
	return "", nil
}

// maxCycles bounds a cost: half a minute of a LANai 4 (chosen).
const maxCycles = 1_000_000_000

// checkCycles checks the costs and the names of the handlers that have one of
// their own.
func (s *Scenario) checkCycles() (string, error) {
	f := &s.Firmware
	type cost struct {
		path string
		v    int64
	}
	costs := []cost{
		{"firmware.poll", int64(f.Poll)}, {"firmware.vector", int64(f.Vector)}, {"firmware.watchdog", int64(f.Watchdog)},
	}
	for _, name := range slices.Sorted(maps.Keys(f.Costs)) {
		path := "firmware.costs." + name
		if !isHandler(name) {
			return path, fmt.Errorf("%q is not a handler, want one of %s%s", name, strings.Join(handlerNames(), ", "), nearest(name, handlerNames()))
		}
		costs = append(costs, cost{path + ".cycles", int64(f.Costs[name].Cycles)}, cost{path + ".accesses", int64(f.Costs[name].Accesses)})
	}
	for _, c := range costs {
		if c.v < 0 || c.v > maxCycles {
			return c.path, fmt.Errorf("%d, want at most %d", c.v, maxCycles)
		}
	}
	return "", nil
}

// The keys of a scenario by the fields of the specs that are made of it.
var (
	hostKeys = map[string]string{"host_credits": "host.credits", "host_service": "host.service"}
	busKeys  = map[string]string{"Clock": "bus.clock", "Width": "bus.width", "LatencyTimer": "bus.latency_timer", "BurstBytes": "bus.burst"}
	cardKeys = map[string]string{"SRAMBytes": "card.sram", "Clock": "card.clock", "Link": "card.wire", "Bus": "bus"}
)

func isHandler(name string) bool {
	e, ok := traces.EventByName(name)
	return ok && slices.Contains(spine.Handlers[:], e)
}

func handlerNames() []string {
	var out []string
	for _, h := range spine.Handlers {
		out = append(out, h.String())
	}
	return out
}

// YAML is the complete scenario as text, every value written out.
func (s *Scenario) YAML() (string, error) {
	b, err := yaml.Marshal(s)
	return string(b), err
}
