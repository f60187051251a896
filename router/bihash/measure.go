package bihash

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// MeasureOptions steer Measure. The zero value takes every default.
type MeasureOptions struct {
	// Flows are the numbers of stations; nil takes 1, 100, 1,000, 10,000,
	// 100,000 and 1,000,000.
	Flows []int
	// Frames is how many frames of 256 look-ups each loop is timed over in a
	// round, 1 to 1e6; 0 takes 200.
	Frames int
	// Rounds is how often, 1 to 1000, in turn with the other loops; 0 takes 7.
	// The median of a round's mean counts.
	Rounds int
	// EvictBytes are read between frames, as other work would, 0 to 1 GiB;
	// below 0 nothing is, and 0 takes 128 KiB.
	EvictBytes int
	// Progress, where not nil, is told before each number of flows.
	Progress func(i, n int)
}

// MeasuredLoop is a way of looking up, timed.
type MeasuredLoop struct {
	Name string  `json:"name"`
	NS   float64 `json:"ns_per_lookup"`
	// Saving is the share of the plain loop's time that it saves.
	Saving float64 `json:"saving"`
}

// MeasuredFlows is every loop with one number of flows.
type MeasuredFlows struct {
	Flows int            `json:"flows"`
	Bytes int            `json:"touched_bytes"` // of the table
	Loops []MeasuredLoop `json:"loops"`
}

// MeasuredHash is the multiplicative hash of keys of one length, in a loop and
// unrolled by hand.
type MeasuredHash struct {
	KeyBytes int     `json:"key_bytes"`
	LoopNS   float64 `json:"loop_ns"`
	UnrollNS float64 `json:"unrolled_ns"`
	Saving   float64 `json:"saving"`
	CRCNS    float64 `json:"crc32c_ns"`
}

// MeasureReport is what the running machine did.
type MeasureReport struct {
	GoVersion string          `json:"go_version"`
	Processor string          `json:"architecture"`
	Frames    int             `json:"frames"`
	Rounds    int             `json:"rounds"`
	Evict     int             `json:"evict_bytes"`
	Flows     []MeasuredFlows `json:"flows"`
	Hashes    []MeasuredHash  `json:"hashes"`
	Note      string          `json:"note"`
}

const measureNote = "Go has no prefetch instruction: the pipelined loops read a byte of the line ahead of its use, which fills the scheduler where a prefetch would retire. Times are of look-ups alone, between readings of other memory."

// Measure times look-ups on the running machine: a plain loop with a one-entry
// cache, one in stages (Pipeline.Search) and software-pipelined ones
// (Pipeline.SearchAhead). With the defaults it takes some 15 seconds. It returns
// early, with ctx's error, between rounds.
func Measure(ctx context.Context, o MeasureOptions) (*MeasureReport, error) {
	if o.Flows == nil {
		o.Flows = []int{1, 100, 1000, 10000, 100000, 1000000}
	}
	if o.Frames == 0 {
		o.Frames = 200
	}
	if o.Rounds == 0 {
		o.Rounds = 7
	}
	switch {
	case o.EvictBytes == 0:
		o.EvictBytes = 128 << 10
	case o.EvictBytes < 0:
		o.EvictBytes = 0
	}
	if o.Frames < 1 || o.Frames > 1e6 || o.Rounds < 1 || o.Rounds > 1000 || o.EvictBytes > maxBytes {
		return nil, fmt.Errorf("%w: %d frames (want 1 to 1000000), %d rounds (1 to 1000), %d bytes read between (up to %d)", ErrSpec, o.Frames, o.Rounds, o.EvictBytes, maxBytes)
	}
	r := &MeasureReport{
		GoVersion: runtime.Version(), Processor: runtime.GOARCH, Frames: o.Frames, Rounds: o.Rounds, Evict: o.EvictBytes,
		Note: measureNote,
	}
	evict := make([]byte, o.EvictBytes)
	for i, n := range o.Flows {
		if o.Progress != nil {
			o.Progress(i, len(o.Flows))
		}
		m, err := measureFlows(ctx, n, &o, evict)
		if err != nil {
			return nil, err
		}
		r.Flows = append(r.Flows, m)
	}
	r.Hashes = measureHashes()
	return r, nil
}

// searcher looks up the stations of a frame.
type searcher struct {
	name string
	run  func(keys []byte, values []uint64) int
}

