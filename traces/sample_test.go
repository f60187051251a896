package traces

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"spinesim/sim/des"
)

// periodic is a card that runs one handler for a tenth of each period and polls
// for the rest.
func periodic(period des.Time, n int) []Record {
	var out []Record
	for i := range n {
		at := des.Time(i) * period
		out = append(out,
			Record{Kind: KindBox, Event: RouterIn, Start: at, End: at + period/10},
			Record{Kind: KindPolls, Event: NoEvent, Queue: qWire, Count: 5, Start: at + period/10, End: at + period})
	}
	return out
}

// qWire is the queue that the polls of these records found something in.
const qWire = 1

func sampled(t *testing.T, s Sampling, records []Record) (*Sampler, map[string]SampleRow) {
	t.Helper()
	p, err := NewSampler(s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		if err := p.Record(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	rows := map[string]SampleRow{}
	for _, r := range p.Report().Rows {
		rows[r.Routine] = r
	}
	return p, rows
}

// TestSamplingAliases: a timer in step with the load sees one moment of it over
// and over; one out of step, or jittered, sees the shares.
func TestSamplingAliases(t *testing.T) {
	ms := des.Millisecond
	load := periodic(ms, 20000)
	for _, c := range []struct {
		name      string
		s         Sampling
		low, high float64 // sampled share of the handler, whose exact share is 0.1
	}{
		{"in step, during the handler", Sampling{Period: ms, First: 50 * des.Microsecond}, 1, 1},
		{"in step, while polling", Sampling{Period: ms, First: 500 * des.Microsecond}, 0, 0},
		{"a multiple of the load's period", Sampling{Period: 7 * ms, First: 50 * des.Microsecond}, 1, 1},
		{"a fifth of it: one of five", Sampling{Period: ms / 5, First: 50 * des.Microsecond}, 0.2, 0.2},
		{"out of step", Sampling{Period: 1037 * des.Microsecond}, 0.095, 0.105},
		{"jittered", Sampling{Period: ms, First: 50 * des.Microsecond, Jitter: 1, Seed: 7}, 0.09, 0.11},
	} {
		p, rows := sampled(t, c.s, load)
		r := rows["Router In handler"]
		if got := float64(r.Sampled); got < c.low-1e-9 || got > c.high+1e-9 || math.Abs(float64(r.Exact)-0.1) > 1e-9 {
			t.Errorf("%s: sampled %g, exact %g, want %g to %g and 0.1", c.name, got, float64(r.Exact), c.low, c.high)
		}
		// The report tells aliasing from chance.
		if aliased := c.high != 0.105 && c.high != 0.11; aliased != (math.Abs(float64(p.Report().Sigmas)) > 5) {
			t.Errorf("%s: the worst error is %.1f times what chance gives", c.name, float64(p.Report().Sigmas))
		}
	}
}

// TestSamplingIsBlind: what runs with interrupts off is never seen, and what
// follows it is blamed.
func TestSamplingIsBlind(t *testing.T) {
	var load []Record
	at := des.Time(0)
	us := des.Microsecond
	for range 30000 {
		load = append(load,
			Record{Kind: KindBox, Event: DMAStartBody, Start: at, End: at + 30*us},
			Record{Kind: KindBox, Event: FreeBuffer, Start: at + 30*us, End: at + 40*us},
			Record{Kind: KindPolls, Event: NoEvent, Queue: NoQueue, Count: 5, Start: at + 40*us, End: at + 100*us})
		at += 100 * us
	}
	s := Sampling{Period: 103 * us, Masked: []Event{DMAStartBody}}
	_, rows := sampled(t, s, load)
	masked, next, polls := rows["DMA start body"], rows["Free buffer"], rows["polls"]
	if masked.Samples != 0 || !masked.Masked || math.Abs(float64(masked.Exact)-0.3) > 1e-9 {
		t.Errorf("the masked handler: %+v", masked)
	}
	if math.Abs(float64(next.Sampled)-0.4) > 0.01 || math.Abs(float64(polls.Sampled)-0.6) > 0.01 {
		t.Errorf("sampled %g for what follows (its own 0.1 and the 0.3 before it), %g for polls", float64(next.Sampled), float64(polls.Sampled))
	}
	// Ticks that come faster than interrupts are let in are lost.
	p, rows := sampled(t, Sampling{Period: 5 * us, Masked: []Event{DMAStartBody}}, load)
	if lost := p.Report().Lost; lost < 5*29000 || lost > 5*31000 {
		t.Errorf("%d ticks lost, want about 5 of 6 in each masked run", lost)
	}
	if got := float64(rows["Free buffer"].Sampled); math.Abs(got-3.0/15) > 0.01 {
		t.Errorf("what follows has %g of the samples, want 3 of 15", got)
	}
}

// slowSampler looks at every tick, one after the other, in a list of spans.
func slowSampler(s Sampling, load []Record, events []Event) map[Event]uint64 {
	masked := map[Event]bool{}
	for _, e := range events {
		masked[e] = true
	}
	out := map[Event]uint64{}
	running := func(t des.Time) (int, bool) {
		for i := range load {
			if load[i].Start <= t && t < load[i].End {
				return i, true
			}
		}
		return 0, false
	}
	name := func(r *Record) Event {
		if r.Kind == KindPolls {
			return sampledPolls
		}
		return r.Event
	}
	end := load[len(load)-1].End
	waiting := -1
	for tick := s.First; tick < end; tick += s.Period {
		i, ok := running(tick)
		if !ok {
			continue
		}
		if e := name(&load[i]); !masked[e] {
			out[e]++
			continue
		}
		// Wait for the first span that is not masked.
		j := i
		for j < len(load) && masked[name(&load[j])] {
			j++
		}
		if j < len(load) && j != waiting {
			out[name(&load[j])]++
			waiting = j
		}
	}
	return out
}

func TestSamplerAgainstTicks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	handlers := []Event{FreeBuffer, RouterIn, DMAStartBody, AckSend}
	for round := range 60 {
		var load []Record
		at := des.Time(r.Uint64N(1000))
		for range 60 {
			d := des.Time(1 + r.Uint64N(5000))
			rec := Record{Kind: KindBox, Event: handlers[r.IntN(4)], Start: at, End: at + d}
			if r.IntN(3) == 0 {
				rec.Kind, rec.Event = KindPolls, NoEvent
			}
			load = append(load, rec)
			at += d
		}
		s := Sampling{Period: des.Time(1000 + r.Uint64N(20000)), First: load[0].Start + des.Time(r.Uint64N(3000))}
		if round%2 == 0 {
			s.Masked = handlers[:2]
		}
		p, err := NewSampler(s)
		if err != nil {
			t.Fatal(err)
		}
		for i := range load {
			_ = p.Record(&load[i])
		}
		want := slowSampler(s, load, s.Masked)
		for e := range p.cards[0].buckets {
			if got := p.cards[0].buckets[e].samples; got != want[Event(e)] {
				t.Fatalf("round %d, %v: %d samples, tick by tick %d", round, Event(e), got, want[Event(e)])
			}
		}
	}
}

func TestSampleProfile(t *testing.T) {
	p, _ := sampled(t, Sampling{Period: 103 * des.Microsecond}, periodic(des.Millisecond, 1000))
	var b bytes.Buffer
	if err := p.WriteProfile(&b, &Meta{Program: "test", Cards: []CardMeta{{Name: "card 0"}}}); err != nil {
		t.Fatal(err)
	}
	prof, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	total, router := int64(0), int64(0)
	for _, s := range prof.Sample {
		total += s.Value[0]
		if s.Value[1] != s.Value[0]*103000 {
			t.Errorf("%d samples of 103 µs stand for %d ns", s.Value[0], s.Value[1])
		}
		for _, l := range s.Location {
			if l.Line[0].Function.Name == "Router In handler" {
				router += s.Value[0]
			}
		}
	}
	if want := int64(1000*1000/103 + 1); total != want || router < total/11 || router > total/9 {
		t.Errorf("%d samples, %d of the router handler, want %d and a tenth", total, router, want)
	}
	var text bytes.Buffer
	if err := p.Report().WriteText(&text); err != nil || !strings.Contains(text.String(), "Router In handler") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestBadSampling(t *testing.T) {
	for name, s := range map[string]Sampling{
		"period":  {},
		"long":    {Period: 2 * 3600 * des.Second},
		"first":   {Period: des.Millisecond, First: -1},
		"jitter":  {Period: des.Millisecond, Jitter: 1.5},
		"nan":     {Period: des.Millisecond, Jitter: math.NaN()},
		"masking": {Period: des.Millisecond, Masked: []Event{PollQ0}},
	} {
		if _, err := NewSampler(s); !errors.Is(err, ErrSampling) {
			t.Errorf("%s: %v, want %v", name, err, ErrSampling)
		}
	}
	if e, err := Masks([]string{"all", "Free buffer"}); err != nil || len(e) != 17 {
		t.Errorf("all handlers: %v, %v", e, err)
	}
	if _, err := Masks([]string{"Poll Q0"}); !errors.Is(err, ErrSampling) {
		t.Errorf("a poll: %v", err)
	}
}

func TestSamplerAllocatesNothing(t *testing.T) {
	load := periodic(des.Millisecond, 10)
	for _, jitter := range []float64{0, 0.5} {
		p, err := NewSampler(Sampling{Period: 100 * des.Microsecond, Jitter: jitter})
		if err != nil {
			t.Fatal(err)
		}
		_ = p.Record(&load[0])
		shift := des.Time(0)
		if n := testing.AllocsPerRun(100, func() {
			shift += 10 * des.Millisecond
			for _, r := range load {
				r.Start += shift
				r.End += shift
				_ = p.Record(&r)
			}
		}); n != 0 {
			t.Errorf("jitter %g: %g allocations", jitter, n)
		}
	}
}
