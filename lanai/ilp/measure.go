package ilp

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"time"
)

// MeasureOptions steer Measure. The zero value takes every default.
type MeasureOptions struct {
	// CacheBytes is the working set that fits the first-level cache, MemoryBytes
	// the one that is meant to fit no cache. Multiples of 8, 1 KiB to 1 GiB; 0
	// takes 16 KiB and 64 MiB.
	CacheBytes, MemoryBytes int

	// Rounds is how often each loop is timed; the least time counts, because
	// disturbance only ever adds. 1 to 1000; 0 takes 7.
	Rounds int

	// SampleTime is how long one timing lasts at least, so that the clock's
	// grain does not matter. 0 takes 1 ms.
	SampleTime time.Duration

	// ClockMHz turns times into clocks; 0 asks the operating system, and where
	// that does not know, 1000 is assumed, so that clocks read as nanoseconds.
	ClockMHz float64

	// Progress, where not nil, is called before each round.
	Progress func(round, rounds int)
}

func (o MeasureOptions) withDefaults() MeasureOptions {
	if o.CacheBytes == 0 {
		o.CacheBytes = 16 << 10
	}
	if o.MemoryBytes == 0 {
		o.MemoryBytes = 64 << 20
	}
	if o.Rounds == 0 {
		o.Rounds = 7
	}
	if o.SampleTime == 0 {
		o.SampleTime = time.Millisecond
	}
	return o
}

func (o MeasureOptions) validate() error {
	for _, c := range []struct {
		what string
		n    int
	}{{"cache working set", o.CacheBytes}, {"memory working set", o.MemoryBytes}} {
		if c.n < 1<<10 || c.n > 1<<30 || c.n%8 != 0 {
			return fmt.Errorf("measure: %s is %d bytes, want a multiple of 8 from 1 KiB to 1 GiB", c.what, c.n)
		}
	}
	switch {
	case o.MemoryBytes <= o.CacheBytes:
		return fmt.Errorf("measure: memory working set of %d bytes is not larger than the cache working set of %d", o.MemoryBytes, o.CacheBytes)
	case o.Rounds < 1 || o.Rounds > 1000:
		return fmt.Errorf("measure: %d rounds, want 1 to 1000", o.Rounds)
	case o.SampleTime < 0 || o.SampleTime > time.Minute:
		return fmt.Errorf("measure: sample time %v, want up to a minute", o.SampleTime)
	case math.IsNaN(o.ClockMHz) || o.ClockMHz < 0 || o.ClockMHz > 1e6:
		return fmt.Errorf("measure: clock is %g MHz, want 0 to 1e6", o.ClockMHz)
	}
	return nil
}

// timedLoop is one loop to time.
type timedLoop struct {
	name      string
	functions []Function
	mode      Mode
	fit       bool // used to find the parameters; else predicted
	tables    bool // looks up tables, which the model leaves out
	run       func(p []byte)
}

// timedLoops lists every loop. Parameters are found from the single real
// functions and from the synthetic chains with an odd number of state words;
// everything else is predicted: the real chains in both modes, and the synthetic
// chains with an even number. A table-driven CRC waits for its own look-ups, which
// the model does not know, so it takes no part in the fit.
func timedLoops() []timedLoop {
	var sum uint64
	var crc uint32
	bswap, pes, cksum, crc32 := BSWAP(), PES(), CKSUM(), CRC32()
	loops := []timedLoop{
		{"bswap", []Function{bswap}, Sequential, true, false, swapLoop},
		{"pes", []Function{pes}, Sequential, true, false, encryptLoop},
		{"cksum", []Function{cksum}, Sequential, true, false, func(p []byte) { sum = sumLoop(p, sum) }},
		{"crc32", []Function{crc32}, Sequential, false, true, func(p []byte) { crc = crcLoop(p, crc) }},
	}
	pair := func(name string, fs []Function, sequential, integrated func(p []byte)) {
		tables := slices.Contains(fs, crc32)
		loops = append(loops,
			timedLoop{name, fs, Sequential, false, tables, sequential},
			timedLoop{name, fs, Integrated, false, tables, integrated})
	}
	pair("bswap → pes", []Function{bswap, pes},
		func(p []byte) { swapLoop(p); encryptLoop(p) }, swapEncryptLoop)
	pair("bswap → cksum", []Function{bswap, cksum},
		func(p []byte) { swapLoop(p); sum = sumLoop(p, sum) },
		func(p []byte) { sum = swapSumLoop(p, sum) })
	pair("pes → cksum", []Function{pes, cksum},
		func(p []byte) { encryptLoop(p); sum = sumLoop(p, sum) },
		func(p []byte) { sum = encryptSumLoop(p, sum) })
	pair("bswap → pes → cksum", []Function{bswap, pes, cksum},
		func(p []byte) { swapLoop(p); encryptLoop(p); sum = sumLoop(p, sum) },
		func(p []byte) { sum = swapEncryptSumLoop(p, sum) })
	pair("bswap → pes → crc32", []Function{bswap, pes, crc32},
		func(p []byte) { swapLoop(p); encryptLoop(p); crc = crcLoop(p, crc) },
		func(p []byte) { crc = swapEncryptCRCLoop(p, crc) })
	for s := range syntheticLoops {
		chain := newSyntheticChain(s)
		f := SyntheticFunction("synthetic", float64(s), syntheticInstructions, 4)
		fs := slices.Repeat([]Function{f}, syntheticFunctions)
		name := fmt.Sprintf("synthetic, %d × %d words", syntheticFunctions, s)
		loops = append(loops,
			timedLoop{name, fs, Sequential, s%2 == 1, false, chain.sequential},
			timedLoop{name, fs, Integrated, s%2 == 1, false, chain.integrated})
	}
	return loops
}

