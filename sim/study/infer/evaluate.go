package infer

import (
	"context"
	"math"
	"slices"

	"spinesim/traces"
)

// limit is the largest implausibility with which a machine is not ruled out: at
// least 95 % of any unimodal distribution lies within three standard deviations
// of its mean (F. Pukelsheim, "The three sigma rule", 1994).
const limit = 3

// Fact is a figure that machines are held against.
type Fact struct {
	ID    string `json:"id"`
	Group string `json:"group"`
	Unit  string `json:"unit,omitempty"`
	// Low and High bound the values that agree, three standard deviations to
	// either side of the middle.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	// Within: every value between Low and High agrees alike, and implausible is
	// only what lies outside.
	Within bool `json:"within,omitempty"`
}

// Implausibility is how far a value lies from the fact, in standard deviations
// of the fact and of the simulation's noise together; infinite for none. Where
// every value of the interval agrees alike, it is 0 inside, and limit where the
// distance from the interval is what the noise alone could make.
func (f *Fact) Implausibility(x, noise float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return math.Inf(1)
	}
	sigma := math.Hypot((f.High-f.Low)/6, noise)
	if f.Within {
		return max(f.Low-x, x-f.High, 0) / sigma
	}
	return math.Abs(x-(f.Low+f.High)/2) / sigma
}

// Agrees tells whether a value lies within the fact's bounds.
func (f *Fact) Agrees(x float64) bool { return x >= f.Low && x <= f.High }

// Answers are what a machine says to the facts, as far as it was asked.
type Answers struct {
	// Facts has the value for each fact that was asked, by its ID; NaN for none.
	Facts map[string]traces.Real `json:"facts"`
	// Failed names groups that a cheap look has ruled out, before their facts
	// were asked.
	Failed []string `json:"failed,omitempty"`
	// Metrics of the run in the end, by their names: what else could be measured.
	Metrics map[string]traces.Real `json:"metrics,omitempty"`
	// Rate is the machine's own limit in packets/s, 0 before it is known.
	Rate traces.Real `json:"rate,omitempty"`
	// Reason is why the machine answers nothing more: it stops, or carries no
	// rate.
	Reason string `json:"reason,omitempty"`
	// Packets that were simulated.
	Packets uint64 `json:"packets"`
}

// Evaluator asks a machine.
type Evaluator interface {
	// Facts are all facts, in the order in which they are printed. It is the
	// same list at every call.
	Facts() []Fact
	// Stages is how many stages the questions come in, the cheapest first.
	Stages() int
	// Evaluate asks a machine a stage's questions and adds its answers to a,
	// which has those of the stages before. The same machine and seed get the
	// same answers. A machine that cannot answer is no error: its Reason says
	// why. An error ends the inference.
	Evaluate(ctx context.Context, m *Machine, seed uint64, stage int, a *Answers) error
}

// groups are the groups of facts, in order.
func groups(facts []Fact) []string {
	var out []string
	for _, f := range facts {
		if !slices.Contains(out, f.Group) {
			out = append(out, f.Group)
		}
	}
	return out
}

// judge tells how implausible a row is, group by group.
type judge struct {
	facts  []Fact
	groups []string
	stages int
	noise  map[string]float64 // standard deviation of one run's answer, by fact
}

func newJudge(e Evaluator, noise map[string]float64) *judge {
	return &judge{facts: e.Facts(), groups: groups(e.Facts()), stages: e.Stages(), noise: noise}
}

// implausibilities are the largest of each group's facts: NaN where it was not
// asked, infinite where there is no answer or a cheap look was enough.
func (j *judge) implausibilities(r *Row) []float64 {
	out := make([]float64, len(j.groups))
	for g, name := range j.groups {
		if slices.Contains(r.Failed, name) {
			out[g] = math.Inf(1)
		}
	}
	done := r.Stage >= j.stages || r.Reason != ""
	for i := range j.facts {
		f := &j.facts[i]
		g := slices.Index(j.groups, f.Group)
		x, asked := r.Facts[f.ID]
		switch {
		case asked:
			// math.Max keeps NaN and infinity.
			out[g] = math.Max(out[g], f.Implausibility(float64(x), j.noise[f.ID]))
		case done:
			out[g] = math.Inf(1)
		case !math.IsInf(out[g], 1):
			out[g] = math.NaN()
		}
	}
	return out
}

// ruledOut tells whether two groups rule a row out: then it lies in no region
// that all groups but one leave.
func (j *judge) ruledOut(r *Row) bool {
	n := 0
	for _, x := range j.implausibilities(r) {
		if x > limit {
			n++
		}
	}
	return n > 1
}

// without is the largest implausibility over all groups but one; −1 leaves none
// out. It is infinite where a group was not asked.
func without(is []float64, group int) float64 {
	most := 0.0
	for g, x := range is {
		if g == group {
			continue
		}
		if math.IsNaN(x) {
			return math.Inf(1)
		}
		most = max(most, x)
	}
	return most
}
