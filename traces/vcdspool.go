package traces

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"

	"spinesim/sim/des"
)

// vcdRun is how many changes are sorted at a time (chosen: 24 MB).
const vcdRun = 1 << 20

// vcdSpool sorts changes by time, those of one time in the order they were
// added, in bounded memory. What fits into one run never leaves memory.
type vcdSpool struct {
	run   []vcdChange
	limit int // of run; 0 means vcdRun
	temp  *os.File
	at    int64
	runs  []vcdSorted
	buf   []byte
}

// vcdSorted is a sorted run in the temporary file.
type vcdSorted struct{ from, n int64 }

func (s *vcdSpool) add(c vcdChange) error {
	if s.limit == 0 {
		s.limit = vcdRun
	}
	if len(s.run) == s.limit {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.run = append(s.run, c)
	return nil
}

func (s *vcdSpool) sort() {
	slices.SortStableFunc(s.run, func(a, b vcdChange) int { return cmpTime(a.at, b.at) })
}

func (s *vcdSpool) spill() error {
	if s.temp == nil {
		f, err := os.CreateTemp("", "spinesim-*.vcd")
		if err != nil {
			return fmt.Errorf("sort changes: %w", err)
		}
		s.temp = f
	}
	s.sort()
	s.buf = s.buf[:0]
	last := des.Time(0)
	from := s.at
	for i := range s.run {
		c := &s.run[i]
		s.buf = binary.AppendUvarint(s.buf, uint64(c.at-last))
		last = c.at
		s.buf = binary.AppendUvarint(s.buf, uint64(c.signal)<<2|uint64(c.op))
		s.buf = binary.AppendUvarint(s.buf, uint64(c.value))
		if len(s.buf) >= lineBuffer || i == len(s.run)-1 {
			if _, err := s.temp.Write(s.buf); err != nil {
				return fmt.Errorf("sort changes: %w", err)
			}
			s.at += int64(len(s.buf))
			s.buf = s.buf[:0]
		}
	}
	s.runs = append(s.runs, vcdSorted{from, s.at - from})
	s.run = s.run[:0]
	return nil
}

// vcdSource is a run being merged.
type vcdSource struct {
	r    *bufio.Reader
	age  int // number of the run
	head vcdChange
}

// before orders sources by their next change, and equals by their age.
func (s *vcdSource) before(o *vcdSource) bool {
	return s.head.at < o.head.at || s.head.at == o.head.at && s.age < o.age
}

func (s *vcdSource) next() (bool, error) {
	d, err := binary.ReadUvarint(s.r)
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	signal, err := binary.ReadUvarint(s.r)
	if err != nil {
		return false, err
	}
	value, err := binary.ReadUvarint(s.r)
	if err != nil {
		return false, err
	}
	s.head = vcdChange{s.head.at + des.Time(d), uint32(signal >> 2), vcdOp(signal & 3), uint32(value)}
	return true, nil
}

// merge passes all changes on in order.
func (s *vcdSpool) merge(do func(*vcdChange)) error {
	if len(s.runs) == 0 {
		s.sort()
		for i := range s.run {
			do(&s.run[i])
		}
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	s.run = nil
	// The sources stay sorted. Runs hardly overlap, so most of the time the
	// first one stays the first.
	var sources []*vcdSource
	insert := func(src *vcdSource) {
		i, _ := slices.BinarySearchFunc(sources, src, func(a, b *vcdSource) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		sources = slices.Insert(sources, i, src)
	}
	for i, run := range s.runs {
		src := &vcdSource{age: i, r: bufio.NewReaderSize(io.NewSectionReader(s.temp, run.from, run.n), 16<<10)}
		if ok, err := src.next(); err != nil {
			return fmt.Errorf("sort changes: %w", err)
		} else if ok {
			insert(src)
		}
	}
	for len(sources) > 0 {
		src := sources[0]
		do(&src.head)
		ok, err := src.next()
		if err != nil {
			return fmt.Errorf("sort changes: %w", err)
		}
		switch {
		case !ok:
			sources = sources[1:]
		case len(sources) > 1 && sources[1].before(src):
			sources = sources[1:]
			insert(src)
		}
	}
	return nil
}

func (s *vcdSpool) close() {
	if s.temp != nil {
		s.temp.Close()
		os.Remove(s.temp.Name())
		s.temp = nil
	}
	s.run = nil
}
