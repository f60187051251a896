package infer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"spinesim/sim"
	"spinesim/sim/study"
	"spinesim/sim/study/sweep"
	"spinesim/traces"
)

// Row is a machine with its answers, as the database keeps it.
type Row struct {
	// Wave is 0 for the sample that noise is estimated from.
	Wave int `json:"wave"`
	// Number counts the machines of a wave, Replication the seeds of one.
	Number      int `json:"number"`
	Replication int `json:"replication"`
	// U is the place in the unit cube, in the order of the choices.
	U []float64 `json:"u"`
	// Stage is how many stages were asked.
	Stage int `json:"stage"`
	Answers
}

func compareRows(a, b *Row) int {
	return cmp.Or(cmp.Compare(a.Wave, b.Wave), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Replication, b.Replication))
}

// id names a row of an inference.
type id struct{ wave, number, replication int }

func (r *Row) id() id { return id{r.Wave, r.Number, r.Replication} }

// parameters are the columns that choices have in the database.
func (c *Choices) parameters() []sweep.Parameter {
	ps := []sweep.Parameter{{Path: "wave"}, {Path: "number"}}
	for i := range c.List {
		ps = append(ps, sweep.Parameter{Path: c.List[i].Name, Unit: c.List[i].Unit})
	}
	return ps
}

// store makes a row what the database keeps.
func (in *Inference) store(r *Row, seed uint64) (*sweep.Row, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	w := &sweep.Row{Seed: seed, Replication: r.Replication, Params: []any{r.Wave, r.Number}, Version: sim.Version, Result: string(text)}
	for i := range in.Choices.List {
		o := &in.Choices.List[i]
		switch v, ok := o.Number(r.U[i]); {
		case !in.Choices.active(i, r.U):
			w.Params = append(w.Params, nil)
		case ok:
			w.Params = append(w.Params, v)
		default:
			w.Params = append(w.Params, o.Value(r.U[i]))
		}
	}
	for _, m := range study.Metrics() {
		v, ok := r.Metrics[m.Name]
		if !ok {
			v = traces.Real(math.NaN())
		}
		w.Values = append(w.Values, float64(v))
	}
	w.Counts = []uint64{r.Packets, 0, 0, 0}
	w.Hash = in.identity[:16]
	w.Key = digest(fmt.Appendf(nil, "%s\n%s\n%d %d %d\n", sim.Version, in.identity, r.Wave, r.Number, r.Replication))
	w.Fingerprint = digest(text)
	return w, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// rows reads all rows of a database, in order.
func (in *Inference) rows(ctx context.Context, db *sweep.Store) ([]*Row, error) {
	var out []*Row
	err := db.Results(ctx, func(text string) error {
		r, err := parseRow(text)
		if err != nil {
			return fmt.Errorf("database %s: %w", db.Path(), err)
		}
		if len(r.U) != len(in.Choices.List) {
			return fmt.Errorf("database %s: a row of %d choices, want %d", db.Path(), len(r.U), len(in.Choices.List))
		}
		out = append(out, r)
		return nil
	})
	slices.SortFunc(out, compareRows)
	return out, err
}

func parseRow(text string) (*Row, error) {
	r := &Row{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("no row of an inference: %w", err)
	}
	return r, nil
}

// settle rounds a row as the database does, so that it says the same whether it
// was made now or read.
func settle(r *Row) (*Row, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return parseRow(string(text))
}
