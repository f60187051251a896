package bihash

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Prefetch is what a look-up loop asks for ahead of its use.
type Prefetch uint8

// The ways of prefetching.
const (
	NoPrefetch      Prefetch = iota
	PrefetchBucket           // the bucket word
	PrefetchBoth             // the bucket word, and later the page
	NumPrefetches   = int(iota)
	prefetchUnknown = "unknown prefetch"
)

var prefetchNames = [NumPrefetches]string{"none", "bucket", "bucket and page"}

func (p Prefetch) String() string {
	if int(p) < NumPrefetches {
		return prefetchNames[p]
	}
	return prefetchUnknown
}

// MarshalText writes the name, for JSON.
func (p Prefetch) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Order is how packets of different flows follow each other.
type Order string

// The orders.
const (
	RoundRobin Order = "round-robin" // one packet of each flow in turn, as traffic generators send them
	Random     Order = "random"      // each packet of any flow
)

// Node is a forwarding node of a packet-processing program after VPP's l2_fwd:
// what it does for a packet, and what the rest of the program does to the
// caches between its frames. Instructions are of a 64-bit processor.
type Node struct {
	// Frame is how many packets are processed at a time, 1 to 256.
	Frame int `json:"frame"`
	// OtherInstructions are those for a packet beside the look-up: buffer
	// indices, header fields, counters, the next node. More of them make the
	// look-up, and what prefetching saves of it, a smaller part.
	OtherInstructions int `json:"other_instructions"`
	// AfterInstructions are those of them that need the look-up's result. They
	// fill the scheduler while it is on its way: with more of them a core
	// overlaps fewer look-ups by itself.
	AfterInstructions int `json:"after_instructions"`
	// HashInstructions and HashClocks are the key's assembly and its CRC,
	// CompareInstructions the search of a page with the result's use.
	// PrefetchInstructions are spent for each line that is asked for ahead,
	// beside the instruction itself: the address, and what is kept until the
	// look-up.
	HashInstructions     int     `json:"hash_instructions"`
	HashClocks           float64 `json:"hash_clocks"`
	CompareInstructions  int     `json:"compare_instructions"`
	PrefetchInstructions int     `json:"prefetch_instructions"`
	// OneEntry keeps the last address and its result: a packet to the same
	// address does no look-up. The prefetching loop has it too, but has asked
	// for the lines by then.
	OneEntry bool `json:"one_entry_cache"`
	// HeaderAhead is how many packets ahead the headers are prefetched, with
	// and without the table's.
	HeaderAhead int `json:"header_ahead"`
	// Distance is how many packets ahead the bucket word is asked for, 1 to
	// 64; the page, where it is, half as many.
	Distance int `json:"distance"`
	// FrameInstructions is spent once a frame, and CodeLines lines of code are
	// fetched, one by one, from the second level: the other nodes have taken
	// the instruction cache.
	FrameInstructions int `json:"frame_instructions"`
	CodeLines         int `json:"code_lines"`
	// OtherLines are the cache lines that the other nodes touch for each packet
	// of a frame, and OtherFixed those that they touch for a frame, of a region
	// of RegionBytes that they go round in.
	OtherLines  int `json:"other_lines"`
	OtherFixed  int `json:"other_fixed"`
	RegionBytes int `json:"region_bytes"`
	// HeaderLevel is where a packet's header lies when it is first asked for:
	// the level's number, from 0.
	HeaderLevel int `json:"header_level"`
}

// DefaultNode is the l2_fwd node. Frames of 256, headers prefetched 4 packets
// ahead, the one-entry cache: the node's, December 2019. OtherInstructions is
// calibrated (see Figures), all else chosen: a CRC instruction takes 3 clocks and
// a key's assembly some more; other nodes touch four lines for each packet
// (buffer head and data) and as much again for themselves.
func DefaultNode() Node {
	return Node{
		Frame: 256, OtherInstructions: CalibratedInstructions, AfterInstructions: 20,
		HashInstructions: 8, HashClocks: 7, CompareInstructions: 16, PrefetchInstructions: 3,
		OneEntry: true, HeaderAhead: 4, Distance: 8,
		FrameInstructions: 150, CodeLines: 24,
		OtherLines: 4, OtherFixed: 1024, RegionBytes: 320 << 10, HeaderLevel: 1,
	}
}

