package l2

import (
	"encoding/binary"
	"fmt"

	"spinesim/lanai"
	"spinesim/router/bihash"
	"spinesim/sim/des"
	"spinesim/spine"
	"spinesim/traces"
)

// Bridge is the forwarding of a whole router: an extension for each card, and
// what they tell each other.
type Bridge struct {
	spec  Spec
	cards []*Forwarding
}

// NewBridge makes the bridge of a router with the given number of cards, 1 to
// spine.MaxCards.
func NewBridge(spec Spec, cards int) (*Bridge, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if cards < 1 || cards > spine.MaxCards {
		return nil, fmt.Errorf("%w: %d cards, want 1 to %d", ErrSpec, cards, spine.MaxCards)
	}
	return &Bridge{spec: spec, cards: make([]*Forwarding, cards)}, nil
}

// Table is the station table of a card that has its extension.
func (b *Bridge) Table(card int) *bihash.Table { return b.cards[card].table }

// Owner is the name under which a card's SRAM map shows the table.
const Owner = "station table"

// On makes the extension of one card, with its table in that card's memory. A
// card is given once.
func (b *Bridge) On(card uint8, sram *lanai.SRAM) (*Forwarding, error) {
	if int(card) >= len(b.cards) || b.cards[card] != nil {
		return nil, fmt.Errorf("%w: card %d is not of the bridge, or has its extension", ErrSpec, card)
	}
	t, err := bihash.NewIn(b.spec.Table, sram, Owner)
	if err != nil {
		return nil, err
	}
	if err := fill(t, b.spec.Static, len(b.cards)); err != nil {
		return nil, err
	}
	f := &Forwarding{bridge: b, spec: &b.spec, card: card, table: t}
	f.sweepPair = f.tooOld
	b.cards[card] = f
	return f, nil
}

// Forwarding is the extension of one card. It implements spine.Extension.
type Forwarding struct {
	bridge *Bridge
	spec   *Spec
	card   uint8
	table  *bihash.Table

	heard []notice // not due yet, the oldest first
	head  int

	// The one-entry caches. They hold for a step of time and until the table
	// changes.
	dst, src         key
	dstTo            uint8
	dstOK, srcOK     bool
	dstStep, srcStep uint32

	// The frame's addresses. They live here, for what a hash function is given
	// escapes.
	to, from key

	sweepAt   int // next bucket to look at
	sweepStep uint32
	sweepPair func(k []byte, v uint64) bool
	words     int
	old       [sweepKeys]key
	oldKeys   int

	counts Counts
}

var _ spine.Extension = (*Forwarding)(nil)

// notice is what another card has learned.
type notice struct {
	due  des.Time
	key  key
	card uint8
	step uint32
}

// Counts are what a card's forwarding has done so far.
type Counts struct {
	Forwarded uint64 // to the one card that leads to the station
	Flooded   uint64 // to all others
	Filtered  uint64 // the destination lies where the frame came from
	Unknown   uint64 // frames to a station that was not known, whatever happened to them
	Learned   uint64 // stations taken into the table from this card's wire
	Moved     uint64 // stations that had been behind another card
	Heard     uint64 // notices of other cards taken in
	Aged      uint64 // stations forgotten
	Full      uint64 // sources not learned because there was no room
	CacheHits uint64 // destinations found in the one-entry cache
	Lookups   uint64 // look-ups of destinations and sources in the table
	Reads     uint64 // words read in them
}

// Counts tells what has been done so far.
func (f *Forwarding) Counts() Counts { return f.counts }

// Table is the card's table.
func (f *Forwarding) Table() *bihash.Table { return f.table }

// Name is "l2".
func (f *Forwarding) Name() string { return "l2" }

