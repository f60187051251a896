package traffic

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/gopacket/gopacket/layers"

	"spinesim/sim/des"
)

// Timing says when the packets of a capture are handed to the link.
type Timing uint8

// The timings.
const (
	// ByTimeStamp keeps the capture's own gaps.
	ByTimeStamp Timing = iota
	// Paced takes the times of an arrival process, so that the capture only
	// gives the packets.
	Paced
	// LinkRate sends one behind the other, as fast as the link takes them.
	LinkRate
	NumTimings = int(iota)
)

var timingNames = [NumTimings]string{"time-stamp", "paced", "link-rate"}

func (t Timing) String() string {
	if int(t) < NumTimings {
		return timingNames[t]
	}
	return "unknown timing"
}

// MarshalText is String.
func (t Timing) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads a name that String prints.
func (t *Timing) UnmarshalText(b []byte) error {
	for i, n := range timingNames {
		if n == string(b) {
			*t = Timing(i)
			return nil
		}
	}
	return fmt.Errorf("timing %q: want one of %q", b, timingNames)
}

// Endless repeats a capture for ever.
const Endless = -1

// CaptureSpec describes the replay of a capture.
type CaptureSpec struct {
	// Name of the capture in messages, usually its path.
	Name string
	// Open opens it for one pass; it is called again for each repetition.
	Open func() (io.ReadCloser, error)

	Timing Timing
	// Arrivals paces the packets (Paced). Saturating arrivals are LinkRate.
	Arrivals ArrivalSpec
	// Speed divides the gaps between time stamps (ByTimeStamp): 2 replays
	// twice as fast. 0 counts as 1.
	Speed float64
	// MaxGap is what a gap between time stamps counts as when it is longer
	// (before Speed) [1 s, chosen], so that a jump of years costs nothing. A
	// step back counts as no gap at all. 0 takes the default.
	MaxGap des.Time
	// Start is when the first packet is handed to the link.
	Start des.Time

	Wire Wire
	// MTU is the longest packet that the link takes; longer ones were left in
	// one piece by segmentation offload and are skipped [1500]. 0 takes the
	// default.
	MTU int
	// Repeat is how many times the capture is run through, or Endless; 0
	// counts as 1. A mean gap lies between two passes.
	Repeat int
	// Readable takes what can be read of a damaged file as if it ended there,
	// and skips packets from foreign links, where both are errors otherwise.
	Readable bool
}

const (
	defaultMaxGap = des.Second
	defaultMTU    = 1500
)

// DefaultCaptureSpec replays a file once, by its time stamps.
func DefaultCaptureSpec(path string) CaptureSpec {
	return CaptureSpec{Name: path, Open: CaptureFile(path), Speed: 1, MaxGap: defaultMaxGap, MTU: defaultMTU, Repeat: 1}
}

// Validate tells what is wrong with s.
func (s CaptureSpec) Validate() error {
	switch {
	case s.Open == nil:
		return fmt.Errorf("capture %s: nothing to open", s.Name)
	case int(s.Timing) >= NumTimings:
		return fmt.Errorf("capture %s: timing %d is unknown", s.Name, s.Timing)
	case !(s.Speed >= 0) || math.IsInf(s.Speed, 0):
		return fmt.Errorf("capture %s: speed %g, want a positive factor", s.Name, s.Speed)
	case s.MaxGap < 0:
		return fmt.Errorf("capture %s: longest gap %v, want a positive time", s.Name, s.MaxGap)
	case s.Start < 0:
		return fmt.Errorf("capture %s: start at %v, want 0 or later", s.Name, s.Start)
	case s.MTU != 0 && (s.MTU < minBytes || s.MTU > maxBytes):
		return fmt.Errorf("capture %s: MTU %d, want %d to %d", s.Name, s.MTU, minBytes, maxBytes)
	case s.Repeat < Endless:
		return fmt.Errorf("capture %s: %d repetitions", s.Name, s.Repeat)
	case s.Wire.Rate.Num == 0 && (s.Timing == LinkRate || s.Timing == Paced && s.Arrivals.Kind == Saturating):
		return fmt.Errorf("capture %s: as fast as the link takes it needs a rate of the link", s.Name)
	}
	if s.Timing == Paced {
		if err := s.Arrivals.Validate(); err != nil {
			return fmt.Errorf("capture %s: %w", s.Name, err)
		}
	}
	if err := s.Wire.Validate(); err != nil {
		return fmt.Errorf("capture %s: %w", s.Name, err)
	}
	return nil
}

