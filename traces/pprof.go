package traces

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/google/pprof/profile"

	"spinesim/sim/des"
)

// PprofWriter sums up where the processors' cycles went, as a profile for
// `go tool pprof`. A stack reads, from the root: card, queue, handler, step of
// the packet's way. Polls stand under their card as "polls" and what the run
// ended with; cycles lost to the memory bus are a frame "stall" below the
// handler or polls that lost them. Sample types are cycles (the default) and
// count, the number of runs of a handler or of polls.
//
// A run of polls is counted once, whether its polls are also there one by one
// or not. Transfers use no processor and are not in it. The memory it takes
// grows with the number of different stacks only, of which there are at most a
// few thousand.
type PprofWriter struct {
	w      io.Writer
	meta   *Meta
	stacks map[pprofStack]*pprofSum
	from   des.Time
	to     des.Time
	n      uint64
}

type pprofStack struct {
	card, queue uint8
	event       Event
	polls       bool
}

type pprofSum struct{ count, cycles, stall int64 }

// NewPprofWriter begins a profile, to be written to w at Close.
func NewPprofWriter(w io.Writer, meta *Meta) (*PprofWriter, error) {
	if _, err := meta.encode(); err != nil {
		return nil, err
	}
	return &PprofWriter{w: w, meta: meta.clone(), stacks: map[pprofStack]*pprofSum{}}, nil
}

// Record takes r into account; it never fails.
func (p *PprofWriter) Record(r *Record) error {
	if p.n == 0 || r.Start < p.from {
		p.from = r.Start
	}
	if p.n == 0 || r.End > p.to {
		p.to = r.End
	}
	p.n++
	k := pprofStack{card: r.Card, queue: r.Queue, event: r.Event}
	count := int64(1)
	switch r.Kind {
	case KindBox:
	case KindPolls:
		k.polls, k.event = true, NoEvent
		count = int64(r.Count)
	default:
		return nil
	}
	s := p.stacks[k]
	if s == nil {
		s = new(pprofSum)
		p.stacks[k] = s
	}
	s.count += count
	s.cycles += int64(r.Cycles)
	s.stall += int64(r.Stall)
	return nil
}

// queueNames says what the queues of the published dispatcher are for.
var queueNames = [...]string{"Q0 self", "Q1 wire", "Q2 host", "Q3 peer 0", "Q4 peer 1", "Q5 peer 2", "Q6 dma"}

func queueName(q uint8) string {
	if int(q) < len(queueNames) {
		return queueNames[q]
	}
	if q == NoQueue {
		return "no queue"
	}
	return "Q" + strconv.Itoa(int(q))
}

// Close writes the profile; it does not close w.
func (p *PprofWriter) Close() error {
	keys := make([]pprofStack, 0, len(p.stacks))
	for k := range p.stacks {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b pprofStack) int {
		order := func(k pprofStack) int {
			n := int(k.card)<<24 | int(k.queue)<<8 | int(k.event)
			if k.polls {
				n |= 1 << 16
			}
			return n
		}
		return order(a) - order(b)
	})
	prof := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "cycles", Unit: "cycles"}, {Type: "count", Unit: "count"}},
		DefaultSampleType: "cycles",
		PeriodType:        &profile.ValueType{Type: "cycles", Unit: "cycles"},
		Period:            1,
		DurationNanos:     nanos(p.to) - nanos(p.from),
		Comments:          p.comments(),
	}
	b := pprofBuilder{prof: prof, locations: map[string]*profile.Location{}}
	for _, k := range keys {
		s := p.stacks[k]
		card := p.meta.CardName(k.card)
		var stack []string // from the root
		if k.polls {
			found := "no hit"
			if k.queue != NoQueue {
				found = "hit " + queueName(k.queue)
			}
			stack = []string{card, "polls", found}
		} else {
			stack = []string{card, queueName(k.queue), k.event.String(), k.event.Step().String()}
		}
		b.sample(stack, s.cycles, s.count)
		if s.stall != 0 {
			b.sample(append(stack[:len(stack):len(stack)], "stall"), s.stall, 0)
		}
	}
	if err := prof.CheckValid(); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return prof.Write(p.w)
}

func (p *PprofWriter) comments() []string {
	var c []string
	add := func(name, value string) {
		if value != "" {
			c = append(c, name+": "+value)
		}
	}
	add("program", p.meta.Program)
	add("scenario", p.meta.Scenario)
	add("scenario hash", p.meta.ScenarioHash)
	add("run", p.meta.RunID)
	add("seed", strconv.FormatUint(p.meta.Seed, 10))
	return c
}

type pprofBuilder struct {
	prof      *profile.Profile
	locations map[string]*profile.Location
}

func (b *pprofBuilder) location(name string) *profile.Location {
	l := b.locations[name]
	if l == nil {
		f := &profile.Function{ID: uint64(len(b.prof.Function) + 1), Name: name, SystemName: name}
		l = &profile.Location{ID: f.ID, Line: []profile.Line{{Function: f}}}
		b.prof.Function = append(b.prof.Function, f)
		b.prof.Location = append(b.prof.Location, l)
		b.locations[name] = l
	}
	return l
}

// sample adds a stack given from the root; the format wants the leaf first.
func (b *pprofBuilder) sample(stack []string, cycles, count int64) {
	s := &profile.Sample{Value: []int64{cycles, count}}
	for _, name := range slices.Backward(stack) {
		s.Location = append(s.Location, b.location(name))
	}
	b.prof.Sample = append(b.prof.Sample, s)
}