// Validate tells the first value that is out of range; the error wraps ErrSpec.
func (n Node) Validate() error {
	for _, c := range []struct {
		what      string
		v         float64
		low, high float64
	}{
		{"frame", float64(n.Frame), 1, MaxBatch},
		{"other instructions", float64(n.OtherInstructions), 0, 1e5},
		{"after instructions", float64(n.AfterInstructions), 0, 1e5},
		{"hash instructions", float64(n.HashInstructions), 0, 1e4},
		{"hash clocks", n.HashClocks, 0, 1e4},
		{"compare instructions", float64(n.CompareInstructions), 0, 1e4},
		{"prefetch instructions", float64(n.PrefetchInstructions), 0, 1e4},
		{"header ahead", float64(n.HeaderAhead), 0, 64},
		{"distance", float64(n.Distance), 1, 64},
		{"frame instructions", float64(n.FrameInstructions), 0, 1e5},
		{"code lines", float64(n.CodeLines), 0, 1e5},
		{"other lines", float64(n.OtherLines), 0, 1e4},
		{"other fixed lines", float64(n.OtherFixed), 0, 1e6},
		{"region bytes", float64(n.RegionBytes), 64, maxBytes},
		{"header level", float64(n.HeaderLevel), 0, 8},
	} {
		if !(c.v >= c.low && c.v <= c.high) {
			return fmt.Errorf("%w: node: %s is %g, want %g to %g", ErrSpec, c.what, c.v, c.low, c.high)
		}
	}
	return nil
}

// Flows is a table with stations and the order in which packets go to them.
type Flows struct {
	t      *Table
	bucket []uint64 // by flow: where its bucket word lies, and its page
	page   []uint64
	order  Order
	rand   *rand.Rand
	last   int
}

// NewFlows fills a table of the given spec with n stations and sends to them in
// the order given. The seed draws their addresses, and the random order.
func NewFlows(spec Spec, n int, order Order, seed uint64) (*Flows, error) {
	if n < 1 || n > 1<<24 {
		return nil, fmt.Errorf("%w: %d flows, want 1 to %d", ErrSpec, n, 1<<24)
	}
	if order != RoundRobin && order != Random {
		return nil, fmt.Errorf("%w: order %q, want %s or %s", ErrSpec, order, RoundRobin, Random)
	}
	t, err := New(spec)
	if err != nil {
		return nil, err
	}
	f := &Flows{t: t, order: order, rand: rand.New(rand.NewPCG(seed, 0x6269686173680000)), last: -1}
	key := make([]byte, spec.KeyBytes)
	for t.Len() < n {
		for i := 0; i < len(key); i += 8 {
			binary.BigEndian.PutUint64(key[i:], f.rand.Uint64()&^(3<<56)|2<<56)
		}
		if err := t.Add(key, uint64(t.Len())); err != nil {
			return nil, fmt.Errorf("%d flows: %w", n, err)
		}
	}
	t.All(func(k []byte, _ uint64) bool {
		bucket, page, _ := t.Place(t.Hash(k))
		f.bucket = append(f.bucket, uint64(bucket))
		f.page = append(f.page, uint64(page))
		return true
	})
	f.rand.Shuffle(n, func(i, j int) {
		f.bucket[i], f.bucket[j] = f.bucket[j], f.bucket[i]
		f.page[i], f.page[j] = f.page[j], f.page[i]
	})
	return f, nil
}

// Table is the table behind the flows.
func (f *Flows) Table() *Table { return f.t }

// next is the number of the next packet's flow.
func (f *Flows) next() int {
	if f.order == Random {
		return f.rand.IntN(len(f.bucket))
	}
	f.last = (f.last + 1) % len(f.bucket)
	return f.last
}

// Clocks is what a run of the model gives.
type Clocks struct {
	PerPacket float64 `json:"clocks_per_packet"`
	// Nanoseconds is PerPacket in time.
	Nanoseconds float64 `json:"ns_per_packet"`
	// Hits is the share of the node's own accesses that each level answered,
	// memory last; prefetches count as accesses.
	Hits []float64 `json:"hits"`
}

// Addresses of what is not the table, far from it and from each other.
const (
	headersAt = 1 << 40
	regionAt  = 1 << 44
)

// settleFrames and settleTurns say how much is played before the clock starts:
// so many frames, and each flow so many times (chosen).
const (
	settleFrames = 16
	settleTurns  = 2
	minFrames    = 48
)

