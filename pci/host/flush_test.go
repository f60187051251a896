package host

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestFlushCounts(t *testing.T) {
	p := PowerBookG3()
	for _, c := range []struct {
		offset, bytes, lines int
	}{{0, 4096, 128}, {0, 1, 1}, {31, 2, 2}, {4096 + 16, 32, 2}, {0, 0, 0}, {5, -3, 0}} {
		f := p.Flush(c.offset, c.bytes, 0.5)
		want := 0.0
		if c.lines > 0 {
			want = float64(c.lines)*(p.DcbstClocks+p.IcbiClocks+p.WriteBackClocks/2) + p.SyncClocks
		}
		if f.Lines != c.lines || f.Dcbst != c.lines || f.Icbi != c.lines || f.Clocks != want {
			t.Errorf("%d bytes at %d: %+v, want %d lines, %g clocks", c.bytes, c.offset, f, c.lines, want)
		}
	}
}

// The flags against the definition of each policy, over random histories.
func TestPageFlags(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for policy := range FlushPolicy(NumFlushPolicies) {
		const pages = 5
		flags := NewPageFlags(policy, pages)
		flushed := [pages]bool{} // since the last write or allocation
		for range 5000 {
			page := rng.IntN(pages)
			switch rng.IntN(4) {
			case 0:
				flags.Allocate(page)
				flushed[page] = false
			case 1:
				flags.Modify(page)
				flushed[page] = false
			case 2:
				want := policy == FlushEager || policy == FlushLazy && !flushed[page]
				if got := flags.Map(page); got != want {
					t.Fatalf("%v: mapping flushes %v, want %v", policy, got, want)
				}
				flushed[page] = flushed[page] || want
			case 3:
				want := policy == FlushAtExecute && !flushed[page]
				if got := flags.Execute(page); got != want {
					t.Fatalf("%v: execution flushes %v, want %v", policy, got, want)
				}
				flushed[page] = flushed[page] || want
			}
		}
	}
}

func TestWorkloadPolicies(t *testing.T) {
	w := FlushWorkload{FilePages: 50, FileMaps: 5000, CopyMaps: 300, ZeroMaps: 200, ExecutedShare: 0.5, Seed: 3}
	for policy, want := range map[FlushPolicy]FlushTally{
		FlushNever: {},
		FlushEager: {File: 5000, Copied: 300, Zeroed: 200, Flushes: 5500},
		FlushLazy:  {File: 50, Copied: 300, Zeroed: 200, Flushes: 550}, // each file page once
	} {
		want.Policy, want.Maps = policy, 5500
		if got, err := w.Run(policy); err != nil || got != want {
			t.Errorf("%v: %+v, error %v, want %+v", policy, got, err, want)
		}
	}
	got, err := w.Run(FlushAtExecute)
	if err != nil {
		t.Fatal(err)
	}
	if share := float64(got.Copied+got.Zeroed) / 500; got.File != 50 || math.Abs(share-0.5) > 0.1 {
		t.Errorf("at execute: %+v", got)
	}
	w.Steady = true
	if got, err := w.Run(FlushLazy); err != nil || got.File != 0 {
		t.Errorf("steady: %+v, error %v", got, err)
	}
	for _, c := range []struct {
		w    FlushWorkload
		want string
	}{
		{FlushWorkload{CopyMaps: -1}, "flush workload: -1 copied pages, want 0 to 10000000"},
		{FlushWorkload{FileMaps: 1}, "flush workload: 1 file mappings of no file pages"},
		{FlushWorkload{ExecutedShare: math.NaN()}, "flush workload: executed share is NaN, want 0 to 1"},
	} {
		if _, err := c.w.Run(FlushLazy); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}

func TestChecks(t *testing.T) {
	checks, err := Checks()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[Verdict]int{}
	for _, c := range checks {
		seen[c.Verdict]++
		if c.Source == "" || c.Meaning == "" || (c.Value == nil) != (c.Verdict == NotModelled) {
			t.Errorf("%+v", c)
		}
		if c.Verdict == Calibrated {
			if want := c.After / c.Before; math.Abs(*c.Value-want) > 0.002 {
				t.Errorf("%s: ratio %.4f, published %.4f", c.Subject, *c.Value, want)
			}
		}
		if strings.Contains(c.Subject, "once the cache is warm") && *c.Value != 0 {
			t.Errorf("%s: %g", c.Subject, *c.Value)
		}
		if strings.Contains(c.Subject, "while the cache fills") && *c.Value != 1 {
			t.Errorf("%s: %g", c.Subject, *c.Value)
		}
	}
	if seen[Calibrated] != 2 || seen[Follows] != 2 || seen[Implied] == 0 || seen[NotModelled] == 0 {
		t.Errorf("verdicts: %v", seen)
	}
}

func TestProcessorErrors(t *testing.T) {
	for _, p := range Processors() {
		if err := p.Validate(); err != nil || p.Source == "" {
			t.Errorf("%s: %v", p.Name, err)
		}
		if q, err := ProcessorByName(p.Name); err != nil || q != p {
			t.Errorf("%s by name: %+v, %v", p.Name, q, err)
		}
	}
	if _, err := ProcessorByName("8080"); err == nil {
		t.Error("an unknown processor: no error")
	}
	for _, c := range []struct {
		change func(*Processor)
		want   string
	}{
		{func(p *Processor) { p.Name = "" }, "processor without a name"},
		{func(p *Processor) { p.ClockMHz = 0 }, `processor "powerbook-g3": clock is 0 MHz, want above 0 to 1e5`},
		{func(p *Processor) { p.WordBytes = 3 }, `processor "powerbook-g3": word is 3 bytes, want 4 or 8`},
		{func(p *Processor) { p.LineBytes = 33 }, `processor "powerbook-g3": cache line is 33 bytes, want a power of two from 8 to 4096`},
		{func(p *Processor) { p.PageBytes = 5000 }, `processor "powerbook-g3": page is 5000 bytes, want a power of two from 64 to 1048576`},
		{func(p *Processor) { p.IcbiClocks = -1 }, `processor "powerbook-g3": icbi cost is -1, want 0 to 1e6`},
		{func(p *Processor) { p.CPI = math.NaN() }, `processor "powerbook-g3": CPI cost is NaN, want 0 to 1e6`},
		{func(p *Processor) { p.Banks = 0 }, `processor "powerbook-g3": 0 banks with blocks of 1 lines, want 1 to 64 each`},
	} {
		p := PowerBookG3()
		c.change(&p)
		if err := p.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
