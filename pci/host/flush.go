package host

import (
	"fmt"
	"math/rand/v2"
)

// FlushCount is what making the instruction cache coherent takes.
type FlushCount struct {
	Lines  int     `json:"lines"`
	Dcbst  int     `json:"dcbst"`
	Icbi   int     `json:"icbi"`
	Clocks float64 `json:"clocks"`
}

// Flush counts flushing bytes from an offset on: one dcbst and one icbi for each
// cache line touched (slide 11), a write-back for each of them that is dirty,
// and one synchronisation. dirty is a share of the lines, 0 to 1. No bytes cost
// nothing.
func (p Processor) Flush(offset, bytes int, dirty float64) FlushCount {
	n := p.lines(offset, bytes)
	if n == 0 {
		return FlushCount{}
	}
	each := p.DcbstClocks + p.IcbiClocks + dirty*p.WriteBackClocks
	return FlushCount{Lines: n, Dcbst: n, Icbi: n, Clocks: float64(n)*each + p.SyncClocks}
}

// FlushPolicy says when a page is flushed.
type FlushPolicy uint8

// The policies.
const (
	FlushNever       FlushPolicy = iota // the hardware keeps the caches coherent
	FlushEager                          // at every mapping into a process (slide 12)
	FlushLazy                           // at a mapping, if the page is not known clean (slide 13)
	FlushAtExecute                      // at first execution, if not known clean (slides 16, 17)
	NumFlushPolicies = int(iota)
)

var flushPolicyNames = [NumFlushPolicies]string{"never", "eager", "lazy", "at execute"}

func (f FlushPolicy) String() string {
	if int(f) < NumFlushPolicies {
		return flushPolicyNames[f]
	}
	return "unknown flush policy"
}

// MarshalText writes the name, for JSON.
func (f FlushPolicy) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads the name.
func (f *FlushPolicy) UnmarshalText(b []byte) (err error) {
	*f, err = FlushPolicyByName(string(b))
	return err
}

// FlushPolicyByName finds a policy.
func FlushPolicyByName(name string) (FlushPolicy, error) {
	for i, n := range flushPolicyNames {
		if n == name {
			return FlushPolicy(i), nil
		}
	}
	return 0, fmt.Errorf("unknown flush policy %q, want never, eager, lazy or at execute", name)
}

// PageFlags keeps a clean flag for each page, as the kernel keeps one in its
// page structures (slide 13), and says when a policy flushes. Pages are numbered
// from 0; a page beyond the number given to NewPageFlags is a programmer's
// mistake and panics as a slice does.
type PageFlags struct {
	policy FlushPolicy
	clean  []bool
}

// NewPageFlags keeps flags for n pages, none of them clean.
func NewPageFlags(policy FlushPolicy, n int) *PageFlags {
	return &PageFlags{policy: policy, clean: make([]bool, n)}
}

// Allocate gives the page new contents to come: it is not clean.
func (f *PageFlags) Allocate(page int) { f.clean[page] = false }

// Modify says that the kernel has written to the page.
func (f *PageFlags) Modify(page int) { f.clean[page] = false }

// Map says that the page is mapped into a process, and reports whether it must
// be flushed now.
func (f *PageFlags) Map(page int) bool {
	switch f.policy {
	case FlushEager:
		return true
	case FlushLazy:
		return f.flush(page)
	}
	return false
}

// Execute says that a process executes from the page, and reports whether it
// must be flushed now.
func (f *PageFlags) Execute(page int) bool {
	return f.policy == FlushAtExecute && f.flush(page)
}

// flush marks the page clean, and reports whether it was not.
func (f *PageFlags) flush(page int) bool {
	was := f.clean[page]
	f.clean[page] = true
	return !was
}

// FlushWorkload is a run of mappings, by where the page comes from: a file's
// page in the page cache, mapped again and again without change; a private copy
// of a page; a zeroed page. Copied and zeroed pages are always fresh.
type FlushWorkload struct {
	FilePages     int     `json:"file_pages"` // distinct pages of files
	FileMaps      int     `json:"file_maps"`
	CopyMaps      int     `json:"copy_maps"`
	ZeroMaps      int     `json:"zero_maps"`
	ExecutedShare float64 `json:"executed_share"` // of fresh pages, executed after mapping; file pages always are
	Steady        bool    `json:"steady"`         // file pages are clean at the start
	Seed          uint64  `json:"seed"`
}

// maxWorkload bounds each count of a FlushWorkload.
const maxWorkload = 10_000_000

// FlushTally counts flushes of a workload.
type FlushTally struct {
	Policy  FlushPolicy `json:"policy"`
	Maps    int         `json:"maps"`
	File    int         `json:"file_flushes"`
	Copied  int         `json:"copy_flushes"`
	Zeroed  int         `json:"zero_flushes"`
	Flushes int         `json:"flushes"`
}

// Validate reports a count or share out of range.
func (w FlushWorkload) Validate() error {
	for _, c := range []struct {
		what string
		n    int
	}{{"file pages", w.FilePages}, {"file mappings", w.FileMaps}, {"copied pages", w.CopyMaps}, {"zeroed pages", w.ZeroMaps}} {
		if c.n < 0 || c.n > maxWorkload {
			return fmt.Errorf("flush workload: %d %s, want 0 to %d", c.n, c.what, maxWorkload)
		}
	}
	if w.FileMaps > 0 && w.FilePages == 0 {
		return fmt.Errorf("flush workload: %d file mappings of no file pages", w.FileMaps)
	}
	if !(w.ExecutedShare >= 0 && w.ExecutedShare <= 1) {
		return fmt.Errorf("flush workload: executed share is %g, want 0 to 1", w.ExecutedShare)
	}
	return nil
}

// Run plays the workload's mappings in a random order that depends on the seed
// alone, so that two policies see the same.
func (w FlushWorkload) Run(policy FlushPolicy) (FlushTally, error) {
	if err := w.Validate(); err != nil {
		return FlushTally{}, err
	}
	rng := rand.New(rand.NewPCG(w.Seed, 0x666c757368))
	// Fresh pages come from one page that is allocated again each time.
	fresh := w.FilePages
	flags := NewPageFlags(policy, w.FilePages+1)
	if w.Steady {
		for page := range w.FilePages {
			flags.flush(page)
		}
	}
	t := FlushTally{Policy: policy, Maps: w.FileMaps + w.CopyMaps + w.ZeroMaps}
	left := [3]int{w.FileMaps, w.CopyMaps, w.ZeroMaps}
	count := [3]*int{&t.File, &t.Copied, &t.Zeroed}
	for n := t.Maps; n > 0; n-- {
		kind, x := 0, rng.IntN(n)
		for x >= left[kind] {
			x -= left[kind]
			kind++
		}
		left[kind]--
		page, executed := fresh, true
		if kind == 0 {
			page = rng.IntN(w.FilePages)
		} else {
			flags.Allocate(page)
			executed = rng.Float64() < w.ExecutedShare
		}
		// Both are asked: a policy flushes at one of them.
		mapped := flags.Map(page)
		if mapped || executed && flags.Execute(page) {
			*count[kind]++
			t.Flushes++
		}
	}
	return t, nil
}
