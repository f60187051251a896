package sim

import (
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"slices"

	"spinesim/router"
	"spinesim/sim/des"
	"spinesim/sim/traffic"
	"spinesim/traces"
)

// RecordedArrivals are the packets that arrived in a record, for a run on
// another machine. A record tells when a packet came, where, how long it was,
// and which way it went; what its header said, only the scenario can tell whose
// traffic it was.
//
// Where the record holds its scenario, and the scenario's traffic is what the
// record shows, the packets are the scenario's own (Generated), those before and
// after a window of the run included: an arrival that the record lacks is taken
// to lie outside its window. Else times and lengths are the record's, and each
// packet has an address that leads where the record says it went; one that says
// nothing of it goes to the cards in turn.
type RecordedArrivals struct {
	// Generated tells that the traffic of the record's scenario is what the
	// record shows.
	Generated bool
	// Packets in the record, and the cards where they came in.
	Packets uint64
	Ingress []int

	path  string
	meta  *traces.Meta
	base  *Scenario   // whose route table gives addresses
	apart *Simulation // of base, for its sources and table
	own   bool        // base is the record's
	print uint64      // of all arrivals

	ways   [][]netip.Addr // addresses that lead to each card
	closed []io.Closer
}

// maxWays is how many addresses are kept for each card, to be used in turn
// (chosen).
const maxWays = 256

// maxAhead is how many arrivals are read ahead of the one whose way is looked
// for (chosen; beyond any FIFO and buffers in use).
const maxAhead = 1 << 14

