package host

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// copier is the oracle: it copies in the way that SmallCopy counts, with loads
// and stores of up to a word, and counts what it does.
type copier struct {
	mem []byte
	w   int
	n   CopyCount
}

func (c *copier) load(at, size int) uint64 {
	if at%size != 0 && size == c.w {
		panic("unaligned word load")
	}
	c.n.Loads++
	var b [8]byte
	copy(b[8-size:], c.mem[at:at+size])
	return binary.BigEndian.Uint64(b[:])
}

func (c *copier) store(at, size int, v uint64) {
	if at%size != 0 && size == c.w {
		panic("unaligned word store")
	}
	c.n.Stores++
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	copy(c.mem[at:at+size], b[8-size:])
}

// pieces moves fewer than two words in powers of two. A whole word may be
// unaligned at the source; hardware does that in one load.
func (c *copier) pieces(dst, src, n int) {
	for size := c.w; size > 0; size /= 2 {
		if n&size != 0 {
			c.n.Loads++
			c.n.Stores++
			copy(c.mem[dst:dst+size], c.mem[src:src+size])
			dst, src = dst+size, src+size
		}
	}
}

func (c *copier) copy(dst, src, n int) {
	lead := 0
	for (dst+lead)%c.w != 0 && lead < n {
		lead++
	}
	c.n.LeadBytes = lead
	c.pieces(dst, src, lead)
	dst, src, n = dst+lead, src+lead, n-lead
	w := c.w
	wbits := uint(8 * w)
	mask := ^uint64(0) >> (64 - wbits)
	if src%w == 0 {
		c.n.Aligned = true
		for ; n >= 2*w; n -= 2 * w {
			a, b := c.load(src, w), c.load(src+w, w)
			c.store(dst, w, a)
			c.store(dst+w, w, b)
			dst, src = dst+2*w, src+2*w
			c.n.Iterations++
		}
	} else if n >= 2*w {
		left := uint(8 * (src % w))
		right := wbits - left
		base := src - src%w
		carry := c.load(base, w)
		for ; n >= 2*w; n -= 2 * w {
			a, b := c.load(base+w, w), c.load(base+2*w, w)
			c.store(dst, w, carry<<left&mask|a>>right)
			c.store(dst+w, w, a<<left&mask|b>>right)
			c.n.Shifts += 4
			c.n.Ors += 2
			carry = b
			base, src, dst = base+2*w, src+2*w, dst+2*w
			c.n.Iterations++
		}
	}
	c.n.TailBytes = n
	c.pieces(dst, src, n)
	c.n.Branches = c.n.Iterations
}

func TestSmallCopyAgainstCopier(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, p := range Processors() {
		for range 3000 {
			dst, src, n := rng.IntN(300), rng.IntN(300), rng.IntN(300)
			got, err := p.SmallCopy(dst, src, n)
			if err != nil {
				t.Fatal(err)
			}
			c := copier{mem: make([]byte, 2048), w: p.WordBytes}
			for i := range c.mem {
				c.mem[i] = byte(rng.Uint32())
			}
			const half = 1024
			want := bytes.Clone(c.mem[half+src : half+src+n])
			c.copy(dst, half+src, n)
			if !bytes.Equal(c.mem[dst:dst+n], want) {
				t.Fatalf("%s: the oracle does not copy %d bytes from %d to %d", p.Name, n, src, dst)
			}
			touched := func(from int) int {
				lines := map[int]bool{}
				for i := from; i < from+n; i++ {
					lines[i/p.LineBytes] = true
				}
				return len(lines)
			}
			c.n.ReadLines, c.n.WriteLines = touched(src), touched(dst)
			if diff := cmp.Diff(c.n, got); diff != "" {
				t.Fatalf("%s: %d bytes from %d to %d (-want +got):\n%s", p.Name, n, src, dst, diff)
			}
		}
	}
}

// Slide 22, in its own terms.
func TestSmallCopyIterations(t *testing.T) {
	p := PSeries650()
	for _, c := range []struct {
		src  int
		want CopyCount
	}{
		{0, CopyCount{Loads: 2, Stores: 2}},
		{3, CopyCount{Loads: 2, Stores: 2, Shifts: 4, Ors: 2}},
	} {
		// What one more iteration of 16 bytes adds.
		a, err := p.SmallCopy(0, c.src, 160)
		if err != nil {
			t.Fatal(err)
		}
		b, err := p.SmallCopy(0, c.src, 176)
		if err != nil {
			t.Fatal(err)
		}
		got := CopyCount{Loads: b.Loads - a.Loads, Stores: b.Stores - a.Stores, Shifts: b.Shifts - a.Shifts, Ors: b.Ors - a.Ors}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("source at %d (-want +got):\n%s", c.src, diff)
		}
	}
	if c, err := p.SmallCopy(3, 0, 100); err != nil || c.LeadBytes != 5 {
		t.Errorf("destination at 3: %d bytes lead, error %v", c.LeadBytes, err)
	}
	if _, err := p.SmallCopy(0, -1, 4); err == nil {
		t.Error("a negative offset: no error")
	}
}

