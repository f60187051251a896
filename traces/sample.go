package traces

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/google/pprof/profile"

	"spinesim/sim/des"
)

// ErrSampling reports a sampling that cannot be.
var ErrSampling = errors.New("bad sampling")

// Sampling describes a sampling profiler: a timer's interrupt looks at what each
// processor runs and adds one to that routine's bucket, as kernels do.
type Sampling struct {
	// Period of the timer, 1 ns to an hour, and the time of its first tick,
	// from 0 on. A longer one disturbs less and knows less.
	Period, First des.Time
	// Jitter spreads each period evenly by this share of it either way, 0 to 1,
	// so that a load that repeats cannot keep step with the timer. Seed draws
	// it.
	Jitter float64
	Seed   uint64
	// Masked handlers run with interrupts off: a tick waits until the first
	// moment of what runs next, and is counted there; further ticks meanwhile
	// are lost. Polls are never masked.
	Masked []Event
}

// Validate tells what is wrong with s; the error wraps ErrSampling.
func (s Sampling) Validate() error {
	switch {
	case s.Period < des.Nanosecond || s.Period > 3600*des.Second:
		return fmt.Errorf("%w: period %v, want 1 ns to 1 hour", ErrSampling, s.Period)
	case s.First < 0:
		return fmt.Errorf("%w: first tick at %v, want 0 or later", ErrSampling, s.First)
	case !(s.Jitter >= 0 && s.Jitter <= 1):
		return fmt.Errorf("%w: jitter %g, want 0 to 1", ErrSampling, s.Jitter)
	}
	for _, e := range s.Masked {
		if !isHandler(e) {
			return fmt.Errorf("%w: %v is not a handler", ErrSampling, e)
		}
	}
	return nil
}

// Sampler is a Sink that samples what each card's processor runs. Beside the
// samples it keeps the exact times, from the same record, so that Report can
// tell what sampling got wrong. Record does not allocate once every card has
// been seen.
type Sampler struct {
	spec   Sampling
	masked [NumEvents + 1]bool
	cards  [256]*sampledCard
	from   des.Time
	to     des.Time
	seen   bool
}

// sampledCard is one card's histogram. Each card's timer ticks at the same
// times.
type sampledCard struct {
	at      des.Time // end of what was looked at last
	next    des.Time // the next tick
	random  uint64
	pending bool // a tick waits for interrupts to be let in again

	buckets [NumEvents + 1]sampleBucket // by handler; sampledPolls is polling, NoEvent nothing
	lost    uint64
}

type sampleBucket struct {
	queue   uint8 // where it was found last
	samples uint64
	time    des.Time
}

// sampledPolls is the bucket of polls: no handler has this number.
const sampledPolls = PollQ0

// NewSampler makes one that has seen nothing.
func NewSampler(s Sampling) (*Sampler, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p := &Sampler{spec: s}
	for _, e := range s.Masked {
		p.masked[e] = true
	}
	return p, nil
}

// Record takes a handler's run or a run of polls into account; it never fails.
func (p *Sampler) Record(r *Record) error {
	b := sampledPolls
	switch {
	case r.Kind == KindPolls:
	case r.Kind == KindBox && isHandler(r.Event):
		b = r.Event
	default:
		return nil
	}
	c := p.cards[r.Card]
	if c == nil {
		c = &sampledCard{at: r.Start, next: p.spec.First, random: p.spec.Seed}
		p.cards[r.Card] = c
		for c.next < r.Start {
			if p.spec.Jitter == 0 {
				c.next += (r.Start - c.next + p.spec.Period - 1) / p.spec.Period * p.spec.Period
				break
			}
			c.next += p.step(c)
		}
	}
	if !p.seen || r.Start < p.from {
		p.from, p.seen = r.Start, true
	}
	p.to = max(p.to, r.End)
	if r.Start > c.at {
		p.span(c, NoEvent, NoQueue, c.at, r.Start)
	}
	p.span(c, b, r.Queue, max(r.Start, c.at), r.End)
	return nil
}

