package sweep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"spinesim/sim"
	"spinesim/sim/study"
	"spinesim/sim/study/internal/runs"
)

// Shard is a part of a sweep: the runs whose number leaves Index when divided
// by Of. The zero value is all of it.
type Shard struct{ Index, Of int }

// ParseShard reads "i/n" with i from 0 to n−1, as job arrays count (Kubernetes
// JOB_COMPLETION_INDEX, Slurm --array=0-3).
func ParseShard(s string) (Shard, error) {
	a, b, ok := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || n < 1 || n > 1_000_000 || i < 0 || i >= n {
		return Shard{}, runs.InputErrorf("shard %q, want i/n with i from 0 to n-1, such as 0/4", s)
	}
	return Shard{i, n}, nil
}

func (s Shard) has(run int) bool { return s.Of <= 1 || run%s.Of == s.Index }

// Options are those of a sweep.
type Options struct {
	// Replications instead of the design's, 0 for those. More of them later
	// keep the ones that are there.
	Replications int
	Shard        Shard
	// Workers is how many runs go on at once [GOMAXPROCS].
	Workers int
	// Progress is told the runs that are done, of those that were missing.
	Progress study.Progress
}

// Plan is everything that a sweep would run.
type Plan struct {
	Name         string        `json:"name"`
	Scenario     string        `json:"scenario"`
	Design       string        `json:"design"`
	Points       int           `json:"points"` // different ones
	Replications int           `json:"replications"`
	Runs         int           `json:"runs"`
	Parameters   []Parameter   `json:"parameters"`
	Fraction     *FractionInfo `json:"fraction,omitempty"`
	Notes        []string      `json:"notes,omitempty"`

	points []plannedPoint
	seed   uint64
}

// plannedPoint is a point of the design as a scenario.
type plannedPoint struct {
	sc     *sim.Scenario
	hash   string
	params []any
}

// Report says what a sweep did.
type Report struct {
	*Plan
	Database    string   `json:"database"`
	Shard       string   `json:"shard,omitempty"`
	Planned     int      `json:"planned"` // runs of this shard
	Found       int      `json:"found"`   // already in the database
	Made        int      `json:"made"`
	Failed      []string `json:"failed,omitempty"`
	Interrupted bool     `json:"interrupted,omitempty"`
}

