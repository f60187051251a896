package bihash

// FrameRow is a node with one length of frame.
type FrameRow struct {
	Frame  int    `json:"frame"`
	Clocks Clocks `json:"clocks"`
	// GapNS is the time between packets when there is always a frame waiting:
	// that of a frame over its length.
	GapNS float64 `json:"gap_ns"`
	// LatencyNS is the mean time of a packet from its arrival to the end of its
	// frame, with evenly spaced arrivals at the study's rate and frames taken
	// when they are full: half the time that the others of its frame take to
	// arrive, and the frame's own. It is 0 where the rate is beyond what frames of
	// that length can carry.
	LatencyNS float64 `json:"latency_ns,omitempty"`
	// Load is the study's rate times the gap.
	Load float64 `json:"load"`
}

// FrameStudy is gap and latency against the length of a frame.
type FrameStudy struct {
	Processor string     `json:"processor"`
	Flows     int        `json:"flows"`
	Prefetch  Prefetch   `json:"prefetch"`
	RateMpps  float64    `json:"rate_mpps"`
	Rows      []FrameRow `json:"rows"`
	// Least is the frame with the least latency at the rate, 0 when none
	// carries it.
	Least int `json:"least_latency_frame"`
}

// FrameLengths are the lengths that a study takes, 1 to 256.
func FrameLengths() []int { return []int{1, 2, 4, 8, 16, 32, 64, 128, 256} }

// Frames runs a node with frames of all lengths. The rate is share, above 0 and
// at most 1, of what the longest frames carry. The node is all that the
// processor does: what other nodes need comes on top.
func Frames(n Node, p Processor, spec Spec, flows int, pre Prefetch, share float64) (FrameStudy, error) {
	s := FrameStudy{Processor: p.Name, Flows: flows, Prefetch: pre}
	lengths := FrameLengths()
	s.Rows = make([]FrameRow, len(lengths))
	err := each(len(lengths), func(i int) error {
		f, err := NewFlows(spec, flows, RoundRobin, flowSeed)
		if err != nil {
			return err
		}
		m := n
		m.Frame = lengths[i]
		c, err := m.Run(p, f, pre)
		s.Rows[i] = FrameRow{Frame: lengths[i], Clocks: c, GapNS: c.Nanoseconds}
		return err
	})
	if err != nil {
		return FrameStudy{}, err
	}
	rate := share / s.Rows[len(s.Rows)-1].GapNS // packets a nanosecond
	s.RateMpps = rate * 1e3
	for i := range s.Rows {
		r := &s.Rows[i]
		r.Load = rate * r.GapNS
		if r.Load > 1 {
			continue
		}
		r.LatencyNS = float64(r.Frame-1)/2/rate + float64(r.Frame)*r.GapNS
		if s.Least == 0 || r.LatencyNS < s.latency(s.Least) {
			s.Least = r.Frame
		}
	}
	return s, nil
}

func (s *FrameStudy) latency(frame int) float64 {
	for _, r := range s.Rows {
		if r.Frame == frame {
			return r.LatencyNS
		}
	}
	return 0
}
