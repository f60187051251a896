package traces

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"spinesim/sim/des"
)

const fuzzBytes = 24

// decodeFuzz makes records of any bytes: times mostly go on, by steps of a few
// cycles, so that the sinks do not refuse everything.
func decodeFuzz(b []byte) []Record {
	var recs []Record
	now := des.Time(0)
	for ; len(b) >= fuzzBytes; b = b[fuzzBytes:] {
		w := binary.LittleEndian.Uint16
		now += des.Time(w(b)) * modelCycle
		r := Record{
			Kind: Kind(b[2] % uint8(NumKinds+1)), Event: Event(b[3] % uint8(NumEvents+3)), Card: b[4] & 0x83, Peer: b[5] & 0x83,
			Queue: b[6], Reason: Reason(b[7] % uint8(NumReasons+1)), Verdict: Verdict(b[8] % uint8(NumVerdicts+1)),
			Packet: uint64(b[9] % 16), Bytes: uint32(w(b[10:])), Count: uint32(b[12]), Cycles: uint64(w(b[13:])), Stall: uint32(b[15]),
			ID: MakeID(b[4]&3, uint64(b[16])), Cause: MakeID(b[17]&3, uint64(b[18])),
			End: now, Start: now - des.Time(w(b[19:]))*modelCycle,
		}
		if b[21]&1 == 0 {
			r.Start = now
		}
		r.Ready = r.Start - des.Time(b[22])*modelCycle
		switch b[23] {
		case 0xff: // something wild
			r.End, r.Packet, r.ID, r.Cycles, r.Count = des.MaxTime-des.Time(b[22]), ^uint64(0)-uint64(b[9]), ID(^uint64(0)), ^uint64(0), ^uint32(0)
		case 0xfe:
			r.Start, r.Ready = -1, -des.MaxTime
		case 0xfd:
			r.Packet, r.Cause = uint64(w(b[9:]))<<40, ID(w(b[13:]))<<47
		}
		recs = append(recs, r)
	}
	return recs
}

// FuzzSinks: whatever records come, nothing panics, the results can be
// printed, and what must sum up does.
func FuzzSinks(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 7))
	for range 8 {
		b := make([]byte, fuzzBytes*30)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { allSinks(t, decodeFuzz(b)) })
}

func allSinks(t *testing.T, recs []Record) {
	t.Helper()
	m, err := NewMeasures(MeasureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCriticalPath(PathSpec{})
	if err != nil {
		t.Fatal(err)
	}
	v := NewValidator(Limits{CardPeriod: modelCycle, BusPeriod: modelCycle, Buffers: 4, Credits: 2})
	for i := range recs {
		_ = m.Record(&recs[i]) // an error refuses the record, nothing more
		_ = c.Record(&recs[i])
		if err := v.Record(&recs[i]); err != nil {
			t.Fatal("an error without FailFast")
		}
	}
	r, err := m.Finish(0)
	if err != nil {
		return
	}
	_ = v.Finish(true)
	for _, x := range v.Violations() {
		_ = x.Explain()
	}
	if _, err := json.Marshal(r); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteText(io.Discard); err != nil {
		t.Fatal(err)
	}
	p := c.Result()
	if _, err := json.Marshal(p); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteText(io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, g := range c.Worst() {
		if sum(g.By[:]) != g.Length() {
			t.Fatalf("a gap of %v is divided into %v", g.Length(), sum(g.By[:]))
		}
	}
	if s := float64(r.SlowShare); s < 0 || s > 1+1e-9 {
		t.Fatalf("slow share %v", s)
	}
	if s := float64(r.BubbleShare); s < 0 || s > 1+1e-9 {
		t.Fatalf("bubble share %v", s)
	}
}

// Good streams with some fields gone wrong are survived, too.
func TestSinksSurviveDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, s := range modelStreams(60) {
		s.packets /= s.ingress
		good := runModel(s)
		for range 10 {
			recs := slices.Clone(good)
			for range 20 {
				r := &recs[rng.IntN(len(recs))]
				switch rng.IntN(9) {
				case 0:
					r.Packet = rng.Uint64()
				case 1:
					r.Start -= des.Time(rng.IntN(1e8))
				case 2:
					r.Ready += des.Time(rng.IntN(1e8))
				case 3:
					r.Event = Event(rng.Uint32())
				case 4:
					r.Kind = Kind(rng.IntN(NumKinds + 2))
				case 5:
					r.Card = uint8(rng.Uint32())
				case 6:
					r.Count = rng.Uint32()
				case 7:
					r.Cause, r.ID = ID(rng.Uint64()), ID(rng.Uint64())
				case 8:
					r.Cycles = rng.Uint64()
				}
			}
			allSinks(t, recs)
		}
	}
}

// More ingress cards than a machine can have are refused, not allotted memory.
func TestMeasuresManyCards(t *testing.T) {
	m, err := NewMeasures(MeasureSpec{})
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for card := range 254 {
		r := Record{Kind: KindEnter, Event: NoEvent, Card: uint8(card), Packet: uint64(card + 1)}
		if m.Record(&r) != nil {
			refused++
		}
	}
	if refused != 254-maxLanes {
		t.Errorf("%d cards refused", refused)
	}
}