// ReadArrivals reads the arrivals of a record. fallback is the machine for
// records that do not hold their scenario.
func ReadArrivals(path string, fallback *Scenario) (*RecordedArrivals, error) {
	r := &RecordedArrivals{path: path}
	var sum arrivals
	var last [256]des.Time
	err := scan(path, func(m *traces.Meta) error {
		r.meta = m
		sc, err := Recorded(m, path)
		if r.base, r.own = sc, sc != nil; sc == nil {
			r.base = fallback
		}
		return err
	}, func(rec *traces.Record) error {
		if rec.Kind != traces.KindEnter {
			return nil
		}
		r.Packets++
		if rec.Bytes < traffic.HeaderBytes {
			return inputErrorf("%s: arrival %d, at %v, has %d bytes, want at least %d", path, r.Packets, rec.End, rec.Bytes, traffic.HeaderBytes)
		}
		if rec.End < last[rec.Card] {
			return inputErrorf("%s: arrival %d, at %v on card %d, comes after one at %v: want them in order", path, r.Packets, rec.End, rec.Card, last[rec.Card])
		}
		last[rec.Card] = rec.End
		if c := int(rec.Card); !slices.Contains(r.Ingress, c) {
			r.Ingress = append(r.Ingress, c)
		}
		sum.add(rec)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.base == nil {
		return nil, inputErrorf("%s: the record does not hold its scenario, and no other is given", path)
	}
	if r.Packets == 0 {
		return nil, inputErrorf("%s: nothing arrives in the record", path)
	}
	slices.Sort(r.Ingress)
	if !r.own {
		machine := *r.base
		r.base = &machine
	}
	r.adapt(r.base)
	r.print = sum.print.Sum()
	r.apart = &Simulation{sc: r.base}
	if err := r.apart.buildTable(); err != nil {
		return nil, err
	}
	if r.own {
		if r.Generated, err = r.generated(); err != nil {
			return nil, err
		}
	}
	for _, c := range r.Ingress {
		if !r.Generated && c >= r.base.Cards {
			return nil, inputErrorf("%s: packets arrive at card %d, and the machine has %d", path, c, r.base.Cards)
		}
	}
	if !r.Generated {
		r.findWays()
	}
	return r, nil
}

// adapt lets packets come in where they do in the record.
func (r *RecordedArrivals) adapt(sc *Scenario) {
	for _, c := range r.Ingress {
		if !slices.Contains(sc.Traffic.Ingress, c) {
			sc.Traffic.Ingress = r.Ingress
			return
		}
	}
}

// saturating tells whether the record's source waited for the machine.
func (r *RecordedArrivals) saturating() bool {
	t := &r.base.Traffic
	if t.Capture != nil {
		return t.Capture.Pace == "link"
	}
	return t.Arrivals.Process == "saturating"
}

// generated follows the record along the traffic of its scenario: every arrival
// must be met, in order. The times of saturating sources are the machine's.
func (r *RecordedArrivals) generated() (bool, error) {
	var gen [256]*generator
	defer r.Close()
	for _, c := range r.Ingress {
		if !slices.Contains(r.base.Traffic.Ingress, c) {
			return false, nil
		}
		var err error
		if gen[c], err = r.generator(c); err != nil {
			return false, err
		}
	}
	if r.saturating() {
		return true, nil
	}
	all := true
	err := scan(r.path, nil, func(rec *traces.Record) error {
		if rec.Kind != traces.KindEnter {
			return nil
		}
		ok, err := gen[rec.Card].meet(rec)
		if err == nil && !ok {
			all = false
			err = errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return all, err
}

// generator is the traffic that a scenario makes for a card.
type generator struct {
	src   traffic.Source
	next  traffic.Arrival
	some  bool // next holds a packet
	left  uint64
	bound bool // left counts
}

func (r *RecordedArrivals) generator(card int) (*generator, error) {
	src, _, err := r.apart.source(card)
	if err != nil {
		return nil, err
	}
	if c, ok := src.(io.Closer); ok {
		r.closed = append(r.closed, c)
	}
	g := &generator{left: r.base.Traffic.Packets, bound: r.base.Traffic.Packets > 0}
	if g.src, err = r.apart.framed(src); err != nil {
		return nil, &InputError{err}
	}
	return g, g.advance()
}

func (g *generator) advance() error {
	for {
		if g.some = false; g.bound && g.left == 0 {
			return nil
		}
		ok, err := g.src.Next(&g.next)
		if err != nil || !ok {
			return inputOr(err)
		}
		if g.next.Skip == "" {
			g.left--
			g.some = true
			return nil
		}
	}
}

// meet goes on to the recorded arrival's time, and tells whether that very
// packet comes then. The generator then stands behind it.
func (g *generator) meet(rec *traces.Record) (bool, error) {
	for g.some && g.next.At < rec.End {
		if err := g.advance(); err != nil {
			return false, err
		}
	}
	if !g.some || g.next.At != rec.End || uint32(g.next.Bytes) != rec.Bytes {
		return false, nil
	}
	return true, g.advance()
}

// findWays looks up addresses that lead to each card.
func (r *RecordedArrivals) findWays() {
	r.ways = make([][]netip.Addr, r.base.Cards)
	if n := r.base.Traffic.Stations; n > 0 {
		for c := range r.ways {
			a := stationPrefix(c, n).Addr()
			for range min(n, maxWays) {
				r.ways[c] = append(r.ways[c], a)
				a = a.Next()
			}
		}
		return
	}
	for _, x := range router.WithoutDefault(r.apart.routes) {
		a := x.Prefix.Addr()
		hop, ok := r.apart.table.Lookup(a)
		if c := int(hop.Card); ok && c < len(r.ways) && len(r.ways[c]) < maxWays {
			r.ways[c] = append(r.ways[c], a)
		}
	}
}

// Source gives what arrived at a card; a card at which nothing did has an empty
// one. It is for Options.Arrivals of the run of any machine, where Generated is
// false; Close ends it.
func (r *RecordedArrivals) Source(card int) (traffic.Source, error) {
	rd, err := traces.OpenReader(r.path)
	if err != nil {
		return nil, &InputError{err}
	}
	r.closed = append(r.closed, rd)
	s := &recordedSource{of: r, card: uint8(card), rd: rd, known: map[uint64]int{}}
	s.header = traffic.DefaultHeader()
	s.header.TTL = uint8(r.base.Traffic.TTL)
	if n := r.base.Traffic.Stations; n > 0 {
		s.header.Source = stationPrefix(card, n)
	}
	s.made.buf = make([]byte, max(int(r.base.Traffic.Carry), traffic.HeaderBytes))
	if s.framed, err = r.apart.framed(&s.made); err != nil {
		return nil, &InputError{err}
	}
	if r.own && !r.saturating() && slices.Contains(r.base.Traffic.Ingress, card) {
		if s.gen, err = r.generator(card); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Close closes the files of all sources given so far.
func (r *RecordedArrivals) Close() error {
	var err error
	for _, c := range r.closed {
		err = errors.Join(err, c.Close())
	}
	r.closed = nil
	return err
}

// recordedSource reads what arrived at a card from a record.
type recordedSource struct {
	of     *RecordedArrivals
	card   uint8
	rd     traces.Reader
	ended  bool
	ahead  []recordedArrival // those from head on
	head   int
	first  int            // number of ahead[0]
	known  map[uint64]int // numbers of those in ahead, by packet
	gen    *generator
	header traffic.Header
	turn   [256]int // address used next, by card
	next   int      // card in turn
	id     uint16
	made   madePacket
	framed traffic.Source
}

// recordedArrival is an arrival and where the packet went.
type recordedArrival struct {
	rec traces.Record
	way way
	to  uint8
}

// way is which way a packet went, as far as an address decides.
type way uint8

const (
	wayUnknown way = iota
	wayCard        // out by card to
	wayNone        // no route
	wayExpired     // its time to live had run out
	wayEnded       // it says nothing, and will not
)

// Next implements traffic.Source.
func (s *recordedSource) Next(a *traffic.Arrival) (bool, error) {
	if err := s.read(func() bool { return s.waiting() > 0 }); err != nil || s.waiting() == 0 {
		return false, err
	}
	x := &s.ahead[s.head]
	if s.gen != nil {
		for s.gen.some && s.gen.next.At < x.rec.End {
			if err := s.gen.advance(); err != nil {
				return false, err
			}
		}
		if g := &s.gen.next; s.gen.some && g.At == x.rec.End && uint32(g.Bytes) == x.rec.Bytes {
			s.made.hold(g)
			*a = s.made.held
			s.pop()
			return true, s.gen.advance()
		}
	}
	if err := s.read(func() bool { return s.ahead[s.head].way != wayUnknown || s.waiting() >= maxAhead }); err != nil {
		return false, err
	}
	x = &s.ahead[s.head]
	ok, err := s.make(a, x)
	a.At, a.Bytes = x.rec.End, int(x.rec.Bytes)
	a.Data = a.Data[:min(len(a.Data), a.Bytes)]
	s.pop()
	return ok, err
}

func (s *recordedSource) waiting() int { return len(s.ahead) - s.head }

func (s *recordedSource) pop() {
	delete(s.known, s.ahead[s.head].rec.Packet)
	s.head++
	if s.head > 64 && 2*s.head > len(s.ahead) {
		n := copy(s.ahead, s.ahead[s.head:])
		s.ahead = s.ahead[:n]
		s.first += s.head
		s.head = 0
	}
}

// read reads on until enough holds or the record ends.
func (s *recordedSource) read(enough func() bool) error {
	var rec traces.Record
	for !s.ended && !enough() {
		ok, err := s.rd.Next(&rec)
		if err != nil {
			return &InputError{err}
		}
		if !ok {
			s.ended = true
			return nil
		}
		switch rec.Kind {
		case traces.KindEnter:
			if rec.Card != s.card {
				continue
			}
			x := recordedArrival{rec: rec}
			switch {
			case int(rec.Peer) < len(s.of.ways):
				x.way, x.to = wayCard, rec.Peer // by hand: the card that it is to leave by
			case rec.Packet == 0:
				x.way = wayEnded
			default:
				s.known[rec.Packet] = s.first + len(s.ahead)
			}
			s.ahead = append(s.ahead, x)
		case traces.KindDepart:
			s.went(rec.Packet, wayCard, rec.Peer)
		case traces.KindLeave:
			switch {
			case rec.Verdict == traces.VerdictForwarded && rec.Reason == traces.ReasonNone:
				s.went(rec.Packet, wayCard, rec.Card)
			case rec.Reason == traces.ReasonTTLExpired:
				s.went(rec.Packet, wayExpired, 0)
			case rec.Reason == traces.ReasonNoRoute:
				s.went(rec.Packet, wayNone, 0)
			default:
				s.went(rec.Packet, wayEnded, 0)
			}
		}
	}
	return nil
}

// went notes which way a packet went, unless that is known.
func (s *recordedSource) went(packet uint64, w way, to uint8) {
	n, ok := s.known[packet]
	if !ok {
		return
	}
	if x := &s.ahead[n-s.first]; x.way == wayUnknown {
		x.way, x.to = w, to
	}
}

// make makes a packet that goes where the recorded one went.
func (s *recordedSource) make(a *traffic.Arrival, x *recordedArrival) (bool, error) {
	h := s.header
	to := int(x.to)
	if x.way != wayCard || to >= len(s.of.ways) || len(s.of.ways[to]) == 0 {
		to = s.inTurn()
	}
	dst := uint32(0)
	switch {
	case x.way == wayNone:
		dst = unrouted(s.of.apart.table)
	case to >= 0:
		ways := s.of.ways[to]
		four := ways[s.turn[to]%len(ways)].As4()
		s.turn[to]++
		dst = binary.BigEndian.Uint32(four[:])
	}
	if x.way == wayExpired {
		h.TTL = 1
	}
	four := h.Source.Masked().Addr().As4()
	s.id++
	bytes := int(x.rec.Bytes) - s.of.base.linkOverhead()
	if bytes < traffic.HeaderBytes {
		return false, inputErrorf("%s: a packet of %d bytes at %v, want at least %d", s.of.path, x.rec.Bytes, x.rec.End, traffic.HeaderBytes+s.of.base.linkOverhead())
	}
	h.Write(s.made.buf, bytes, s.id, binary.BigEndian.Uint32(four[:]), dst)
	s.made.next = traffic.Arrival{At: x.rec.End, Bytes: bytes, Data: s.made.buf[:min(bytes, len(s.made.buf))]}
	return s.framed.Next(a)
}

// inTurn is the next card that addresses lead to, or -1.
func (s *recordedSource) inTurn() int {
	for range s.of.ways {
		c := s.next % len(s.of.ways)
		s.next++
		if len(s.of.ways[c]) > 0 && (c != int(s.card) || len(s.of.ways) == 1) {
			return c
		}
	}
	return -1
}

// unrouted is an address that no route covers, or where there is none, 0.
func unrouted(t *router.Table) uint32 {
	for i := range uint32(1 << 16) {
		var four [4]byte
		a := 0x0B000001 + i*0x9E3779B1
		binary.BigEndian.PutUint32(four[:], a)
		ip := netip.AddrFrom4(four)
		if _, ok := t.Lookup(ip); !ok && ip.IsGlobalUnicast() {
			return a
		}
	}
	return 0
}

// madePacket is a source of the one packet put into it.
type madePacket struct {
	buf  []byte
	next traffic.Arrival

	held traffic.Arrival
	mem  []byte
}

// Next implements traffic.Source.
func (m *madePacket) Next(a *traffic.Arrival) (bool, error) {
	*a = m.next
	return true, nil
}

// hold copies an arrival whose source goes on before it is used.
func (m *madePacket) hold(a *traffic.Arrival) {
	m.mem = append(m.mem[:0], a.Data...)
	m.held = *a
	m.held.Data = m.mem
}
