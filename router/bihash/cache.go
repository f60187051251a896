package bihash

import "math/bits"

// caches is a hierarchy of set-associative caches. A line that is fetched enters
// every level; levels do not drive lines out of each other.
type caches struct {
	shift  uint
	levels []cacheLevel
}

type cacheLevel struct {
	sets uint64
	ways int
	tags []uint64 // by set, the most recently used first; 0 is no line
	draw uint64   // state of the pseudo-random choice; 0 replaces the least recently used
}

func newCaches(p *Processor) *caches {
	c := &caches{shift: uint(bits.TrailingZeros(uint(p.LineBytes)))}
	for _, l := range p.Levels {
		n := l.Bytes / p.LineBytes
		level := cacheLevel{sets: uint64(n / l.Ways), ways: l.Ways, tags: make([]uint64, n)}
		if l.Random {
			level.draw = golden
		}
		c.levels = append(c.levels, level)
	}
	return c
}

// access brings the line of an address to the front of every level and returns
// the level that had it; the number of levels is memory.
func (c *caches) access(addr uint64) int {
	tag := addr>>c.shift + 1
	at := len(c.levels)
	for i := range c.levels {
		if c.levels[i].touch(tag) && i < at {
			at = i
		}
	}
	return at
}

// touch moves a line to the front of its set and tells whether it was there.
func (l *cacheLevel) touch(tag uint64) bool {
	base := int(tag%l.sets) * l.ways
	set := l.tags[base : base+l.ways]
	for i, t := range set {
		if t == tag {
			copy(set[1:i+1], set[:i])
			set[0] = tag
			return true
		}
	}
	victim := l.ways - 1
	if l.draw != 0 && set[victim] != 0 {
		// xorshift64
		l.draw ^= l.draw << 13
		l.draw ^= l.draw >> 7
		l.draw ^= l.draw << 17
		victim = int(l.draw % uint64(l.ways))
	}
	copy(set[1:victim+1], set[:victim])
	set[0] = tag
	return false
}