// syntheticFunctions is the length of the synthetic chains, that of Ahlgren's
// Figure 3.
const syntheticFunctions = 3

// syntheticChain is a chain of generated loops with its state.
type syntheticChain struct {
	words int
	// whole is the state of an integrated loop; each function alone finds its
	// state in the first row of single.
	whole  [syntheticFunctions][9]uint32
	single [syntheticFunctions][syntheticFunctions][9]uint32
}

func newSyntheticChain(words int) *syntheticChain {
	c := &syntheticChain{words: words}
	for i := range syntheticFunctions {
		seedState(c.whole[i][:words], uint32(i))
		seedState(c.single[i][0][:words], uint32(i))
	}
	return c
}

func (c *syntheticChain) sequential(p []byte) {
	for i := range c.single {
		syntheticLoops[c.words](p, &c.single[i])
	}
}

func (c *syntheticChain) integrated(p []byte) { syntheticIntegratedLoops[c.words](p, &c.whole) }

// MeasureReport is what the running machine did, and what the model makes of
// it.
type MeasureReport struct {
	Processor   string  `json:"processor"`
	GoVersion   string  `json:"go_version"`
	ClockMHz    float64 `json:"clock_mhz"`
	CacheBytes  int     `json:"cache_bytes"`
	MemoryBytes int     `json:"memory_bytes"`
	Rounds      int     `json:"rounds"`

	// Fitted is the machine that the model sees: non-negative least squares over
	// the loops marked Fit. A parameter can come out as 0.
	Fitted Machine `json:"fitted"`
	// Nanoseconds of the fitted parameters, which do not depend on ClockMHz.
	InstructionNS float64 `json:"instruction_ns"`
	LoopNS        float64 `json:"loop_ns"`
	CacheAccessNS float64 `json:"cache_access_ns"`
	MemoryNS      float64 `json:"memory_access_ns"`

	Loops []MeasuredLoop `json:"loops"`

	// Deviations are (predicted − measured) / measured, over loops used in the
	// fit, over those predicted, and apart from both over those that look up
	// tables: they are predicted too, by a model that leaves tables out.
	FitRMS       float64 `json:"fit_rms_deviation"`
	FitWorst     float64 `json:"fit_worst_deviation"`
	PredictRMS   float64 `json:"predict_rms_deviation"`
	PredictWorst float64 `json:"predict_worst_deviation"`
	TablesRMS    float64 `json:"tables_rms_deviation"`
	TablesWorst  float64 `json:"tables_worst_deviation"`

	// Winners counts chains and working sets not used in the fit in which the
	// model names the mode that was measured faster, of Pairs.
	Winners int `json:"winners_right"`
	Pairs   int `json:"winners_of"`

	Notes []string `json:"notes,omitempty"`
}

// MeasuredLoop is one loop with one working set.
type MeasuredLoop struct {
	Name      string  `json:"name"`
	Mode      Mode    `json:"mode"`
	Cache     string  `json:"cache"` // warm or cold
	Fit       bool    `json:"fit"`
	Tables    bool    `json:"tables"`
	Measured  float64 `json:"measured_ns_per_byte"` // least of the rounds
	Median    float64 `json:"median_ns_per_byte"`
	Predicted float64 `json:"predicted_ns_per_byte"`
	Deviation float64 `json:"deviation"`
}

// wordBytes of the loops, which work on 32-bit words.
const measuredWord = 4

