package traces

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	"spinesim/sim/des"
)

// VCDWriter writes a value change dump (IEEE 1364) in steps of 1 ps, for wave
// form viewers: for each card the running handler (or "polls", or "idle"), the
// state of its DMA engine (busy from asking for the bus), its levels, and how
// often each mark of executed firmware was passed; for the bus, its owner. It is
// a view: it cannot be read back.
//
// The format wants changes in the order of time, and all signals named first,
// while records come by their end. So changes are collected, sorted in runs
// that go to a temporary file, and merged at Close.
type VCDWriter struct {
	w     io.Writer
	meta  *Meta
	ids   map[trackKey]uint32
	keys  []trackKey
	marks map[uint32]uint32 // passed so far, by signal
	spool vcdSpool
}

type vcdOp uint8

const (
	vcdSet   vcdOp = iota
	vcdBegin       // value begins to hold
	vcdEnd         // and ends
)

// vcdChange is one change of a signal.
type vcdChange struct {
	at     des.Time
	signal uint32
	op     vcdOp
	value  uint32
}

// What a processor does that is no Event, beyond all of them.
const (
	vcdPolls = 1<<8 + iota
	vcdStopped
)

// NewVCDWriter begins a dump, to be written to w at Close.
func NewVCDWriter(w io.Writer, meta *Meta) (*VCDWriter, error) {
	if _, err := meta.encode(); err != nil {
		return nil, err
	}
	return &VCDWriter{w: w, meta: meta.clone(), ids: map[trackKey]uint32{}, marks: map[uint32]uint32{}}, nil
}

func (v *VCDWriter) signal(k trackKey) uint32 {
	id, ok := v.ids[k]
	if !ok {
		id = uint32(len(v.keys))
		v.ids[k] = id
		v.keys = append(v.keys, k)
	}
	return id
}

func (v *VCDWriter) span(k trackKey, from, to des.Time, value uint32) error {
	if from < 0 || to < from {
		return fmt.Errorf("record from %d to %d ps: a dump has neither times before 0 nor negative spans", int64(from), int64(to))
	}
	s := v.signal(k)
	if from == to {
		return nil // it would not be seen
	}
	if err := v.spool.add(vcdChange{from, s, vcdBegin, value}); err != nil {
		return err
	}
	return v.spool.add(vcdChange{to, s, vcdEnd, value})
}

// Record takes r into account.
func (v *VCDWriter) Record(r *Record) error {
	switch r.Kind {
	case KindBox:
		return v.span(trackKey{class: trackHandler, card: r.Card}, r.Start, r.End, uint32(r.Event))
	case KindPolls:
		return v.span(trackKey{class: trackHandler, card: r.Card}, r.Start, r.End, vcdPolls)
	case KindStop:
		if r.End < 0 {
			return fmt.Errorf("stop at %d ps: a dump has no times before 0", int64(r.End))
		}
		return v.spool.add(vcdChange{r.End, v.signal(trackKey{class: trackHandler, card: r.Card}), vcdBegin, vcdStopped})
	case KindMark:
		if r.End < 0 {
			return fmt.Errorf("mark at %d ps: a dump has no times before 0", int64(r.End))
		}
		signal := v.signal(trackKey{class: trackMarks, card: r.Card, sub: uint8(min(r.Count, NumMarks))})
		v.marks[signal]++
		return v.spool.add(vcdChange{r.End, signal, vcdSet, v.marks[signal]})
	case KindTransfer:
		if err := v.span(trackKey{class: trackBus}, r.Start, r.End, uint32(r.Card)); err != nil {
			return err
		}
		from := r.Start
		if r.Ready > 0 && r.Ready < from {
			from = r.Ready
		}
		return v.span(trackKey{class: trackDMA, card: r.Card}, from, r.End, 1)
	case KindLevel:
		if r.End < 0 {
			return fmt.Errorf("level at %d ps: a dump has no times before 0", int64(r.End))
		}
		return v.spool.add(vcdChange{r.End, v.signal(trackOf(r)), vcdSet, r.Count})
	}
	return nil
}

// vcdName makes a name of letters, digits and underscores.
func vcdName(s string) string {
	b := []byte(s)
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9') {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "_"
	}
	return string(b)
}

func (v *VCDWriter) signalName(k trackKey) string {
	switch k.class {
	case trackHandler:
		return "processor"
	case trackDMA:
		return "dma_busy"
	case trackBus:
		return "owner"
	case trackMarks:
		if int(k.sub) < len(markNames) {
			return markNames[k.sub]
		}
		return "other_marks"
	}
	return vcdName(k.name(v.meta))
}

// vcdID is a signal's short name, of printable characters.
func vcdID(b []byte, n uint32) []byte {
	for {
		b = append(b, byte('!'+n%94))
		if n /= 94; n == 0 {
			return b
		}
		n--
	}
}

// vcdState is what a signal shows: the latest of what is going on at once.
type vcdState struct {
	active []uint32
	level  uint32
	dirty  bool
	shown  []byte // last value written
}