// bankOracle steps through the stores of a page copy one clock (or fraction) at
// a time: costs in the test are multiples of a quarter clock.
func bankOracle(p Processor, order []int, loops map[int]bool) float64 {
	const step = 0.25
	busy := make([]float64, p.Banks) // left to wait
	var now float64
	pass := func(d float64) {
		for ; d > 1e-9; d -= step {
			now += step
			for i := range busy {
				busy[i] = math.Max(0, busy[i]-step)
			}
		}
	}
	for i, line := range order {
		pass(p.LoadClocks)
		for b := line % p.Banks; busy[b] > 1e-9; {
			pass(step)
		}
		busy[line%p.Banks] = p.BankClocks
		pass(p.StoreClocks)
		if loops[i] {
			pass(p.CPI * p.LoopInstructions)
		}
	}
	return now
}

func TestPageCopyAgainstStepping(t *testing.T) {
	p := PSeries650()
	words := p.LineBytes / p.WordBytes
	var interleaved, plain []int
	loopsI, loopsP := map[int]bool{}, map[int]bool{}
	// Three blocks of two lines: word k of lines 0, 2, 4, then of 1, 3, 5.
	for g := 0; g < 30; g += 6 {
		for j := range 2 {
			for range words {
				for _, block := range []int{0, 2, 4} {
					interleaved = append(interleaved, g+block+j)
				}
				loopsI[len(interleaved)-1] = true
			}
		}
	}
	line := func(order *[]int, loops map[int]bool, l int) {
		for k := range words {
			*order = append(*order, l)
			if k%3 == 2 || k == words-1 {
				loops[len(*order)-1] = true
			}
		}
	}
	line(&interleaved, loopsI, 30)
	line(&interleaved, loopsI, 31)
	for l := range 32 {
		line(&plain, loopsP, l)
	}
	misses := 32 * p.ReadMissClocks
	for _, c := range []struct {
		order PageOrder
		lines []int
		loops map[int]bool
	}{{LineByLine, plain, loopsP}, {Interleaved, interleaved, loopsI}} {
		got := p.PageCopy(c.order)
		if want := bankOracle(p, c.lines, c.loops) + misses; math.Abs(got.Clocks-want) > 1e-6 {
			t.Errorf("%v: %g clocks, want %g", c.order, got.Clocks, want)
		}
		if got.Loads != 512 || got.Stores != 512 || got.Lines != 32 {
			t.Errorf("%v: %+v", c.order, got)
		}
	}
	if a, b := p.PageCopy(LineByLine), p.PageCopy(Interleaved); b.Groups != 5 || a.Clocks <= b.Clocks || a.BankClocks <= b.BankClocks {
		t.Errorf("interleaving gains nothing: %+v, %+v", a, b)
	}
	// Without banks to wait for the order does not matter.
	p.BankClocks = 0
	if a, b := p.PageCopy(LineByLine), p.PageCopy(Interleaved); a.BankClocks != 0 || b.BankClocks != 0 {
		t.Errorf("waits for free banks: %+v, %+v", a, b)
	}
}

func TestUserCopyChooses(t *testing.T) {
	p := PSeries650()
	for _, c := range []struct {
		dst, src, bytes int
		want            UserCopyKind
	}{{0, 0, 4096, UserPage}, {4096, 8192, 4096, UserPage}, {0, 8, 4096, UserSmall}, {0, 0, 4095, UserSmall}, {0, 0, 0, UserSmall}} {
		kind, clocks, err := p.UserCopy(c.dst, c.src, c.bytes, Cached{})
		if err != nil || kind != c.want || (clocks == 0) != (c.bytes == 0) {
			t.Errorf("%+v: routine %d, %g clocks, error %v", c, kind, clocks, err)
		}
	}
	_, cold, _ := p.UserCopy(0, 0, 4096, Cached{})
	_, warm, _ := p.UserCopy(0, 0, 4096, Cached{Source: true, Destination: true})
	if cold-warm != 32*p.ReadMissClocks {
		t.Errorf("32 lines in the cache save %g clocks", cold-warm)
	}
	if _, _, err := p.UserCopy(0, 0, -1, Cached{}); err == nil {
		t.Error("a negative count: no error")
	}
}