// Measure times loops of both kinds on the running machine with data in the
// cache and in memory, finds the model's parameters from one part of them, and
// predicts the other. With the defaults it takes about half a minute; it returns
// early, with ctx's error, between two timings.
func Measure(ctx context.Context, opts MeasureOptions) (*MeasureReport, error) {
	o := opts.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	host := readProcessor("/")
	r := &MeasureReport{
		Processor: host.model, GoVersion: runtime.Version(), ClockMHz: o.ClockMHz,
		CacheBytes: o.CacheBytes, MemoryBytes: o.MemoryBytes, Rounds: o.Rounds,
	}
	if r.Processor == "" {
		r.Processor = runtime.GOARCH
	}
	if r.ClockMHz == 0 {
		r.ClockMHz = host.mhz
	}
	if r.ClockMHz == 0 {
		r.ClockMHz = 1000
		r.Notes = append(r.Notes, "clock not known: 1000 MHz assumed, clocks read as nanoseconds")
	}
	if host.lastCache > o.MemoryBytes {
		r.Notes = append(r.Notes, fmt.Sprintf(
			"the largest cache holds %d MiB, more than the memory working set of %d MiB: \"cold\" may be that cache, not memory",
			host.lastCache>>20, o.MemoryBytes>>20))
	}
	loops := timedLoops()
	samples, err := timeLoops(ctx, loops, o)
	if err != nil {
		return nil, err
	}
	r.evaluate(loops, samples)
	return r, r.fit(loops)
}

// timeLoops gives ns/byte by loop, working set (0 cache, 1 memory) and round.
// A round times every loop once, so that a slow spell of the machine falls on
// all of them.
func timeLoops(ctx context.Context, loops []timedLoop, o MeasureOptions) ([][2][]float64, error) {
	samples := make([][2][]float64, len(loops))
	sets := [2][]byte{make([]byte, o.CacheBytes), make([]byte, o.MemoryBytes)}
	for _, p := range sets {
		for i := range p {
			p[i] = byte(i * 7)
		}
	}
	for round := range o.Rounds {
		if o.Progress != nil {
			o.Progress(round, o.Rounds)
		}
		for i := range loops {
			for k, p := range sets {
				if err := ctx.Err(); err != nil {
					return nil, fmt.Errorf("measure: %w", err)
				}
				samples[i][k] = append(samples[i][k], timeLoop(loops[i].run, p, o.SampleTime))
			}
		}
	}
	return samples, nil
}

// timeLoop gives the time of a byte, from as many runs as fill the sample time.
// A first run, not counted, brings the set into the cache if it fits.
func timeLoop(run func([]byte), p []byte, sample time.Duration) float64 {
	const small = 1 << 20
	if len(p) <= small {
		run(p)
	}
	for n := 1; ; n *= 2 {
		start := time.Now()
		for range n {
			run(p)
		}
		if d := time.Since(start); d > 0 && (d >= sample || n >= 1<<20) {
			return float64(d.Nanoseconds()) / float64(n) / float64(len(p))
		}
	}
}

func (r *MeasureReport) evaluate(loops []timedLoop, samples [][2][]float64) {
	for i, l := range loops {
		for k := range samples[i] {
			s := slices.Sorted(slices.Values(samples[i][k]))
			r.Loops = append(r.Loops, MeasuredLoop{
				Name: l.name, Mode: l.mode, Cache: [2]string{"warm", "cold"}[k], Fit: l.fit, Tables: l.tables,
				Measured: s[0], Median: s[len(s)/2],
			})
		}
	}
}

// fit finds the parameters and judges them. r.Loops holds two entries a loop.
func (r *MeasureReport) fit(loops []timedLoop) error {
	observe := func(j int) observation {
		l := loops[j/2]
		return observation{functions: l.functions, mode: l.mode, memory: j%2 == 1, measured: r.Loops[j].Measured}
	}
	var used []observation
	for j := range r.Loops {
		if r.Loops[j].Measured <= 0 {
			return fmt.Errorf("measure: %s took no time; the sample time is too short for this clock", r.Loops[j].Name)
		}
		if r.Loops[j].Fit {
			used = append(used, observe(j))
		}
	}
	registers, p, err := fitMachine(used, measuredWord)
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	r.InstructionNS, r.LoopNS, r.CacheAccessNS, r.MemoryNS = p[0], p[1], p[2], p[3]
	ghz := r.ClockMHz / 1000
	r.Fitted = Machine{
		Name: "measured", Registers: registers, CPI: p[0] * ghz,
		CacheClocks: p[2] * ghz, MemoryClocks: p[3] * ghz,
		ClockMHz: r.ClockMHz, WordBytes: measuredWord,
		Source: "least squares over loops timed on " + r.Processor,
	}
	if p[0] > 0 {
		r.Fitted.LoopInstructions = p[1] / p[0]
	}
	for j := range r.Loops {
		l := &r.Loops[j]
		l.Predicted = p.predict(observe(j).terms(registers, measuredWord))
		l.Deviation = (l.Predicted - l.Measured) / l.Measured
	}
	r.FitRMS, r.FitWorst = spread(r.Loops, func(l MeasuredLoop) bool { return l.Fit })
	r.PredictRMS, r.PredictWorst = spread(r.Loops, func(l MeasuredLoop) bool { return !l.Fit && !l.Tables })
	r.TablesRMS, r.TablesWorst = spread(r.Loops, func(l MeasuredLoop) bool { return l.Tables })
	r.judgeWinners()
	return nil
}

