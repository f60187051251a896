package host

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"spinesim/sim/des"
)

// Report is what the host's cost models give for the presets, and what that is
// worth against published figures.
type Report struct {
	Processors []Processor  `json:"processors"`
	Copies     []CopyRow    `json:"copies"`
	Pages      []PageRow    `json:"page_copies"`
	Flushes    []FlushRow   `json:"flushes"`
	Policies   []FlushTally `json:"flush_policies"`
	Path       []PathRow    `json:"path"`
	PathSpec   PathSpec     `json:"path_spec"`
	Checks     []Check      `json:"checks"`
}

// CopyRow is a small copy.
type CopyRow struct {
	Processor string    `json:"processor"`
	Bytes     int       `json:"bytes"`
	Source    int       `json:"source_offset"`
	Count     CopyCount `json:"count"`
	Warm      float64   `json:"warm_clocks"`
	Cold      float64   `json:"cold_clocks"`
	ColdMBps  float64   `json:"cold_megabytes_per_second"` // 10^6 bytes
}

// PageRow is a page copy.
type PageRow struct {
	Processor string        `json:"processor"`
	Count     PageCopyCount `json:"count"`
	MBps      float64       `json:"megabytes_per_second"`
}

// FlushRow is a flush of a page.
type FlushRow struct {
	Processor string     `json:"processor"`
	Dirty     float64    `json:"dirty_share"`
	Count     FlushCount `json:"count"`
	Micros    float64    `json:"microseconds"`
}

// PathRow is the slow path at one packet size: the parts of a packet that
// arrives alone, just after a poll, and the rate at which packets are served
// when they queue.
type PathRow struct {
	Notify     Notify    `json:"notify"`
	Bytes      int       `json:"bytes"`
	Alone      Breakdown `json:"alone"`
	AloneTotal des.Time  `json:"alone_total"`
	Queued     des.Time  `json:"queued"`
	PerSecond  float64   `json:"packets_per_second"`
}

// PacketSizes are those of RFC 2544.
func PacketSizes() []int { return []int{64, 128, 256, 512, 1024, 1280, 1518} }

// NewReport works the report out, with a slow path of the given description.
func NewReport(spec PathSpec) (*Report, error) {
	r := &Report{Processors: Processors(), PathSpec: spec}
	for _, p := range r.Processors {
		for _, bytes := range []int{16, 64, 256, 1500} {
			for _, src := range []int{0, 2} {
				n, err := p.SmallCopy(0, src, bytes)
				if err != nil {
					return nil, err
				}
				row := CopyRow{Processor: p.Name, Bytes: bytes, Source: src, Count: n,
					Warm: p.CopyClocks(n, Cached{true, true}), Cold: p.CopyClocks(n, Cached{})}
				row.ColdMBps = float64(bytes) * p.ClockMHz / row.Cold
				r.Copies = append(r.Copies, row)
			}
		}
		for o := range PageOrder(NumPageOrders) {
			c := p.PageCopy(o)
			r.Pages = append(r.Pages, PageRow{p.Name, c, float64(p.PageBytes) * p.ClockMHz / c.Clocks})
		}
		for _, dirty := range []float64{0, 1} {
			if c := p.Flush(0, p.PageBytes, dirty); c.Clocks > 0 {
				r.Flushes = append(r.Flushes, FlushRow{p.Name, dirty, c, p.Time(c.Clocks).Microseconds()})
			}
		}
	}
	for f := FlushEager; int(f) < NumFlushPolicies; f++ {
		t, err := KernelBuild().Run(f)
		if err != nil {
			return nil, err
		}
		r.Policies = append(r.Policies, t)
	}
	for n := range Notify(NumNotify) {
		for _, bytes := range PacketSizes() {
			spec.Notify = n
			p, err := NewPath(spec)
			if err != nil {
				return nil, err
			}
			row := PathRow{Notify: n, Bytes: bytes}
			row.Alone = p.Serve(bytes, 1)
			row.AloneTotal = row.Alone.Total()
			row.Queued = p.Service(bytes, 1+row.AloneTotal)
			if row.Queued > 0 {
				row.PerSecond = 1 / row.Queued.Seconds()
			}
			r.Path = append(r.Path, row)
		}
	}
	var err error
	r.Checks, err = Checks()
	return r, err
}