// Run plays frames of packets of the flows through the node on a processor, with
// one way of prefetching, and gives the mean clocks a packet. The flows go on
// where they were. The error wraps ErrSpec.
func (n Node) Run(p Processor, f *Flows, pre Prefetch) (Clocks, error) {
	if err := n.Validate(); err != nil {
		return Clocks{}, err
	}
	if err := p.Validate(); err != nil {
		return Clocks{}, err
	}
	if int(pre) >= NumPrefetches {
		return Clocks{}, fmt.Errorf("%w: %v %d", ErrSpec, pre, pre)
	}
	r := &nodeRun{n: n, f: f, pre: pre, w: newWindow(&p), cached: -1}
	r.flows = make([]int, n.Frame)
	turn := (len(f.bucket) + n.Frame - 1) / n.Frame
	for range settleFrames + settleTurns*turn {
		r.frame()
	}
	clear(r.w.accesses)
	frames := max(minFrames, turn, minFrames*32/n.Frame)
	total := 0.0
	for range frames {
		total += r.frame()
	}
	c := Clocks{PerPacket: total / float64(frames*n.Frame)}
	c.Nanoseconds = c.PerPacket / p.ClockMHz * 1e3
	var all uint64
	for _, a := range r.w.accesses {
		all += a
	}
	for _, a := range r.w.accesses {
		c.Hits = append(c.Hits, float64(a)/float64(max(all, 1)))
	}
	return c, nil
}

// nodeRun is a node at work.
type nodeRun struct {
	n      Node
	f      *Flows
	pre    Prefetch
	w      *window
	flows  []int // of the packets of a frame
	cached int   // flow in the one-entry cache
	region uint64
	header uint64
}

// frame processes one frame and returns its clocks.
func (r *nodeRun) frame() float64 {
	n, w := &r.n, r.w
	for i := range r.flows {
		r.flows[i] = r.f.next()
	}
	r.otherNodes()
	base := r.header
	r.header += uint64(n.Frame)
	headers := func(i int) uint64 { return headersAt + (base+uint64(i))%headerBuffers*headerStride }
	for i := range n.Frame {
		r.place(headers(i))
	}
	start := w.drain()
	ready := w.work(n.FrameInstructions, start, 1) + float64(n.CodeLines)*w.lat[1]
	w.work(1, ready, 0)
	w.drain()
	ahead := 0
	if r.pre != NoPrefetch {
		ahead = n.Distance
	}
	for i := -ahead - n.HeaderAhead; i < n.Frame; i++ {
		if j := i + ahead + n.HeaderAhead; j < n.Frame && n.HeaderAhead > 0 {
			w.prefetch(headers(j), 0)
		}
		if j := i + ahead; ahead > 0 && j >= 0 && j < n.Frame {
			at := w.load(headers(j), 0)
			hash := w.work(n.HashInstructions, at, n.HashClocks)
			addr := w.work(n.PrefetchInstructions, hash, 1)
			w.prefetch(r.f.bucket[r.flows[j]], addr)
		}
		if j := i + (ahead+1)/2; r.pre == PrefetchBoth && j >= 0 && j < n.Frame {
			at := w.load(r.f.bucket[r.flows[j]], 0)
			w.prefetch(r.f.page[r.flows[j]], w.work(n.PrefetchInstructions, at, 1))
		}
		if i >= 0 {
			r.packet(headers(i), r.flows[i])
		}
	}
	return w.drain() - start
}

// packet is the loop's body for one packet.
func (r *nodeRun) packet(header uint64, flow int) {
	n, w := &r.n, r.w
	at := w.load(header, 0)
	after := min(n.AfterInstructions, n.OtherInstructions)
	w.work(n.OtherInstructions-after, at, 1)
	if n.OneEntry && flow == r.cached {
		w.work(after, w.work(2, at, 1), 1) // compared with the cached address, and equal
		return
	}
	r.cached = flow
	hash := at
	if r.pre == NoPrefetch {
		hash = w.work(n.HashInstructions, at, n.HashClocks)
	}
	word := w.load(r.f.bucket[flow], hash)
	pairs := w.load(r.f.page[flow], w.work(4, word, 2))
	w.work(after, w.work(n.CompareInstructions, pairs, 3), 1)
}

// The packets' headers lie in buffers that are used in turn (chosen: 1,024 of
// 2 KiB, with room for a buffer's own head).
const (
	headerBuffers = 1024
	headerStride  = 2048 + 128
)

// otherNodes touches what the other nodes touch between two frames of this one.
func (r *nodeRun) otherNodes() {
	n := &r.n
	line := uint64(1) << r.w.c.shift
	lines := uint64(n.RegionBytes) / line
	for range n.OtherLines*n.Frame + n.OtherFixed {
		r.w.c.access(regionAt + r.region%max(lines, 1)*line)
		r.region++
	}
}

// place puts a header's line into HeaderLevel and those behind it: the network
// card, or the node before, has written it.
func (r *nodeRun) place(addr uint64) {
	tag := addr>>r.w.c.shift + 1
	for i := range r.w.c.levels {
		if i >= r.n.HeaderLevel {
			r.w.c.levels[i].touch(tag)
		}
	}
}
