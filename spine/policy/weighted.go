package policy

var weightedKind = PolicyKind{
	Name: "weighted-round-robin", Doc: "the queues in turn, each for up to its weight in handlers",
	Params: []Param{
		{"weights", slashed(DefaultShares), "handlers in a row, one number a queue or one for all"},
		{"order", "default", "the circle"},
	},
	WorkConserving: true, StarvationFree: true,
	Example: "weighted-round-robin:weights=4/2/1/1/1/1/8", New: newWeighted,
}

// WeightedRoundRobin visits the queues in turn and stays at each for as long as
// it is ready, up to its weight in handlers.
//
// Purpose: a fair dispatcher that gives the DMA chain its five handlers in one
// visit, where plain round-robin goes round the circle between any two of them.
// Parameters: weights, 1 … MaxShare a queue (more: longer visits, and a longer
// wait for the others); the order of the circle.
// Needs from hardware: nothing.
// Example: "weighted-round-robin:weights=4/2/1/1/1/1/8".
//
// It is work-conserving and free of starvation: between two polls of a queue at
// most the sum of the other weights in handlers runs. A queue that is found
// empty gives up the rest of its visit.
type WeightedRoundRobin struct {
	order   [NumQueues]uint8
	weights [NumQueues]int
	pos     int // place in order of the next poll
	left    int // handlers that the queue there may still run in this visit
}

// NewWeightedRoundRobin returns a weighted round-robin policy over the circle
// order, with weights by queue number. A weight outside 1 … MaxShare is an
// error.
func NewWeightedRoundRobin(order [NumQueues]uint8, weights [NumQueues]int) (*WeightedRoundRobin, error) {
	if err := checkShares("weight", weights); err != nil {
		return nil, err
	}
	return &WeightedRoundRobin{order: order, weights: weights, left: weights[order[0]]}, nil
}

func newWeighted(a Args) (Policy, error) {
	o, err := a.Order("order")
	if err != nil {
		return nil, err
	}
	w, err := a.Ints("weights", 1, MaxShare)
	if err != nil {
		return nil, err
	}
	return NewWeightedRoundRobin(o, w)
}

// Name is "weighted-round-robin" with its weights and circle.
func (w *WeightedRoundRobin) Name() string {
	return policyName("weighted-round-robin",
		setting{"weights", slashed(w.weights), slashed(DefaultShares)}, orderSetting("order", w.order, DefaultOrder))
}

// Plan polls the circle from the present place.
func (w *WeightedRoundRobin) Plan(_ *View, p *Plan) { circle(p, &w.order, w.pos) }

// Hit stays at the queue that was found ready, or leaves it when its weight is
// used up. A queue that was not the first to be polled begins a new visit.
func (w *WeightedRoundRobin) Hit(n int64, q uint8) {
	if n > 1 {
		w.pos = int((int64(w.pos) + n - 1) % NumQueues)
		w.left = w.weights[q]
	}
	if w.left--; w.left == 0 {
		w.pos = (w.pos + 1) % NumQueues
		w.left = w.weights[w.order[w.pos]]
	}
}