// Handle learns where the source is and decides by the destination. It does not
// allocate once the table and the notices have grown to their size.
func (f *Forwarding) Handle(ctx *spine.Context, p *spine.Packet) spine.Verdict {
	c := &f.spec.Costs
	if ctx.Place == 0 {
		ctx.Charge(c.Frame)
	}
	ctx.Charge(c.Packet)
	if p.BadCRC {
		return spine.Verdict{Action: spine.Drop, Reason: traces.ReasonBadCRC}
	}
	f.to, f.from = key{}, key{}
	ctx.Charge(2 * c.Key)
	ctx.Access(min(4, 2*c.Key))
	switch f.spec.Addressing {
	case Ethernet:
		if len(p.Header) < HeaderBytes {
			return spine.Verdict{Action: spine.Drop, Reason: traces.ReasonTruncated}
		}
		copy(f.to[:6], p.Header)
		copy(f.from[:6], p.Header[6:])
	default:
		if len(p.Header) < 20 {
			return spine.Verdict{Action: spine.Drop, Reason: traces.ReasonTruncated}
		}
		if p.Header[0]>>4 != 4 {
			return spine.Verdict{Action: spine.Drop, Reason: traces.ReasonBadVersion}
		}
		d, s := StationOf(binary.BigEndian.Uint32(p.Header[16:])), StationOf(binary.BigEndian.Uint32(p.Header[12:]))
		copy(f.to[:], d[:])
		copy(f.from[:], s[:])
		if ip := p.Header[16]; ip >= 224 { // groups and broadcast
			f.to[0] |= 1
		}
	}
	step := f.spec.step(ctx.Now)
	f.hear(ctx)
	f.sweep(ctx, step)
	if !f.spec.NoLearning && !group(f.from[:]) {
		f.learn(ctx, step)
	}
	return f.decide(ctx, p, step)
}

// lookup finds a station and charges for it.
func (f *Forwarding) lookup(ctx *spine.Context, k *key, step uint32) (entry, bool) {
	c := &f.spec.Costs
	v, r, ok := f.table.Find(k[:])
	f.counts.Lookups++
	f.counts.Reads += uint64(r.Words)
	ctx.Charge(c.HashFixed + keyBytes*c.HashByte + c.Bucket + r.Words*c.Word)
	ctx.Access(min(keyBytes, keyBytes*c.HashByte) + min(r.Words, r.Words*c.Word))
	if !ok {
		return 0, false
	}
	e := entry(v)
	if f.spec.expired(e, step) {
		f.table.Delete(k[:])
		f.forget()
		f.counts.Aged++
		return 0, false
	}
	return e, true
}

// forget empties the one-entry caches: the table has changed.
func (f *Forwarding) forget() { f.dstOK, f.srcOK = false, false }

// learn takes in where the frame came from.
func (f *Forwarding) learn(ctx *spine.Context, step uint32) {
	c := &f.spec.Costs
	if !f.spec.NoCache {
		ctx.Charge(c.Cached)
		if f.srcOK && f.src == f.from && f.srcStep == step {
			return
		}
	}
	e, known := f.lookup(ctx, &f.from, step)
	switch {
	case known && e.static():
	case known && e.card() == f.card && e.step() == step:
	default:
		if known && e.card() != f.card {
			f.counts.Moved++
		}
		if !f.put(ctx, step, known) {
			f.counts.Full++
			return
		}
		if !known {
			f.counts.Learned++
		}
		f.tell(ctx, step)
	}
	f.src, f.srcOK, f.srcStep = f.from, true, step
}

// put writes the frame's source into the table, if there is room.
func (f *Forwarding) put(ctx *spine.Context, step uint32, known bool) bool {
	if !known && f.table.Len() >= f.spec.Stations {
		return false
	}
	c := &f.spec.Costs
	ctx.Charge(c.Learn)
	ctx.Access(min(4, c.Learn)) // the pair's words
	if err := f.table.Add(f.from[:], uint64(makeEntry(f.card, step))); err != nil {
		return false
	}
	f.forget()
	return true
}

// tell lets the other cards know of the frame's source.
func (f *Forwarding) tell(ctx *spine.Context, step uint32) {
	c := &f.spec.Costs
	for _, o := range f.bridge.cards {
		if o == nil || o == f {
			continue
		}
		ctx.Charge(c.Notice)
		ctx.Access(min(4, c.Notice))
		n := notice{due: ctx.Now + f.spec.Notice, key: f.from, card: f.card, step: step}
		if o.head > 0 && len(o.heard) == cap(o.heard) {
			o.heard = o.heard[:copy(o.heard, o.heard[o.head:])]
			o.head = 0
		}
		// Cards handle packets at times of their own: keep the order of time,
		// and of cards where times are equal.
		o.heard = append(o.heard, n)
		i := len(o.heard) - 1
		for i > o.head && (o.heard[i-1].due > n.due || o.heard[i-1].due == n.due && o.heard[i-1].card > n.card) {
			o.heard[i] = o.heard[i-1]
			i--
		}
		o.heard[i] = n
	}
}