// span is a stretch of time in which one thing runs.
func (p *Sampler) span(c *sampledCard, b Event, queue uint8, from, to des.Time) {
	if to <= from {
		return
	}
	c.at = to
	k := &c.buckets[b]
	k.time += to - from
	k.queue = queue
	masked := b != NoEvent && p.masked[b]
	if c.pending && !masked {
		k.samples++
		c.pending = false
	}
	n := uint64(0)
	if p.spec.Jitter == 0 {
		if c.next < to {
			n = uint64((to-c.next-1)/p.spec.Period) + 1
			c.next += des.Time(n) * p.spec.Period
		}
	} else {
		for c.next < to {
			n++
			c.next += p.step(c)
		}
	}
	switch {
	case n == 0:
	case !masked:
		k.samples += n
	default:
		if c.pending {
			n++
		}
		c.pending = true
		c.lost += n - 1
	}
}

// step draws the time to the next tick.
func (p *Sampler) step(c *sampledCard) des.Time {
	c.random += 0x9E3779B97F4A7C15
	x := c.random
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	x ^= x >> 31
	u := float64(x>>11)/(1<<53)*2 - 1
	return max(1, p.spec.Period+des.Time(u*p.spec.Jitter*float64(p.spec.Period)))
}

// SampleRow is one routine of one card.
type SampleRow struct {
	Card    uint8  `json:"card"`
	Routine string `json:"routine"` // the handler's name, "polls" or "idle"
	Samples uint64 `json:"samples"`
	// Sampled is its share of the card's samples, Exact its share of the time.
	Sampled Real `json:"sampled_share"`
	Exact   Real `json:"exact_share"`
	// Error is sampled minus exact; Expected the standard deviation that it
	// would have if each sample fell at random: √(p(1−p)/n). Errors of many
	// times that come from a load in step with the timer, or from what cannot
	// be interrupted.
	Error    Real `json:"error"`
	Expected Real `json:"expected_error"`
	Masked   bool `json:"masked,omitempty"`
}

// SampleReport sets the samples beside the exact times.
type SampleReport struct {
	Period  des.Time `json:"period"`
	Samples uint64   `json:"samples"`
	// Lost ticks fell while an earlier one was still waiting for interrupts.
	Lost uint64      `json:"lost"`
	Rows []SampleRow `json:"rows"`
	// Worst is the largest error, Sigmas how many of its expected errors it is,
	// over rows with at least one sample or some time.
	Worst   Real   `json:"worst_error"`
	WorstOf string `json:"worst_of"`
	Sigmas  Real   `json:"worst_sigmas"`
}

// Report compares samples and exact times, by card and routine.
func (p *Sampler) Report() *SampleReport {
	r := &SampleReport{Period: p.spec.Period}
	for n, c := range p.cards {
		if c == nil {
			continue
		}
		r.Lost += c.lost
		var samples uint64
		var total des.Time
		for i := range c.buckets {
			samples += c.buckets[i].samples
			total += c.buckets[i].time
		}
		r.Samples += samples
		for i := range c.buckets {
			k := &c.buckets[i]
			if k.time == 0 && k.samples == 0 {
				continue
			}
			row := SampleRow{Card: uint8(n), Routine: routine(Event(i)), Samples: k.samples, Masked: Event(i) != NoEvent && p.masked[i]}
			exact := float64(k.time) / float64(total)
			row.Exact = Real(exact)
			row.Sampled, row.Error, row.Expected = Real(math.NaN()), Real(math.NaN()), Real(math.NaN())
			if samples > 0 {
				sampled := float64(k.samples) / float64(samples)
				row.Sampled, row.Error = Real(sampled), Real(sampled-exact)
				row.Expected = Real(math.Sqrt(exact * (1 - exact) / float64(samples)))
				if math.Abs(sampled-exact) > math.Abs(float64(r.Worst)) {
					r.Worst, r.WorstOf = row.Error, fmt.Sprintf("%s on card %d", row.Routine, n)
					r.Sigmas = row.Error / max(row.Expected, Real(1e-12))
				}
			}
			r.Rows = append(r.Rows, row)
		}
	}
	return r
}

