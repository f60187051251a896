package traces

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"

	"spinesim/sim/des"
)

const (
	// segmentSamples make one stretch whose spectrum is taken; with samples
	// every 20 µs it spans 82 ms (chosen).
	segmentSamples = 4096
	// maxSegments are kept, spread evenly over the run (chosen: 256 kB).
	maxSegments = 16
	// minSamples are needed to speak of a period at all.
	minSamples = 32
)

// sampler keeps stretches of a level, each sample the level's mean over its
// span of time. When it holds too many stretches it drops every other one and
// from then on keeps half as many, so that a run of any length is represented
// evenly in bounded memory.
type sampler struct {
	every, next, last des.Time
	level, area       float64

	segment []float32
	kept    [][]float32
	spare   [][]float32
	index   int64
	stride  int64
}

func (s *sampler) init(from, every des.Time) {
	s.every, s.last, s.next, s.stride = every, from, from+every, 1
	backing := make([]float32, (maxSegments+1)*segmentSamples)
	s.kept = make([][]float32, 0, maxSegments)
	s.spare = make([][]float32, 0, maxSegments+1)
	for i := range maxSegments + 1 {
		s.spare = append(s.spare, backing[i*segmentSamples:i*segmentSamples:(i+1)*segmentSamples])
	}
	s.segment = s.takeSpare()
}

func (s *sampler) takeSpare() []float32 {
	n := len(s.spare) - 1
	b := s.spare[n][:0]
	s.spare = s.spare[:n]
	return b
}

func (s *sampler) set(t des.Time, level float64) {
	s.advance(t)
	s.level = level
}

func (s *sampler) advance(t des.Time) {
	for t >= s.next {
		s.push(float32((s.area + s.level*float64(s.next-s.last)) / float64(s.every)))
		s.area, s.last = 0, s.next
		s.next += s.every
		// Over a very long still stretch only its first segment is taken:
		// those after it have no spectrum.
		if still := (t - s.next) / s.every; still > 2*segmentSamples && len(s.segment) == 0 {
			whole := still / segmentSamples
			s.index += int64(whole)
			s.last += whole * segmentSamples * s.every
			s.next += whole * segmentSamples * s.every
		}
	}
	s.area += s.level * float64(t-s.last)
	s.last = t
}

func (s *sampler) push(x float32) {
	s.segment = append(s.segment, x)
	if len(s.segment) < segmentSamples {
		return
	}
	keep := s.index%s.stride == 0
	s.index++
	if !keep {
		s.segment = s.segment[:0]
		return
	}
	s.kept = append(s.kept, s.segment)
	if len(s.kept) == maxSegments {
		n := 0
		for i, k := range s.kept {
			if i%2 == 0 {
				s.kept[n] = k
				n++
			} else {
				s.spare = append(s.spare, k)
			}
		}
		s.kept = s.kept[:n]
		s.stride *= 2
	}
	s.segment = s.takeSpare()
}

// power adds the power spectrum of every stretch to sum, which it makes when
// it is nil; all stretches of one run are equally long.
func (s *sampler) power(sum []float64) []float64 {
	segments := s.kept
	if len(segments) == 0 {
		if len(s.segment) < minSamples {
			return sum
		}
		segments = [][]float32{s.segment[:len(s.segment)&^1]}
	}
	n := len(segments[0])
	if sum == nil {
		sum = make([]float64, n/2+1)
	}
	if len(sum) != n/2+1 {
		return sum
	}
	fft := fourier.NewFFT(n)
	x := make([]float64, n)
	c := make([]complex128, n/2+1)
	for _, seg := range segments {
		mean := 0.0
		for _, v := range seg {
			mean += float64(v)
		}
		mean /= float64(n)
		for i, v := range seg { // Hann window: little leaks far from a peak
			x[i] = (float64(v) - mean) * 0.5 * (1 - math.Cos(2*math.Pi*float64(i)/float64(n)))
		}
		fft.Coefficients(c, x)
		for i, v := range c {
			sum[i] += real(v)*real(v) + imag(v)*imag(v)
		}
	}
	return sum
}

// peak finds the dominant period of a power spectrum of samples `every` apart
// and the share of all power in its peak; NaN where there is none. Bins 0 and
// 1, where the window puts a constant and a drift, are left out.
func peak(power []float64, every des.Time) (period des.Time, share float64) {
	best, all := 0, 0.0
	for i := 2; i < len(power)-1; i++ {
		all += power[i]
		if best == 0 || power[i] > power[best] {
			best = i
		}
	}
	if best == 0 || !(all > 1e-9) {
		return 0, math.NaN()
	}
	// The centre of the peak's three bins tells the frequency to a fraction of
	// a bin.
	var weight, moment, near float64
	for i := max(2, best-2); i <= min(best+2, len(power)-2); i++ {
		near += power[i]
		if i >= best-1 && i <= best+1 {
			weight += power[i]
			moment += power[i] * float64(i)
		}
	}
	n := float64(2 * (len(power) - 1))
	return des.Time(math.Round(n * float64(every) / (moment / weight))), near / all
}