// Scale is the same replay at f times the rate, as far as the link allows.
func (s CaptureSpec) Scale(f float64) (CaptureSpec, error) {
	if !(f > 0) || math.IsInf(f, 0) {
		return s, fmt.Errorf("%w: capture %s times %g", ErrRate, s.Name, f)
	}
	switch s.Timing {
	case ByTimeStamp:
		if s.Speed == 0 {
			s.Speed = 1
		}
		s.Speed *= f
	case Paced:
		a, err := s.Arrivals.Scale(f)
		s.Arrivals = a
		return s, err
	}
	return s, nil
}

// CaptureReport says what was found in a capture, over all passes so far.
type CaptureReport struct {
	Passes    int    // complete ones
	Packets   uint64 // read
	Replayed  uint64 // of them
	StepsBack uint64 // time stamps before the one before
	GapsCut   uint64 // gaps longer than MaxGap
	// Damage is why reading ended before the file did (Readable), else nil.
	Damage error
}

// Capture is a Source that replays a capture. Next does not allocate, but for
// opening the next pass.
type Capture struct {
	spec  CaptureSpec
	pace  Process // nil: by time stamp
	wire  serialiser
	r     *captureReader
	p     captured
	used  uint64   // replayed in this pass
	read  uint64   // in this pass
	at    des.Time // in the capture's own time, from the first packet on
	stamp time.Time
	pass  des.Time // at when the pass began
	gap   bool     // there is an earlier packet in this pass

	report CaptureReport
}