// Plan checks a design and works out its points. Every mistake that a scenario
// can have shows here, with the line of the factor it belongs to.
func (d *Design) Plan(ctx context.Context, replications int) (*Plan, error) {
	if replications == 0 {
		replications = d.Replications
	}
	if replications < 1 || replications > maxReps {
		return nil, runs.InputErrorf("%d replications, want 1 to %d", replications, maxReps)
	}
	var fixed []string
	for _, s := range d.Settings {
		fixed = append(fixed, s.text())
	}
	base, err := sim.Load(d.Scenario, fixed...)
	if err != nil {
		return nil, d.blame("", err)
	}
	p := &Plan{Name: d.Name, Scenario: base.Name, Design: d.Kind, Replications: replications, seed: base.Seed}
	if d.Seed != nil {
		p.seed = *d.Seed
	}
	points, info, err := d.points()
	if err != nil {
		return nil, err
	}
	p.Fraction = info
	// Every level on its own first: an error then names its factor.
	for _, f := range d.Factors {
		if err := d.levels(&f, fixed); err != nil {
			return nil, err
		}
	}
	planned := make([]plannedPoint, len(points))
	err = runs.Each(ctx, 0, len(points), func(_ context.Context, i int) error {
		settings := fixed[:len(fixed):len(fixed)]
		for j, f := range d.Factors {
			settings = append(settings, f.Path+"="+points[i][j])
		}
		sc, err := sim.Load(d.Scenario, settings...)
		if err != nil {
			return d.blame("factors", fmt.Errorf("point %d (%s): %w", i+1, strings.Join(settings[len(fixed):], ", "), err))
		}
		hash, err := sc.Hash()
		if err != nil {
			return err
		}
		planned[i] = plannedPoint{sc: sc, hash: hash}
		for _, f := range d.Factors {
			v, _ := FieldValue(sc, f.Path)
			planned[i].params = append(planned[i].params, v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, q := range planned {
		if !seen[q.hash] {
			seen[q.hash] = true
			p.points = append(p.points, q)
		}
	}
	if n := len(planned) - len(p.points); n > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("%d points are the same scenario as another and are run once", n))
	}
	for _, f := range d.Factors {
		par := Parameter{Path: f.Path}
		for _, q := range p.points {
			if _, unit := FieldValue(q.sc, f.Path); unit != "" {
				par.Unit = unit
			}
		}
		p.Parameters = append(p.Parameters, par)
	}
	p.Points, p.Runs = len(p.points), len(p.points)*replications
	return p, nil
}

// levels tries a factor's values one by one on the base scenario. Only what is
// wrong with the field itself is an error here: values that other factors must
// fit are tried with them.
func (d *Design) levels(f *Factor, fixed []string) error {
	try := f.Levels
	if len(try) == 0 {
		try = []string{QuoteValue(f.span.at(0)), QuoteValue(f.span.at(1))}
	}
	for _, l := range try {
		_, err := sim.Load(d.Scenario, append(fixed[:len(fixed):len(fixed)], f.Path+"="+l)...)
		if err != nil && (strings.Contains(err.Error(), "--set "+f.Path) || fieldType(f.Path) == nil) {
			return d.blame("factors."+f.Path, err)
		}
	}
	return nil
}

// blame puts the place in the design file before an error from the scenario.
func (d *Design) blame(key string, err error) error {
	var in *sim.InputError
	if !errors.As(err, &in) {
		return err
	}
	text := err
	if key != "" {
		// The field's path is in the key already.
		path := strings.TrimPrefix(key, "factors.")
		if cut, ok := strings.CutPrefix(text.Error(), "--set "+path+": "); ok {
			text = errors.New(cut)
		}
		return d.fail(key, "%w", text)
	}
	// One of the settings, or the scenario itself.
	for _, s := range d.Settings {
		if cut, ok := strings.CutPrefix(text.Error(), "--set "+s.Path+": "); ok {
			return d.fail("settings."+s.Path, "%s", cut)
		}
	}
	return d.fail("scenario", "%w", text)
}

// runKey names a run by its content.
func runKey(hash string, seed uint64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n", sim.Version, hash, seed))
	return hex.EncodeToString(sum[:16])
}

// run is number i of the plan, replications outermost, so that an interrupted
// sweep has seen every point.
func (p *Plan) run(i int) (*plannedPoint, Row) {
	q := &p.points[i%len(p.points)]
	rep := i / len(p.points)
	seed := p.seed + uint64(rep)
	return q, Row{Key: runKey(q.hash, seed), Hash: q.hash, Seed: seed, Replication: rep, Params: q.params}
}

// resultText is a result as it is stored: without what differs from one
// execution to the next.
func resultText(r *sim.Result) (string, error) {
	c := *r
	c.WallS = 0
	b, err := json.Marshal(&c)
	return string(b), err
}

// Run runs what is missing of a design in a database. It commits every run as
// soon as it is finished; started again after an interruption of any kind it
// goes on, and repeats no run that was committed. A run that fails is reported
// and does not keep the others from being made.
//
// When the context ends, the error is the context's; the database has all runs
// that were finished.
func Run(ctx context.Context, d *Design, db *Store, opt Options) (*Report, error) {
	p, err := d.Plan(ctx, opt.Replications)
	if err != nil {
		return nil, err
	}
	r := &Report{Plan: p, Database: db.Path()}
	if opt.Shard.Of > 1 {
		r.Shard = fmt.Sprintf("%d/%d", opt.Shard.Index, opt.Shard.Of)
	}
	if err := db.AddParameters(ctx, p.Parameters); err != nil {
		return r, err
	}
	there, err := db.keys(ctx)
	if err != nil {
		return r, err
	}
	var missing []int
	for i := range p.Runs {
		if !opt.Shard.has(i) {
			continue
		}
		r.Planned++
		_, w := p.run(i)
		if _, ok := there[w.Key]; !ok {
			missing = append(missing, i)
		}
	}
	r.Found = r.Planned - len(missing)
	if err := db.setParameters(ctx, p.Parameters, p.points); err != nil {
		return r, err
	}
	err = p.make(ctx, db, missing, &opt, r)
	if err != nil && ctx.Err() != nil {
		r.Interrupted = true
		return r, ctx.Err()
	}
	if err == nil && len(r.Failed) > 0 {
		err = fmt.Errorf("%d of %d runs failed, the first: %s", len(r.Failed), len(missing), r.Failed[0])
	}
	return r, err
}

// make makes runs and commits them.
func (p *Plan) make(ctx context.Context, db *Store, missing []int, opt *Options, r *Report) error {
	var done atomic.Int64
	report := runs.NewReporter(opt.Progress, int64(len(missing)), &done)
	rows := make(chan Row, 4*runs.Workers(opt.Workers))
	stored := make(chan error, 1)
	failed := make([]string, len(missing))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		var failure error
		for w := range rows {
			batch := []Row{w}
			for more := true; more && len(batch) < 256; {
				select {
				case w, ok := <-rows:
					if more = ok; ok {
						batch = append(batch, w)
					}
				default:
					more = false
				}
			}
			if failure != nil {
				continue // only to let the workers end
			}
			// What is finished is committed even when the sweep is cut short.
			if failure = db.Insert(context.WithoutCancel(ctx), p.Parameters, batch); failure != nil {
				stop()
				continue
			}
			r.Made += len(batch)
			report.Add(int64(len(batch)), "")
		}
		stored <- failure
	}()
	err := runs.Each(ctx, opt.Workers, len(missing), func(ctx context.Context, k int) error {
		q, w := p.run(missing[k])
		sc := runs.With(q.sc, func(c *sim.Scenario) { c.Seed = w.Seed })
		res, err := sim.Run(ctx, sc, sim.Options{})
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil {
			w.Fingerprint, w.Version = res.Fingerprint, res.Version
			for _, m := range study.Metrics() {
				w.Values = append(w.Values, m.Of(res))
			}
			var dropped uint64
			for _, c := range res.Cards {
				for _, n := range c.Dropped {
					dropped += n
				}
			}
			w.Counts = []uint64{res.Received, res.Forwarded, res.ToHost, dropped}
			w.Result, err = resultText(res)
		}
		if err != nil {
			failed[k] = fmt.Sprintf("point %v, seed %d: %v", w.Params, w.Seed, err)
			return nil
		}
		rows <- w
		return nil
	})
	close(rows)
	serr := <-stored
	for _, f := range failed {
		if f != "" {
			r.Failed = append(r.Failed, f)
		}
	}
	if serr != nil {
		return serr
	}
	return err
}