func measureFlows(ctx context.Context, n int, o *MeasureOptions, evict []byte) (MeasuredFlows, error) {
	spec := DefaultSpec()
	spec.Bytes = max(spec.Bytes, 128*n)
	f, err := NewFlows(spec, n, RoundRobin, flowSeed)
	if err != nil {
		return MeasuredFlows{}, err
	}
	t := f.Table()
	// Frames of keys, as packets would bring them, in an order that memory does
	// not know.
	var stations []byte
	t.All(func(k []byte, _ uint64) bool {
		stations = append(stations, k...)
		return true
	})
	f.rand.Shuffle(n, func(i, j int) {
		a, b := stations[i*8:i*8+8], stations[j*8:j*8+8]
		x, y := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
		binary.LittleEndian.PutUint64(a, y)
		binary.LittleEndian.PutUint64(b, x)
	})
	// Enough of them for a round, and every station.
	frames := max(o.Frames, (n+MaxBatch-1)/MaxBatch)
	keys := make([]byte, 0, frames*MaxBatch*8)
	for i := range frames * MaxBatch {
		at := i % n * 8
		keys = append(keys, stations[at:at+8]...)
	}
	at := 0
	values := make([]uint64, MaxBatch)
	p := NewPipeline(t)
	loops := []searcher{
		{"plain", func(keys []byte, values []uint64) int { return plain(t, keys, values) }},
		{"in stages", p.Search},
		{"4 ahead", func(keys []byte, values []uint64) int { return p.SearchAhead(keys, values, 4) }},
		{"16 ahead", func(keys []byte, values []uint64) int { return p.SearchAhead(keys, values, 16) }},
	}
	times := make([][]float64, len(loops))
	var sum byte
	for range o.Rounds {
		for l := range loops {
			if err := ctx.Err(); err != nil {
				return MeasuredFlows{}, err
			}
			var total time.Duration
			for range o.Frames {
				for i := 0; i < len(evict); i += 64 {
					sum += evict[i]
				}
				frame := keys[at*MaxBatch*8 : (at+1)*MaxBatch*8]
				at = (at + 1) % frames
				begun := time.Now()
				found := loops[l].run(frame, values)
				total += time.Since(begun)
				if found != MaxBatch {
					return MeasuredFlows{}, fmt.Errorf("%s found %d of %d stations", loops[l].name, found, MaxBatch)
				}
			}
			times[l] = append(times[l], float64(total.Nanoseconds())/float64(o.Frames*MaxBatch))
		}
	}
	if len(evict) > 0 {
		evict[0] = sum
	}
	m := MeasuredFlows{Flows: n, Bytes: t.Stats().TouchedBytes}
	for l := range loops {
		slices.Sort(times[l])
		ns := times[l][len(times[l])/2]
		row := MeasuredLoop{Name: loops[l].name, NS: ns}
		if l > 0 {
			row.Saving = 1 - ns/m.Loops[0].NS
		}
		m.Loops = append(m.Loops, row)
	}
	return m, nil
}

// plain looks keys up one by one, with a one-entry cache.
func plain(t *Table, keys []byte, values []uint64) (found int) {
	last, value, known := uint64(0), uint64(0), false
	for i := range values {
		key := keys[i*8 : i*8+8]
		k := binary.LittleEndian.Uint64(key)
		if !known || k != last {
			v, ok := t.Search(key)
			last, value, known = k, v, ok
		}
		values[i] = Empty
		if known {
			values[i] = value
			found++
		}
	}
	return found
}

// Unrolled forms of multiply, one for each length of key.
func multiply8(k []byte) uint64  { return step(0, k[:8]) }
func multiply16(k []byte) uint64 { k = k[:16]; return step(step(0, k), k[8:]) }
func multiply24(k []byte) uint64 { k = k[:24]; return step(step(step(0, k), k[8:]), k[16:]) }
func multiply40(k []byte) uint64 {
	k = k[:40]
	return step(step(step(step(step(0, k), k[8:]), k[16:]), k[24:]), k[32:])
}
func multiply48(k []byte) uint64 {
	k = k[:48]
	return step(step(step(step(step(step(0, k), k[8:]), k[16:]), k[24:]), k[32:]), k[40:])
}

// unrolled are the unrolled hashes, by KeySizes.
var unrolled = [...]func([]byte) uint64{multiply8, multiply16, multiply24, multiply40, multiply48}

func measureHashes() []MeasuredHash {
	const keys, rounds = 4096, 31
	var out []MeasuredHash
	for i, k := range keySizes {
		p := make([]byte, keys*k)
		for j := range p {
			p[j] = byte(j * 7)
		}
		timed := func(f func([]byte) uint64) float64 {
			best := time.Duration(1 << 62)
			var sink uint64
			for range rounds {
				begun := time.Now()
				for j := 0; j < len(p); j += k {
					sink += f(p[j : j+k])
				}
				best = min(best, time.Since(begun))
			}
			p[0] = byte(sink)
			return float64(best.Nanoseconds()) / keys
		}
		m := MeasuredHash{KeyBytes: k, LoopNS: timed(multiply), UnrollNS: timed(unrolled[i]), CRCNS: timed(CRC32C.Sum)}
		m.Saving = 1 - m.UnrollNS/m.LoopNS
		out = append(out, m)
	}
	return out
}
