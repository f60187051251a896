package infer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"spinesim/sim"
	"spinesim/sim/study"
	"spinesim/sim/study/internal/runs"
	"spinesim/sim/study/sweep"
	"spinesim/traces"
)

// Budget is how much an inference does: numbers of machines, so that the same
// seed gives the same rows on any computer.
type Budget struct {
	// Noise is the number of machines that the noise is estimated from.
	Noise int `json:"noise"`
	// First is the number of machines of the first wave, which is spread evenly
	// over the priors.
	First int `json:"first"`
	// Waves are the waves in all, Machines those of each later one.
	Waves    int `json:"waves"`
	Machines int `json:"machines"`
}

// seeds is how many seeds each machine of the noise sample is run with.
const seeds = 3

// DefaultBudget takes at most 20 minutes on two cores, for the published facts.
func DefaultBudget() Budget { return Budget{Noise: 16, First: 400, Waves: 9, Machines: 400} }

// QuickBudget takes at most two minutes. It demonstrates; it is too small for
// an answer.
func QuickBudget() Budget { return Budget{Noise: 4, First: 160, Waves: 4, Machines: 60} }

// Inference matches the machines that some choices leave open with facts.
type Inference struct {
	Choices *Choices
	Ask     Evaluator
	Budget  Budget
	// Seed of the choice of machines; the machines themselves run with their
	// scenario's.
	Seed uint64

	identity string
}

// RunOptions are those of a run; nothing in them changes a row.
type RunOptions struct {
	Workers  int
	Shard    sweep.Shard
	Progress study.Progress
	// From has rows made before, beside those of the run's own database.
	From *sweep.Store
}

// identityOf is what rows of the same inference have in common.
type identityOf struct {
	Version string `json:"version"`
	Choices string `json:"choices"`
	Facts   []Fact `json:"facts"`
	Seed    uint64 `json:"seed"`
	Budget  Budget `json:"budget"`
}

// notes are the names under which a database has what an inference is of.
const (
	identityNote = "inference"
)

// prepare checks the budget and names the inference by content. The number of
// waves is no part of the name: more of them later keep the ones that are
// there.
func (in *Inference) prepare() (string, error) {
	b := in.Budget
	for _, n := range []struct {
		name     string
		n, least int
	}{{"machines of the noise sample", b.Noise, 2}, {"machines of the first wave", b.First, 8}, {"waves", b.Waves, 1}, {"machines of a later wave", b.Machines, 8}} {
		if n.n < n.least || n.n > 1_000_000 {
			return "", runs.InputErrorf("%d %s, want %d to 1000000", n.n, n.name, n.least)
		}
	}
	b.Waves = 0
	text, err := json.Marshal(identityOf{sim.Version, string(in.Choices.Text), in.Ask.Facts(), in.Seed, b})
	if err != nil {
		return "", err
	}
	in.identity = digest(text)
	return string(text), nil
}

// Ran says what a run did.
type Ran struct {
	Found int `json:"found"` // rows that were there
	Made  int `json:"made"`
	// Wave is the last wave that is complete, Waves those that there will be.
	Wave  int `json:"wave"`
	Waves int `json:"waves"`
	// Partial: this shard has made its part of the next wave, and the others'
	// are needed before it can go on.
	Partial bool `json:"partial,omitempty"`

	history *history
}

// Complete tells whether all waves are there.
func (r *Ran) Complete() bool { return r.Wave == r.Waves }

// pass is one run of an inference.
type pass struct {
	in   *Inference
	db   *sweep.Store
	opt  *RunOptions
	rows map[id]*Row
	ran  *Ran
	tell *runs.Reporter
}

// Run makes what is missing of an inference in a database, row by row, and
// commits every row as soon as it is finished. Started again after an
// interruption of any kind it goes on; the rows that it makes depend neither on
// that, nor on workers and shards. When the context ends, the error is the
// context's.
//
// A run of a shard makes its part of the first wave that is not complete in
// From and the database together, and ends.
func (in *Inference) Run(ctx context.Context, db *sweep.Store, opt RunOptions) (*Ran, error) {
	p := &pass{in: in, db: db, opt: &opt, rows: map[id]*Row{}, ran: &Ran{Wave: -1, Waves: in.Budget.Waves}}
	if err := in.Open(ctx, db); err != nil {
		return p.ran, err
	}
	if err := p.load(ctx); err != nil {
		return p.ran, err
	}
	total := int64(in.Budget.Noise*seeds + in.Budget.First + (in.Budget.Waves-1)*in.Budget.Machines - p.ran.Found)
	p.tell = runs.NewReporter(opt.Progress, max(total, 1), new(atomic.Int64))
	var h *history
	for w := range in.Budget.Waves + 1 {
		var m *mixture
		if h != nil {
			m = h.next()
		}
		plan := in.plan(w, m)
		if err := p.wave(ctx, h, plan); err != nil {
			return p.ran, err
		}
		var made []*Row
		for _, r := range plan {
			if there := p.rows[r.id()]; there != nil {
				made = append(made, there)
			}
		}
		if len(made) < len(plan) {
			p.ran.Partial = true
			return p.ran, nil
		}
		if h == nil {
			h = in.newHistory(made)
		} else {
			h.add(m, made)
		}
		p.ran.Wave = w
	}
	p.ran.history = h
	return p.ran, nil
}

