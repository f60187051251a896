package cmd

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"spinesim/sim/des"
	"spinesim/traces"
)

// sampleFlags are those of the sampling profiler.
type sampleFlags struct {
	specs    []string
	masked   []string
	jitter   float64
	first    string
	samplers []*traces.Sampler
	files    []string
}

func (f *sampleFlags) add(c *cobra.Command) {
	c.Flags().StringArrayVar(&f.specs, "sample", nil, `sample what the processors run, as PERIOD=FILE such as "1 ms=samples.pb.gz", for go tool pprof; may be repeated`)
	c.Flags().Float64Var(&f.jitter, "sample-jitter", 0, "with --sample: spread each period by this share of it either way, 0 to 1")
	c.Flags().StringVar(&f.first, "sample-first", "0 s", "with --sample: time of the first sample")
	c.Flags().StringArrayVar(&f.masked, "sample-masked", nil, "with --sample: handler that runs with interrupts off, or all; may be repeated")
}

// sinks makes the samplers. A mistake in a flag is wrong usage.
func (f *sampleFlags) sinks(c *cobra.Command, seed uint64) ([]traces.Sink, error) {
	for _, n := range []string{"sample-jitter", "sample-first", "sample-masked"} {
		if len(f.specs) == 0 && c.Flags().Changed(n) {
			return nil, usagef("--%s belongs to --sample", n)
		}
	}
	masked, err := traces.Masks(f.masked)
	if err != nil {
		return nil, usagef("--sample-masked: %w", err)
	}
	var first des.Time
	if err := first.UnmarshalText([]byte(f.first)); err != nil {
		return nil, usagef("--sample-first: %w", err)
	}
	var out []traces.Sink
	for _, spec := range f.specs {
		text, file, ok := strings.Cut(spec, "=")
		if !ok || file == "" {
			return nil, usagef("--sample %s: want PERIOD=FILE, such as \"1 ms=samples.pb.gz\"", spec)
		}
		if err := checkOutput("--sample", file); err != nil {
			return nil, err
		}
		s := traces.Sampling{First: first, Jitter: f.jitter, Seed: seed, Masked: masked}
		if err := s.Period.UnmarshalText([]byte(text)); err != nil {
			return nil, usagef("--sample %s: %w", spec, err)
		}
		p, err := traces.NewSampler(s)
		if err != nil {
			return nil, usagef("--sample %s: %w", spec, err)
		}
		f.samplers = append(f.samplers, p)
		f.files = append(f.files, file)
		out = append(out, p)
	}
	return out, nil
}

// write writes the profiles.
func (f *sampleFlags) write(meta *traces.Meta) error {
	for i, p := range f.samplers {
		err := writeFile(f.files[i], func(w io.Writer) error { return p.WriteProfile(w, meta) })
		if err != nil {
			return fileError(err)
		}
	}
	return nil
}

// report tells what sampling got wrong.
func (f *sampleFlags) report(w io.Writer) error {
	for _, p := range f.samplers {
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		if err := p.Report().WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// reports are what --json adds to the result.
func (f *sampleFlags) reports() []*traces.SampleReport {
	var out []*traces.SampleReport
	for _, p := range f.samplers {
		out = append(out, p.Report())
	}
	return out
}