// spread gives the root mean square and the largest of the deviations.
func spread(loops []MeasuredLoop, take func(MeasuredLoop) bool) (rms, worst float64) {
	n := 0
	for _, l := range loops {
		if take(l) {
			n++
			rms += l.Deviation * l.Deviation
			if math.Abs(l.Deviation) > math.Abs(worst) {
				worst = l.Deviation
			}
		}
	}
	return math.Sqrt(rms / float64(max(n, 1))), worst
}

// judgeWinners compares each predicted sequential loop with the integrated one
// that follows it.
func (r *MeasureReport) judgeWinners() {
	for j := 0; j+2 < len(r.Loops); j++ {
		a, b := r.Loops[j], r.Loops[j+2]
		if a.Fit || a.Name != b.Name || a.Mode != Sequential || b.Mode != Integrated {
			continue
		}
		r.Pairs++
		if (a.Measured < b.Measured) == (a.Predicted < b.Predicted) {
			r.Winners++
		}
	}
}

// Figure draws the measured and predicted synthetic loops as Ahlgren's Figure 3
// does: (a) data in the cache, (b) in memory.
func (r *MeasureReport) Figure() []Figure {
	var figs []Figure
	for k, cache := range []string{"warm", "cold"} {
		fig := Figure{
			ID:     [2]string{"measured-a", "measured-b"}[k],
			Title:  r.Processor + ", 3 functions, message data in " + [2]string{"cache", "memory"}[k],
			XLabel: "state size (words per function)",
			YLabel: "ns/byte",
		}
		for mode := range Mode(NumModes) {
			modelled := Series{Name: mode.String() + ", modelled"}
			measured := Series{Name: mode.String() + ", measured"}
			for s := range syntheticLoops {
				name := fmt.Sprintf("synthetic, %d × %d words", syntheticFunctions, s)
				for _, l := range r.Loops {
					if l.Name == name && l.Mode == mode && l.Cache == cache {
						modelled.X, modelled.Y = append(modelled.X, float64(s)), append(modelled.Y, l.Predicted)
						measured.X, measured.Y = append(measured.X, float64(s)), append(measured.Y, l.Measured)
					}
				}
			}
			fig.Series = append(fig.Series, modelled, measured)
		}
		figs = append(figs, fig)
	}
	return figs
}

// WriteText writes the report for people.
func (r *MeasureReport) WriteText(w io.Writer) error {
	t := newTable(w)
	t.line("Measured on %s, %s, clock %.0f MHz; working sets %d KiB and %d KiB; least of %d rounds",
		r.Processor, r.GoVersion, r.ClockMHz, r.CacheBytes>>10, r.MemoryBytes>>10, r.Rounds)
	t.line("fitted: R %d, CPI %.2f, t_c %.2f, t_m %.2f clocks/word, lo %.1f instructions (%.3f, %.3f, %.3f ns; loop %.3f ns)",
		r.Fitted.Registers, r.Fitted.CPI, r.Fitted.CacheClocks, r.Fitted.MemoryClocks, r.Fitted.LoopInstructions,
		r.InstructionNS, r.CacheAccessNS, r.MemoryNS, r.LoopNS)
	t.row("loop", "mode", "cache", "ns/B measured", "median", "model", "deviation", "")
	for _, l := range r.Loops {
		used := ""
		switch {
		case l.Fit:
			used = "fit"
		case l.Tables:
			used = "tables"
		}
		t.row(l.Name, l.Mode.String(), l.Cache, f3(l.Measured), f3(l.Median), f3(l.Predicted), percent(l.Deviation), used)
	}
	t.line("deviation, root mean square and worst: fitted loops %.1f %% and %s, predicted loops %.1f %% and %s",
		100*r.FitRMS, percent(r.FitWorst), 100*r.PredictRMS, percent(r.PredictWorst))
	t.line("loops with table look-ups, which the model leaves out: %.1f %% and %s", 100*r.TablesRMS, percent(r.TablesWorst))
	t.line("faster mode named rightly for %d of %d predicted pairs", r.Winners, r.Pairs)
	for _, n := range r.Notes {
		t.line("note: %s", n)
	}
	return t.flush()
}
