package bihash

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is everything that the model has to say, and the running machine where
// it was asked.
type Report struct {
	Processors  []Processor    `json:"processors"`
	Published   *FiguresReport `json:"published"`
	Sensitivity []Variation    `json:"sensitivity"`
	Crossover   []Series       `json:"crossover"`
	Frames      []FrameStudy   `json:"frames"`
	UnrollKeys  []int          `json:"unroll_key_bytes"`
	Unroll      []Unroll       `json:"unroll"`
	Measured    *MeasureReport `json:"measured,omitempty"`
}

// frameShare is the rate of the frame study: half of what the longest frames
// carry (chosen).
const frameShare = 0.5

// NewReport works the model's parts out, which takes some ten seconds. Progress,
// where not nil, is told what comes next; ctx ends it between parts.
func NewReport(ctx context.Context, progress func(what string)) (*Report, error) {
	r := &Report{Processors: Processors(), UnrollKeys: UnrollLengths(), Unroll: UnrollTable()}
	next := func(what string) error {
		if progress != nil {
			progress(what)
		}
		return ctx.Err()
	}
	if err := next("published figures"); err != nil {
		return nil, err
	}
	var err error
	if r.Published, err = Figures(); err != nil {
		return nil, err
	}
	if err = next("sensitivity"); err != nil {
		return nil, err
	}
	if r.Sensitivity, err = Sensitivity(publishedFlows); err != nil {
		return nil, err
	}
	for _, p := range r.Processors {
		if err = next("flows on " + p.Name); err != nil {
			return nil, err
		}
		s, err := Crossover(DefaultNode(), p, DefaultSpec(), CrossoverFlows(), RoundRobin, PrefetchBucket)
		if err != nil {
			return nil, err
		}
		r.Crossover = append(r.Crossover, s)
		if err = next("frames on " + p.Name); err != nil {
			return nil, err
		}
		f, err := Frames(DefaultNode(), p, DefaultSpec(), publishedFlows, PrefetchBucket, frameShare)
		if err != nil {
			return nil, err
		}
		r.Frames = append(r.Frames, f)
	}
	return r, nil
}

// WriteText writes the report for people.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	pub := r.Published
	p("Prefetching the %s in l2_fwd, %d flows, frames of %d (clocks a packet)", pub.Prefetch, publishedFlows, pub.Node.Frame)
	p("processor\tplain\tprefetch\tsaved\tpublished\tdeviation\t1 flow\tthroughput\tpublished\t\t")
	for _, f := range pub.Figures {
		p("%s\t%.1f\t%.1f\t%.1f %%\t%.1f %%\t%+.1f\t%.1f %%\t%+.1f %%\t%+.1f %%\t%s\t", f.Processor, f.Model.Plain.PerPacket, f.Model.Prefetch.PerPacket,
			100*f.Model.Saving, 100*f.Saving, 100*f.Deviation, 100*f.SingleFlow.Saving, 100*f.ThroughputModel, 100*f.Throughput, f.Role)
	}
	order := "the published order"
	if !pub.OrderRight {
		order = "NOT the published order"
	}
	p("%s; table %d pairs, %d bucket lines, %d pages, %.2f MB touched\n%s", order, pub.Table.Pairs, pub.Table.BucketLines, pub.Table.Pages, float64(pub.Table.TouchedBytes)/1e6, pub.Note)

	p("\nSensitivity: one chosen value changed at a time, nothing calibrated anew (saved, %%)")
	head := "\t"
	for _, f := range pub.Figures {
		head += f.Processor + "\t"
	}
	p("%sorder\t", head)
	for _, v := range r.Sensitivity {
		row := v.What + "\t"
		for _, s := range v.Savings {
			row += fmt.Sprintf("%.1f\t", 100*s)
		}
		if v.Order {
			row += "right\t"
		} else {
			row += "wrong\t"
		}
		p("%s", row)
	}

	p("\nSaved against flows (%%)")
	head = "flows\t"
	for _, s := range r.Crossover {
		head += s.Processor + "\t"
	}
	p("%s", head)
	for i := range r.Crossover[0].Points {
		row := fmt.Sprintf("%d\t", r.Crossover[0].Points[i].Flows)
		for _, s := range r.Crossover {
			row += fmt.Sprintf("%.1f\t", 100*s.Points[i].Saving)
		}
		p("%s", row)
	}
	row := "crossover\t"
	for _, s := range r.Crossover {
		row += fmt.Sprintf("%.0f\t", s.Crossover)
	}
	p("%s", row)

	for _, f := range r.Frames {
		p("\nFrames on %s, %d flows, prefetch %s; latency at %.2f million packets/s", f.Processor, f.Flows, f.Prefetch, f.RateMpps)
		p("frame\tclocks\tgap ns\tload\tlatency ns\t")
		for _, q := range f.Rows {
			latency := "too fast"
			if q.LatencyNS > 0 {
				latency = fmt.Sprintf("%.0f", q.LatencyNS)
			}
			p("%d\t%.1f\t%.1f\t%.2f\t%s\t", q.Frame, q.Clocks.PerPacket, q.GapNS, q.Load, latency)
		}
	}

	p("\nClocks of the hash that forcing its loop unrolled saves (published, %%)")
	head = "key bytes\t"
	for _, k := range r.UnrollKeys {
		head += fmt.Sprintf("%d\t", k)
	}
	p("%s", head)
	for _, u := range r.Unroll {
		row := u.Processor + "\t"
		for _, s := range u.Savings {
			row += fmt.Sprintf("%.0f\t", 100*s)
		}
		p("%s", row)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Measured != nil {
		return r.Measured.WriteText(out)
	}
	return nil
}

// WriteText writes the measurement for people.
func (m *MeasureReport) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nMeasured here (%s, %s): ns a look-up, %d KiB read between frames of %d\n", m.GoVersion, m.Processor, m.Evict>>10, MaxBatch)
	if len(m.Flows) > 0 {
		fmt.Fprint(w, "flows\ttable KB\t")
		for _, l := range m.Flows[0].Loops {
			fmt.Fprintf(w, "%s\t", l.Name)
			if l.Name != "plain" {
				fmt.Fprint(w, "saved\t")
			}
		}
		fmt.Fprintln(w)
	}
	for _, f := range m.Flows {
		fmt.Fprintf(w, "%d\t%d\t", f.Flows, f.Bytes/1000)
		for _, l := range f.Loops {
			fmt.Fprintf(w, "%.1f\t", l.NS)
			if l.Name != "plain" {
				fmt.Fprintf(w, "%.0f %%\t", 100*l.Saving)
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "\nHash of a key, ns\nkey bytes\tloop\tunrolled\tsaved\tcrc32c\t")
	for _, h := range m.Hashes {
		fmt.Fprintf(w, "%d\t%.2f\t%.2f\t%.0f %%\t%.2f\t\n", h.KeyBytes, h.LoopNS, h.UnrollNS, 100*h.Saving, h.CRCNS)
	}
	fmt.Fprintf(w, "%s\n", m.Note)
	return w.Flush()
}