func routine(e Event) string {
	switch e {
	case sampledPolls:
		return "polls"
	case NoEvent:
		return "idle"
	}
	return e.String()
}

// WriteText writes the report for people.
func (r *SampleReport) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "sampled every %v: %d samples, %d lost; the largest error is %+.2f %% (%s), %.1f times what chance gives\n",
		r.Period, r.Samples, r.Lost, 100*float64(r.Worst), r.WorstOf, math.Abs(float64(r.Sigmas)))
	fmt.Fprintln(w, "card\troutine\tsamples\tsampled\texact\terror\texpected\t")
	for _, x := range r.Rows {
		note := ""
		if x.Masked {
			note = "masked"
		}
		fmt.Fprintf(w, "%d\t%s\t%d\t%.2f %%\t%.2f %%\t%+.2f %%\t± %.2f %%\t%s\n", x.Card, x.Routine, x.Samples,
			100*float64(x.Sampled), 100*float64(x.Exact), 100*float64(x.Error), 100*float64(x.Expected), note)
	}
	return w.Flush()
}

// WriteProfile writes the histogram as a profile for `go tool pprof`: samples
// (the default) and the time that they stand for. A stack reads, from the root:
// card, queue, handler, step of the packet's way, as in PprofWriter's exact
// profile; a handler that is found in several queues stands under the last.
func (p *Sampler) WriteProfile(w io.Writer, meta *Meta) error {
	if _, err := meta.encode(); err != nil {
		return err
	}
	prof := &profile.Profile{
		SampleType:        []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "time", Unit: "nanoseconds"}},
		DefaultSampleType: "samples",
		PeriodType:        &profile.ValueType{Type: "time", Unit: "nanoseconds"},
		Period:            nanos(p.spec.Period),
		DurationNanos:     nanos(p.to) - nanos(p.from),
		Comments:          append((&PprofWriter{meta: meta}).comments(), "sampled every: "+p.spec.Period.String()),
	}
	if p.spec.Jitter > 0 {
		prof.Comments = append(prof.Comments, "jitter: "+strconv.FormatFloat(p.spec.Jitter, 'g', -1, 64))
	}
	b := pprofBuilder{prof: prof, locations: map[string]*profile.Location{}}
	for n, c := range p.cards {
		if c == nil {
			continue
		}
		card := meta.CardName(uint8(n))
		for i := range c.buckets {
			k := &c.buckets[i]
			if k.samples == 0 {
				continue
			}
			stack := []string{card, routine(Event(i))}
			if e := Event(i); isHandler(e) {
				stack = []string{card, queueName(k.queue), e.String(), e.Step().String()}
			}
			time := nanos(p.spec.Period)
			if time > 0 && k.samples < math.MaxInt64/uint64(time) {
				time *= int64(k.samples)
			} else {
				time = math.MaxInt64
			}
			b.sample(stack, int64(min(k.samples, math.MaxInt64)), time)
		}
	}
	if err := prof.CheckValid(); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return prof.Write(w)
}

// Masks makes a list of handlers by their published names, for Sampling.Masked;
// "all" is every handler.
func Masks(names []string) ([]Event, error) {
	var out []Event
	for _, name := range names {
		if name == "all" {
			for e := FreeBuffer; e <= FromHost; e++ {
				out = append(out, e)
			}
			continue
		}
		e, ok := EventByName(name)
		if !ok || !isHandler(e) {
			return nil, fmt.Errorf("%w: %q is not a handler", ErrSampling, name)
		}
		out = append(out, e)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
