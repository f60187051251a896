package host

import (
	"fmt"
	"math/bits"
)

// CopyCount is what a small copy does. Loads and stores are single instructions
// of any width up to a word.
type CopyCount struct {
	LeadBytes  int  `json:"lead_bytes"` // moved to align the destination
	Iterations int  `json:"iterations"` // of two words
	TailBytes  int  `json:"tail_bytes"`
	Aligned    bool `json:"aligned"` // source aligned once the destination is
	Loads      int  `json:"loads"`
	Stores     int  `json:"stores"`
	Shifts     int  `json:"shifts"`
	Ors        int  `json:"ors"`
	Branches   int  `json:"branches"` // iterations; each costs LoopInstructions
	ReadLines  int  `json:"read_lines"`
	WriteLines int  `json:"write_lines"`
}

// SmallCopy counts what copying bytes takes when destination and source begin
// at the given offsets (taken from an address that is a multiple of the page).
//
// First 1 to W−1 bytes bring the destination to a word boundary, W the word.
// Then, depending on whether the source is aligned too, an iteration moves two
// words with 2 loads and 2 stores, or with 2 loads, 4 shifts, 2 ors and 2 stores
// (slide 22, for words of 8 bytes; smaller words are our extension). Chosen,
// because the slides do not say: lead and tail go in pieces of 1, 2, 4 bytes, a
// whole word left over in the tail as a load and a store, and the unaligned loop
// is primed with one load. Negative counts and offsets are errors.
func (p Processor) SmallCopy(dst, src, bytes int) (CopyCount, error) {
	if dst < 0 || src < 0 || bytes < 0 {
		return CopyCount{}, fmt.Errorf("copy of %d bytes from offset %d to %d: want no negative number", bytes, src, dst)
	}
	w := p.WordBytes
	c := CopyCount{ReadLines: p.lines(src, bytes), WriteLines: p.lines(dst, bytes)}
	c.LeadBytes = min((w-dst%w)%w, bytes)
	left := bytes - c.LeadBytes
	c.Aligned = (src+c.LeadBytes)%w == 0
	c.Iterations = left / (2 * w)
	c.TailBytes = left % (2 * w)
	pieces := bits.OnesCount(uint(c.LeadBytes)) + bits.OnesCount(uint(c.TailBytes))
	c.Loads = pieces + 2*c.Iterations
	c.Stores = pieces + 2*c.Iterations
	c.Branches = c.Iterations
	if !c.Aligned && c.Iterations > 0 {
		c.Loads++
		c.Shifts = 4 * c.Iterations
		c.Ors = 2 * c.Iterations
	}
	return c, nil
}

// Cached says which side of a copy lies in the cache.
type Cached struct {
	Source      bool `json:"source"`
	Destination bool `json:"destination"`
}

// CopyClocks is the time of a counted copy. Misses are waited for one by one.
func (p Processor) CopyClocks(c CopyCount, at Cached) float64 {
	clocks := float64(c.Loads)*p.LoadClocks + float64(c.Stores)*p.StoreClocks +
		p.CPI*(float64(c.Shifts+c.Ors)+p.LoopInstructions*float64(c.Branches))
	if !at.Source {
		clocks += float64(c.ReadLines) * p.ReadMissClocks
	}
	if !at.Destination {
		clocks += float64(c.WriteLines) * p.WriteMissClocks
	}
	return clocks
}

// PageOrder is the order in which a page copy stores.
type PageOrder uint8

// The orders.
const (
	LineByLine    PageOrder = iota // one cache line after the other
	Interleaved                    // a word of each bank's block in turn (slide 23)
	NumPageOrders = int(iota)
)

func (o PageOrder) String() string {
	switch o {
	case LineByLine:
		return "line by line"
	case Interleaved:
		return "interleaved"
	}
	return "unknown order"
}

// MarshalText writes the name, for JSON.
func (o PageOrder) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// PageCopyCount is what copying a page takes.
type PageCopyCount struct {
	Order      PageOrder `json:"order"`
	Lines      int       `json:"lines"`
	Groups     int       `json:"groups"` // of Banks × BlockLines lines
	Loads      int       `json:"loads"`
	Stores     int       `json:"stores"`
	BankClocks float64   `json:"bank_wait_clocks"` // waited for busy banks
	Clocks     float64   `json:"clocks"`
}

// PageCopy copies one page, both ends aligned to it. Each word is loaded and
// stored; a store goes through to its line's bank, lines taking the banks in
// turn, and waits while that bank is occupied by an earlier one. Line by line,
// a line's stores all meet the same bank. Interleaved, the main loop takes
// Banks blocks of BlockLines lines and stores a word of each block in turn,
// which on three banks with blocks of two lines meets a different bank each
// time (slide 23: 6 lines, 3 blocks); lines that do not fill a group go line by
// line. Each line read costs a read miss, each iteration of one word per block
// the loop's instructions.
func (p Processor) PageCopy(order PageOrder) PageCopyCount {
	c := PageCopyCount{Order: order, Lines: p.PageBytes / p.LineBytes}
	words := p.LineBytes / p.WordBytes
	var free [maxBanks]float64 // when each bank takes the next store
	var now float64
	store := func(line int) {
		c.Loads++
		c.Stores++
		now += p.LoadClocks
		bank := line % p.Banks
		if wait := free[bank] - now; wait > 0 {
			c.BankClocks += wait
			now += wait
		}
		free[bank] = now + p.BankClocks
		now += p.StoreClocks
	}
	line := 0
	if group := p.Banks * p.BlockLines; order == Interleaved {
		for ; line+group <= c.Lines; line += group {
			c.Groups++
			for j := range p.BlockLines {
				for range words {
					for b := range p.Banks {
						store(line + b*p.BlockLines + j)
					}
					now += p.CPI * p.LoopInstructions
				}
			}
		}
	}
	for ; line < c.Lines; line++ {
		for k := range words {
			store(line)
			// Unrolled as far as the interleaved loop, so that only order differs.
			if k%p.Banks == p.Banks-1 || k == words-1 {
				now += p.CPI * p.LoopInstructions
			}
		}
	}
	c.Clocks = now + float64(c.Lines)*(p.ReadMissClocks+p.WriteMissClocks)
	return c
}

// UserCopyKind says which routine a copy to or from user space takes.
type UserCopyKind uint8

// The routines.
const (
	UserSmall UserCopyKind = iota
	UserPage
)

// UserCopy is copy_tofrom_user: the page copy for a whole, aligned page, the
// small copy for everything else (slide 21). It reports the routine and the
// clocks.
func (p Processor) UserCopy(dst, src, bytes int, at Cached) (UserCopyKind, float64, error) {
	if bytes == p.PageBytes && dst >= 0 && src >= 0 && dst%p.PageBytes == 0 && src%p.PageBytes == 0 {
		c := p.PageCopy(Interleaved)
		clocks := c.Clocks
		if at.Source {
			clocks -= float64(c.Lines) * p.ReadMissClocks
		}
		if at.Destination {
			clocks -= float64(c.Lines) * p.WriteMissClocks
		}
		return UserPage, clocks, nil
	}
	c, err := p.SmallCopy(dst, src, bytes)
	if err != nil {
		return UserSmall, 0, err
	}
	return UserSmall, p.CopyClocks(c, at), nil
}