// NewCapture opens a capture. The streams of a paced replay are named after
// name. Close it when done.
func NewCapture(spec CaptureSpec, seed uint64, name string) (*Capture, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if spec.Speed == 0 {
		spec.Speed = 1
	}
	if spec.MaxGap == 0 {
		spec.MaxGap = defaultMaxGap
	}
	if spec.MTU == 0 {
		spec.MTU = defaultMTU
	}
	if spec.Repeat == 0 {
		spec.Repeat = 1
	}
	c := &Capture{spec: spec, wire: serialiser{w: spec.Wire}}
	switch spec.Timing {
	case Paced:
		p, err := spec.Arrivals.Process(seed, name)
		if err != nil {
			return nil, fmt.Errorf("capture %s: %w", spec.Name, err)
		}
		c.pace = p
	case LinkRate:
		c.pace = backToBack{spec.Start}
	}
	var err error
	c.r, err = openCapture(spec.Name, spec.Open)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Report says what was found so far.
func (c *Capture) Report() CaptureReport { return c.report }

// Close closes the file. A second call does nothing.
func (c *Capture) Close() error {
	if c.r == nil {
		return nil
	}
	err := c.r.close()
	c.r = nil
	return err
}

// Next gives the next packet, or one to be skipped. A capture in which no
// packet at all can be replayed is an error.
func (c *Capture) Next(a *Arrival) (bool, error) {
	for {
		if c.r == nil {
			return false, nil
		}
		ok, err := c.r.next(&c.p)
		if err != nil {
			if !c.spec.Readable {
				return false, err
			}
			if c.report.Damage == nil {
				c.report.Damage = err
			}
		}
		if ok && err == nil {
			return true, c.arrive(a)
		}
		if again, err := c.turn(); err != nil || !again {
			return false, err
		}
	}
}

// turn ends a pass, and begins the next if there is to be one.
func (c *Capture) turn() (bool, error) {
	if err := c.Close(); err != nil {
		return false, err
	}
	if c.used == 0 {
		if c.report.Damage != nil {
			return false, c.report.Damage
		}
		return false, fmt.Errorf("capture %s: none of its %d packets can be replayed", c.spec.Name, c.read)
	}
	c.report.Passes++
	if c.report.Passes == c.spec.Repeat {
		return false, nil
	}
	r, err := openCapture(c.spec.Name, c.spec.Open)
	if err != nil {
		return false, err
	}
	c.r = r
	if c.read > 1 && c.pace == nil {
		mean := (c.at - c.pass) / des.Time(c.read-1)
		if c.at > des.MaxTime-mean {
			return false, fmt.Errorf("capture %s, pass %d: %w", c.spec.Name, c.report.Passes+1, ErrEndOfTime)
		}
		c.at += mean
	}
	c.pass, c.used, c.read, c.gap = c.at, 0, 0, false
	return true, nil
}

// arrive turns c.p into an arrival.
func (c *Capture) arrive(a *Arrival) error {
	c.read++
	c.report.Packets++
	if err := c.step(); err != nil {
		return err
	}
	ip, bytes, skip := ipv4Of(c.p.link, c.p.data, c.p.wire)
	if skip == SkipForeignLink && !c.spec.Readable {
		return fmt.Errorf("capture %s: packet %d: %w: %v (%d)", c.spec.Name, c.read, ErrForeignLink, linkName(c.p.link), uint16(c.p.link))
	}
	if skip == "" {
		bytes, skip = trim(ip, bytes, c.spec.MTU)
	}
	if skip != "" {
		*a = Arrival{Skip: skip}
		return nil
	}
	c.used++
	c.report.Replayed++
	t := c.spec.Start
	if c.pace != nil {
		var err error
		if t, err = c.pace.Next(); err != nil {
			return fmt.Errorf("capture %s: packet %d: %w", c.spec.Name, c.read, err)
		}
	} else {
		d := c.at
		if c.spec.Speed != 1 {
			v := math.Round(float64(c.at) / c.spec.Speed)
			if v >= math.MaxInt64 {
				return fmt.Errorf("capture %s: packet %d: %w", c.spec.Name, c.read, ErrEndOfTime)
			}
			d = des.Time(v)
		}
		if d > des.MaxTime-t {
			return fmt.Errorf("capture %s: packet %d: %w", c.spec.Name, c.read, ErrEndOfTime)
		}
		t += d
	}
	t, err := c.wire.send(t, bytes)
	if err != nil {
		return fmt.Errorf("capture %s: packet %d: %w", c.spec.Name, c.read, err)
	}
	*a = Arrival{At: t, Bytes: bytes, Data: ip[:min(len(ip), bytes)]}
	return nil
}

// step lets the capture's own time pass up to c.p.
func (c *Capture) step() error {
	if c.p.stamp.IsZero() { // no stamp: as if at the same time
		return nil
	}
	if c.gap {
		d := c.p.stamp.Sub(c.stamp) // saturates at ±292 years
		t := c.spec.MaxGap
		switch {
		case d < 0:
			c.report.StepsBack++
			t = 0
		case int64(d) > int64(c.spec.MaxGap/des.Nanosecond):
			c.report.GapsCut++
		default:
			t = des.Time(d) * des.Nanosecond
		}
		if c.at > des.MaxTime-t {
			return fmt.Errorf("capture %s: packet %d: %w", c.spec.Name, c.read, ErrEndOfTime)
		}
		c.at += t
	}
	c.stamp, c.gap = c.p.stamp, true
	return nil
}

func linkName(l layers.LinkType) string {
	if l >= layers.LinkTypeMax {
		return "unknown"
	}
	return l.String()
}