// hear takes in what other cards have learned and what is due.
func (f *Forwarding) hear(ctx *spine.Context) {
	for f.head < len(f.heard) && f.heard[f.head].due <= ctx.Now {
		n := &f.heard[f.head]
		f.head++
		f.counts.Heard++
		ctx.Charge(f.spec.Costs.Heard)
		ctx.Access(min(8, f.spec.Costs.Heard))
		v, ok := f.table.Search(n.key[:])
		if ok && (entry(v).static() || entry(v).step() > n.step) {
			continue
		}
		if !ok && f.table.Len() >= f.spec.Stations {
			f.counts.Full++
			continue
		}
		if f.table.Add(n.key[:], uint64(makeEntry(n.card, n.step))) != nil {
			f.counts.Full++
			continue
		}
		f.forget()
	}
	if f.head == len(f.heard) {
		f.heard, f.head = f.heard[:0], 0
	}
}

// sweepKeys is how many stations one look at a bucket forgets at most.
const sweepKeys = 8

// sweep looks at one bucket for stations that are too old, once any can be.
func (f *Forwarding) sweep(ctx *spine.Context, step uint32) {
	if f.spec.Age == 0 || step <= ages+1 {
		return
	}
	c := &f.spec.Costs
	f.words, f.oldKeys, f.sweepStep = 2, 0, step
	f.table.Bucket(f.sweepAt, f.sweepPair)
	n := f.oldKeys
	ctx.Charge(c.Sweep + f.words)
	ctx.Access(f.words)
	for i := range n {
		f.table.Delete(f.old[i][:])
		f.counts.Aged++
	}
	if n > 0 {
		f.forget()
	}
	if n < sweepKeys {
		f.sweepAt = (f.sweepAt + 1) % f.table.Buckets()
	}
}

// tooOld notes a pair of the bucket that is swept.
func (f *Forwarding) tooOld(k []byte, v uint64) bool {
	f.words += 2
	if f.spec.expired(entry(v), f.sweepStep) {
		copy(f.old[f.oldKeys][:], k)
		f.oldKeys++
	}
	return f.oldKeys < sweepKeys
}

func (f *Forwarding) decide(ctx *spine.Context, p *spine.Packet, step uint32) spine.Verdict {
	if group(f.to[:]) {
		f.counts.Flooded++
		return spine.Verdict{Action: spine.Flood}
	}
	c := &f.spec.Costs
	to, ok := uint8(0), false
	if !f.spec.NoCache {
		ctx.Charge(c.Cached)
		if f.dstOK && f.dst == f.to && f.dstStep == step {
			f.counts.CacheHits++
			to, ok = f.dstTo, true
		}
	}
	if !ok {
		var e entry
		if e, ok = f.lookup(ctx, &f.to, step); ok {
			to = e.card()
			f.dst, f.dstTo, f.dstOK, f.dstStep = f.to, to, true, step
		}
	}
	switch {
	case ok && to == p.Ingress:
		f.counts.Filtered++
		return spine.Verdict{Action: spine.Drop, Reason: traces.ReasonOwnWire}
	case ok:
		f.counts.Forwarded++
		return spine.Verdict{Action: spine.Forward, Card: to}
	}
	f.counts.Unknown++
	switch f.spec.Unknown {
	case Flood:
		f.counts.Flooded++
		return spine.Verdict{Action: spine.Flood}
	case Next:
		if f.spec.Addressing == Ethernet {
			p.Header = p.Header[HeaderBytes:]
			p.Bytes -= HeaderBytes
		}
		return spine.Verdict{Action: spine.Next}
	case ToHost:
		return spine.Verdict{Action: spine.ToHost, Reason: traces.ReasonNoRoute}
	}
	return spine.Verdict{Action: spine.Drop, Reason: traces.ReasonNoRoute}
}