// Close writes the dump; it does not close w.
func (v *VCDWriter) Close() error {
	defer v.spool.close()
	out := bufio.NewWriterSize(v.w, lineBuffer)
	v.header(out)
	states := make([]vcdState, len(v.keys))
	var dirty []uint32
	var line []byte
	now, first := des.Time(0), true
	flush := func() {
		line = line[:0]
		for _, s := range dirty {
			states[s].dirty = false
			line = v.change(line, s, &states[s])
		}
		dirty = dirty[:0]
		if len(line) > 0 {
			out.WriteByte('#')
			out.WriteString(strconv.FormatInt(int64(now), 10))
			out.WriteByte('\n')
			out.Write(line)
		}
	}
	err := v.spool.merge(func(c *vcdChange) {
		if first || c.at != now {
			flush()
			if first {
				// The values before anything happened, at the first time.
				fmt.Fprintf(out, "#%d\n$dumpvars\n", int64(c.at))
				line = line[:0]
				for s := range states {
					line = v.change(line, uint32(s), &states[s])
				}
				out.Write(line)
				out.WriteString("$end\n")
			}
			now, first = c.at, false
		}
		s := &states[c.signal]
		switch c.op {
		case vcdSet:
			s.level = c.value
			s.active = append(s.active[:0], 1) // known from now on
		case vcdBegin:
			s.active = append(s.active, c.value)
		case vcdEnd:
			// Equal values are alike, so the newest will do.
			if i := lastIndex(s.active, c.value); i >= 0 {
				s.active = slices.Delete(s.active, i, i+1)
			}
		}
		if !s.dirty {
			s.dirty = true
			dirty = append(dirty, c.signal)
		}
	})
	if err != nil {
		return err
	}
	flush()
	return out.Flush()
}

func lastIndex(s []uint32, v uint32) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == v {
			return i
		}
	}
	return -1
}

// header names the signals, the bus first, then card by card, a card's in the
// order of their tracks. What it cannot write shows at the next Flush.
func (v *VCDWriter) header(out *bufio.Writer) {
	fmt.Fprintf(out, "$version %s $end\n", vcdName(v.meta.Program))
	fmt.Fprintf(out, "$comment scenario %s hash %s seed %d run %s $end\n",
		vcdName(v.meta.Scenario), vcdName(v.meta.ScenarioHash), v.meta.Seed, vcdName(v.meta.RunID))
	out.WriteString("$timescale 1 ps $end\n")
	order := make([]uint32, len(v.keys))
	for i := range order {
		order[i] = uint32(i)
	}
	scope := func(k trackKey) int {
		if k.class == trackBus {
			return -1
		}
		return int(k.card)
	}
	slices.SortFunc(order, func(i, j uint32) int {
		a, b := v.keys[i], v.keys[j]
		return cmp.Or(cmp.Compare(scope(a), scope(b)), cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.sub, b.sub))
	})
	in := -2
	var scopes []string
	for _, s := range order {
		k := v.keys[s]
		if scope(k) != in {
			if in != -2 {
				out.WriteString("$upscope $end\n")
			}
			in = scope(k)
			name := "bus"
			if in >= 0 {
				name = vcdName(v.meta.CardName(k.card))
			}
			for slices.Contains(scopes, name) { // two cards of like names
				name += "_" + strconv.Itoa(in)
			}
			scopes = append(scopes, name)
			fmt.Fprintf(out, "$scope module %s $end\n", name)
		}
		kind := "integer 32"
		switch k.class {
		case trackHandler, trackBus:
			kind = "string 1"
		case trackDMA:
			kind = "wire 1"
		}
		fmt.Fprintf(out, "$var %s %s %s $end\n", kind, vcdID(nil, s), v.signalName(k))
	}
	if in != -2 {
		out.WriteString("$upscope $end\n")
	}
	out.WriteString("$enddefinitions $end\n")
}

// change appends a signal's value, if it is another than was written last.
func (v *VCDWriter) change(b []byte, signal uint32, s *vcdState) []byte {
	at := len(b)
	last, ok := uint32(0), len(s.active) > 0
	if ok {
		last = s.active[len(s.active)-1]
	}
	switch k := v.keys[signal]; {
	case k.class == trackDMA:
		if ok {
			b = append(b, '1')
		} else {
			b = append(b, '0')
		}
	case k.class == trackLevel && !ok:
		b = append(b, "bx "...)
	case k.class == trackLevel, k.class == trackMarks: // of marks none was passed before the first
		b = append(strconv.AppendUint(append(b, 'b'), uint64(s.level), 2), ' ')
	default:
		name := "idle"
		switch {
		case !ok:
		case last == vcdPolls:
			name = "polls"
		case last == vcdStopped:
			name = "stopped"
		case k.class == trackHandler:
			name = vcdName(Event(last).String())
		default:
			name = vcdName(v.meta.CardName(uint8(last)))
		}
		b = append(append(append(b, 's'), name...), ' ')
	}
	if slices.Equal(b[at:], s.shown) {
		return b[:at]
	}
	s.shown = append(s.shown[:0], b[at:]...)
	return append(vcdID(b, signal), '\n')
}

// abort lets go of the temporary file of a dump that will not be finished.
func (v *VCDWriter) abort() { v.spool.close() }