// Open makes a database one of this inference, or checks that it is.
func (in *Inference) Open(ctx context.Context, db *sweep.Store) error {
	text, err := in.prepare()
	if err != nil {
		return err
	}
	there, err := db.Note(ctx, identityNote)
	if err != nil {
		return err
	}
	if there == "" {
		if err := db.SetNote(ctx, identityNote, text); err != nil {
			return err
		}
		return db.AddParameters(ctx, in.Choices.parameters())
	}
	return in.same(there, text, db.Path())
}

// same says in what a database's inference differs from this one.
func (in *Inference) same(there, here, path string) error {
	if there == here {
		return nil
	}
	var a, b identityOf
	if err := json.Unmarshal([]byte(there), &a); err != nil {
		return runs.InputErrorf("database %s: its note of the inference cannot be read: %w", path, err)
	}
	if err := json.Unmarshal([]byte(here), &b); err != nil {
		return err
	}
	var differs []string
	if a.Version != b.Version {
		differs = append(differs, fmt.Sprintf("the program's version (%s, now %s)", a.Version, b.Version))
	}
	if a.Choices != b.Choices {
		differs = append(differs, "the choices")
	}
	if !slices.Equal(a.Facts, b.Facts) {
		differs = append(differs, "the facts")
	}
	if a.Seed != b.Seed {
		differs = append(differs, fmt.Sprintf("the seed (%d, now %d)", a.Seed, b.Seed))
	}
	if a.Budget != b.Budget {
		differs = append(differs, fmt.Sprintf("the budget (%+v, now %+v)", a.Budget, b.Budget))
	}
	return runs.InputErrorf("database %s: another inference; they differ in %s", path, strings.Join(differs, ", "))
}

// load reads the rows that are there.
func (p *pass) load(ctx context.Context) error {
	for _, db := range []*sweep.Store{p.opt.From, p.db} {
		if db == nil {
			continue
		}
		if db == p.opt.From {
			if err := p.in.Check(ctx, db); err != nil {
				return err
			}
		}
		rows, err := p.in.rows(ctx, db)
		if err != nil {
			return err
		}
		for _, r := range rows {
			p.rows[r.id()] = r
		}
	}
	p.ran.Found = len(p.rows)
	return nil
}

// Check tells whether a database is one of this inference.
func (in *Inference) Check(ctx context.Context, db *sweep.Store) error {
	text, err := in.prepare()
	if err != nil {
		return err
	}
	there, err := db.Note(ctx, identityNote)
	if err != nil {
		return err
	}
	if there == "" {
		return runs.InputErrorf("database %s: not one of an inference", db.Path())
	}
	return in.same(there, text, db.Path())
}

// wave makes what is missing of a wave in this shard.
func (p *pass) wave(ctx context.Context, h *history, plan []*Row) error {
	var missing []*Row
	for i, r := range plan {
		if p.rows[r.id()] == nil && (p.opt.Shard.Of <= 1 || i%p.opt.Shard.Of == p.opt.Shard.Index) {
			missing = append(missing, r)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var j *judge
	if h != nil {
		j = h.judge
	}
	return p.make(ctx, j, missing)
}

// make evaluates rows and commits them.
func (p *pass) make(ctx context.Context, j *judge, missing []*Row) error {
	type made struct {
		row  *Row
		seed uint64
	}
	finished := make(chan made, 4*runs.Workers(p.opt.Workers))
	stored := make(chan error, 1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		var failure error
		for m := range finished {
			if failure != nil {
				continue // only to let the workers end
			}
			var w *sweep.Row
			if w, failure = p.in.store(m.row, m.seed); failure == nil {
				// What is finished is committed even when the run is cut short.
				failure = p.db.Insert(context.WithoutCancel(ctx), p.in.Choices.parameters(), []sweep.Row{*w})
			}
			if failure != nil {
				stop()
				continue
			}
			p.rows[m.row.id()] = m.row
			p.ran.Made++
			p.tell.Add(1, fmt.Sprintf("wave %d", m.row.Wave))
		}
		stored <- failure
	}()
	err := runs.Each(ctx, p.opt.Workers, len(missing), func(ctx context.Context, i int) error {
		row, seed, err := p.in.evaluate(ctx, j, missing[i])
		if err == nil {
			finished <- made{row, seed}
		}
		return err
	})
	close(finished)
	if serr := <-stored; serr != nil {
		return serr
	}
	return err
}

// evaluate asks a planned machine, stage by stage, until two groups rule it
// out. Machines of the noise sample answer everything.
func (in *Inference) evaluate(ctx context.Context, j *judge, planned *Row) (*Row, uint64, error) {
	r := &Row{Wave: planned.Wave, Number: planned.Number, Replication: planned.Replication, U: planned.U}
	r.Facts = map[string]traces.Real{}
	m, err := in.Choices.Machine(r.U)
	if err != nil {
		// Choices that do not go together: the machine cannot be built.
		r.Reason = err.Error()
		r, err = settle(r)
		return r, 0, err
	}
	seed := m.Scenario.Seed + uint64(r.Replication)
	for s := range in.Ask.Stages() {
		if err := in.Ask.Evaluate(ctx, m, seed, s, &r.Answers); err != nil {
			return nil, 0, err
		}
		r.Stage = s + 1
		if r.Reason != "" || r.Wave > 0 && j.ruledOut(r) {
			break
		}
	}
	r, err = settle(r)
	return r, seed, err
}