// WriteText writes the report for people.
func (r *Report) WriteText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	var first error
	line := func(cells ...string) {
		if _, err := io.WriteString(w, strings.Join(cells, "\t")+"\n"); err != nil && first == nil {
			first = err
		}
	}
	whole := func(x float64) string { return fmt.Sprintf("%.0f", x) }
	micro := func(t des.Time) string { return fmt.Sprintf("%.2f", t.Microseconds()) }

	line("Small copy, destination aligned")
	line("processor", "bytes", "source offset", "loads", "stores", "shifts", "ors", "clocks warm", "cold", "MB/s cold")
	for _, c := range r.Copies {
		line(c.Processor, fmt.Sprint(c.Bytes), fmt.Sprint(c.Source), fmt.Sprint(c.Count.Loads), fmt.Sprint(c.Count.Stores),
			fmt.Sprint(c.Count.Shifts), fmt.Sprint(c.Count.Ors), whole(c.Warm), whole(c.Cold), whole(c.ColdMBps))
	}
	line("")
	line("Page copy")
	line("processor", "order", "lines", "groups", "clocks", "of these waiting for banks", "MB/s")
	for _, c := range r.Pages {
		line(c.Processor, c.Count.Order.String(), fmt.Sprint(c.Count.Lines), fmt.Sprint(c.Count.Groups),
			whole(c.Count.Clocks), whole(c.Count.BankClocks), whole(c.MBps))
	}
	line("")
	line("Instruction-cache flush of a page")
	line("processor", "dirty", "dcbst", "icbi", "clocks", "µs")
	for _, f := range r.Flushes {
		line(f.Processor, fmt.Sprintf("%.0f %%", 100*f.Dirty), fmt.Sprint(f.Count.Dcbst), fmt.Sprint(f.Count.Icbi), whole(f.Count.Clocks), fmt.Sprintf("%.1f", f.Micros))
	}
	line("")
	line("Flushes of the kernel build's mappings")
	line("policy", "mappings", "flushes", "of file pages", "copied", "zeroed")
	for _, t := range r.Policies {
		line(t.Policy.String(), fmt.Sprint(t.Maps), fmt.Sprint(t.Flushes), fmt.Sprint(t.File), fmt.Sprint(t.Copied), fmt.Sprint(t.Zeroed))
	}
	line("")
	line("Slow path on " + r.PathSpec.Processor.Name + ", µs a packet that comes alone, and packets/s when they queue")
	head := []string{"notification", "bytes"}
	for p := range Part(NumParts) {
		head = append(head, p.String())
	}
	line(append(head, "total", "packets/s")...)
	for _, p := range r.Path {
		cells := []string{p.Notify.String(), fmt.Sprint(p.Bytes)}
		for _, t := range p.Alone {
			cells = append(cells, micro(t))
		}
		line(append(cells, micro(p.AloneTotal), whole(p.PerSecond))...)
	}
	line("")
	line("Published figures")
	line("verdict", "figure", "source", "before", "after", "unit", "value", "meaning")
	for _, c := range r.Checks {
		before, after, value := "–", "–", "–"
		if c.Before != 0 || c.After != 0 {
			before, after = fmt.Sprintf("%g", c.Before), fmt.Sprintf("%g", c.After)
		}
		if c.Value != nil {
			value = fmt.Sprintf("%.3g", *c.Value)
		}
		line(string(c.Verdict), c.Subject, c.Source, before, after, c.Unit, value, c.Meaning)
	}
	if first != nil {
		return first
	}
	return w.Flush()
}
