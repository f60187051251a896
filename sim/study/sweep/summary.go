package sweep

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"spinesim/sim"
	"spinesim/sim/study"
	"spinesim/traces"
)

// Summary is what a database of runs says, point by point and factor by
// factor.
type Summary struct {
	Database   string         `json:"database"`
	Runs       int            `json:"runs"`
	Parameters []Parameter    `json:"parameters"`
	Metrics    []study.Metric `json:"metrics"`
	Points     []PointSummary `json:"points"`
	Effects    []Effect       `json:"effects"`
}

// PointSummary is one combination of the factors' values with its replications.
type PointSummary struct {
	Values       []any                     `json:"values"` // by parameter: number, text or null
	ScenarioHash string                    `json:"scenario_hash"`
	Version      string                    `json:"version"` // of the program
	Replications int                       `json:"replications"`
	Figures      map[string]study.Interval `json:"figures"` // by metric, over the replications
}

// Effect is a metric at one level of a factor, over all points that have
// it. In a balanced design differences between levels are main effects.
type Effect struct {
	Parameter string `json:"parameter"`
	Value     any    `json:"value"`
	Points    int    `json:"points"`
	// Figures are the means over the points' means; their intervals are over
	// the points, and so as wide as the other factors make them.
	Figures map[string]study.Interval `json:"figures"`
}

// Summary summarises the runs by metrics; nil stands for all of them.
func (s *Store) Summary(names []string) (*Summary, error) {
	ms := study.Metrics()
	if names != nil {
		ms = nil
		for _, n := range names {
			m, err := study.MetricByName(n)
			if err != nil {
				return nil, err
			}
			ms = append(ms, *m)
		}
	}
	have, err := s.columns()
	if err != nil {
		return nil, err
	}
	ms = slices.DeleteFunc(ms, func(m study.Metric) bool { return !slices.Contains(have, m.Name) })
	ps, err := s.Parameters()
	if err != nil {
		return nil, err
	}
	r := &Summary{Database: s.path, Parameters: append([]Parameter{}, ps...), Metrics: ms, Points: []PointSummary{}, Effects: []Effect{}}
	cols := []string{"scenario_hash", "version"}
	for _, p := range ps {
		cols = append(cols, p.Path)
	}
	for _, m := range ms {
		cols = append(cols, m.Name)
	}
	var sums [][]float64 // of the point under way, by metric
	flush := func() {
		if n := len(r.Points); n > 0 && sums != nil {
			p := &r.Points[n-1]
			for i, m := range ms {
				p.Figures[m.Name] = study.NewInterval(sums[i])
			}
		}
	}
	err = s.scan(cols, ps, func(v []any) error {
		r.Runs++
		hash, _ := v[0].(string)
		version, _ := v[1].(string)
		v = v[2:]
		if n := len(r.Points); n == 0 || r.Points[n-1].ScenarioHash != hash || r.Points[n-1].Version != version {
			flush()
			r.Points = append(r.Points, PointSummary{Values: slices.Clone(v[:len(ps)]), ScenarioHash: hash, Version: version, Figures: map[string]study.Interval{}})
			sums = make([][]float64, len(ms))
		}
		r.Points[len(r.Points)-1].Replications++
		for i := range ms {
			switch x := v[len(ps)+i].(type) {
			case float64:
				sums[i] = append(sums[i], x)
			case int64:
				sums[i] = append(sums[i], float64(x))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	flush()
	for i, p := range ps {
		r.Effects = append(r.Effects, effects(r.Points, i, p.Path, ms)...)
	}
	return r, nil
}

// effects are the metrics at each value of a factor.
func effects(points []PointSummary, factor int, path string, ms []study.Metric) []Effect {
	var out []Effect
	at := map[string]int{}
	means := [][][]float64{} // by value and metric
	for _, p := range points {
		key := cell(p.Values[factor])
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, Effect{Parameter: path, Value: p.Values[factor], Figures: map[string]study.Interval{}})
			means = append(means, make([][]float64, len(ms)))
		}
		out[i].Points++
		for j, m := range ms {
			means[i][j] = append(means[i][j], float64(p.Figures[m.Name].Mean))
		}
	}
	for i := range out {
		for j, m := range ms {
			out[i].Figures[m.Name] = study.NewInterval(means[i][j])
		}
	}
	slices.SortStableFunc(out, func(a, b Effect) int { return compareValues(a.Value, b.Value) })
	return out
}

// compareValues sorts as the database does: nothing, numbers, text.
func compareValues(a, b any) int {
	rank := func(v any) (int, float64, string) {
		switch v := v.(type) {
		case int64:
			return 1, float64(v), ""
		case float64:
			return 1, v, ""
		case string:
			return 2, 0, v
		}
		return 0, 0, ""
	}
	ra, fa, sa := rank(a)
	rb, fb, sb := rank(b)
	return cmp.Or(cmp.Compare(ra, rb), cmp.Compare(fa, fb), strings.Compare(sa, sb))
}

// Values are a metric of all runs of a point in the order of their
// replications, for figures that need more than a mean.
func (s *Store) Values(scenarioHash, metric string) ([]traces.Real, error) {
	m, err := study.MetricByName(metric)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Query("SELECT "+column(m.Name)+" FROM runs WHERE scenario_hash = ? ORDER BY replication, seed", scenarioHash)
	if err != nil {
		return nil, s.fail(err)
	}
	defer rows.Close()
	var out []traces.Real
	for rows.Next() {
		var v any
		if err := rows.Scan(&v); err != nil {
			return nil, s.fail(err)
		}
		x, ok := v.(float64)
		if !ok {
			x = math.NaN()
		}
		out = append(out, traces.Real(x))
	}
	return out, s.fail(rows.Err())
}

// Result is the whole stored result of a run.
func (s *Store) Result(key string) (*sim.Result, error) {
	var text string
	if err := s.db.QueryRow("SELECT result FROM runs WHERE key = ?", key).Scan(&text); err != nil {
		return nil, s.fail(err)
	}
	var r sim.Result
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, s.fail(err)
	}
	return &r, nil
}
