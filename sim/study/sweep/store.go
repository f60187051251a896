package sweep

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"spinesim/sim"
	"spinesim/sim/study"
)

const (
	// applicationID marks a database as one of a sweep: "Spin".
	applicationID = 0x5370696e
	// storeVersion is the version of its tables.
	storeVersion = 1
)

// Store is an SQLite database of runs, one row a run:
//
//	runs(key, scenario_hash, seed, replication, a column for each factor by
//	its path, a column for each metric by its name, received, forwarded,
//	to_host, dropped, fingerprint, version, result)
//	parameters(path, unit)
//	notes(name, text), where a study keeps any
//
// A factor's column holds the value that the scenario really had, as a number
// in the unit that parameters tells, or as text. result is the whole result as
// the run command prints it, without wall-clock times. The key names scenario,
// seed and program version by content.
//
// Every commit is whole: a process that is killed leaves all rows committed so
// far and nothing of others. Several processes may write to one database, but
// on a file system shared by machines give each its own and merge them.
type Store struct {
	db   *sql.DB
	path string
}

// fixedColumns come before the factors', metricColumns after them.
var fixedColumns = []string{"key", "scenario_hash", "seed", "replication"}

var countColumns = []string{"received", "forwarded", "to_host", "dropped"}

// OpenStore opens a database, or makes one. A file that is something else is an
// *sim.InputError.
func OpenStore(path string) (*Store, error) { return openStore(path, true) }

// OpenStoreForReading opens a database that is there.
func OpenStoreForReading(path string) (*Store, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, &sim.InputError{Err: fmt.Errorf("database %w", err)}
	}
	return openStore(path, false)
}

func openStore(path string, create bool) (*Store, error) {
	// A rollback journal, synchronised: after a kill, or a power failure, the
	// next open undoes what was not committed. Unlike a write-ahead log it
	// works on network file systems and leaves a single file.
	opt := url.Values{"_pragma": {"busy_timeout(60000)", "journal_mode(DELETE)", "synchronous(FULL)"}, "_txlock": {"immediate"}}
	mode := "rw"
	if create {
		mode = "rwc"
	}
	opt.Set("mode", mode)
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+opt.Encode())
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	db.SetMaxOpenConns(1)
	s := &Store{db: db, path: path}
	if err := s.init(create); err != nil {
		db.Close()
		return nil, &sim.InputError{Err: fmt.Errorf("database %s: %w", path, err)}
	}
	return s, nil
}

func (s *Store) init(create bool) error {
	var app, version, tables int
	if err := s.db.QueryRow("PRAGMA application_id").Scan(&app); err != nil {
		return err
	}
	if err := s.db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if err := s.db.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	switch {
	case app == 0 && tables == 0 && create:
	case app != applicationID:
		return errors.New("not a database of a sweep")
	case version != storeVersion:
		return fmt.Errorf("version %d, want %d", version, storeVersion)
	default:
		return nil
	}
	return s.update(context.Background(), func(tx *sql.Tx) error {
		var cols []string
		for _, m := range study.Metrics() {
			cols = append(cols, column(m.Name)+" REAL")
		}
		for _, c := range countColumns {
			cols = append(cols, column(c)+" INTEGER")
		}
		for _, q := range []string{
			fmt.Sprintf("PRAGMA application_id=%d", applicationID),
			fmt.Sprintf("PRAGMA user_version=%d", storeVersion),
			"CREATE TABLE IF NOT EXISTS runs(key TEXT PRIMARY KEY NOT NULL, scenario_hash TEXT NOT NULL, seed INTEGER NOT NULL, replication INTEGER NOT NULL, " +
				strings.Join(cols, ", ") + ", fingerprint TEXT NOT NULL, version TEXT NOT NULL, result TEXT NOT NULL)",
			"CREATE INDEX IF NOT EXISTS runs_by_scenario ON runs(scenario_hash)",
			"CREATE TABLE IF NOT EXISTS parameters(path TEXT PRIMARY KEY NOT NULL, unit TEXT NOT NULL)",
		} {
			if _, err := tx.Exec(q); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Path is the database's file.
func (s *Store) Path() string { return s.path }

// update makes a change that happens whole or not at all.
func (s *Store) update(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// column quotes a column's name.
func column(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// Parameter is a factor's column.
type Parameter struct {
	Path string `json:"path"`
	Unit string `json:"unit,omitempty"`
}

// Parameters lists the factors' columns in the order in which they came in.
func (s *Store) Parameters() ([]Parameter, error) {
	rows, err := s.db.Query("SELECT path, unit FROM parameters ORDER BY rowid")
	if err != nil {
		return nil, s.fail(err)
	}
	defer rows.Close()
	var out []Parameter
	for rows.Next() {
		var p Parameter
		if err := rows.Scan(&p.Path, &p.Unit); err != nil {
			return nil, s.fail(err)
		}
		out = append(out, p)
	}
	return out, s.fail(rows.Err())
}

func (s *Store) fail(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("database %s: %w", s.path, err)
}

// AddParameters adds columns for factors that have none yet.
func (s *Store) AddParameters(ctx context.Context, ps []Parameter) error {
	have, err := s.Parameters()
	if err != nil {
		return err
	}
	return s.fail(s.update(ctx, func(tx *sql.Tx) error {
		for _, p := range ps {
			if slices.ContainsFunc(have, func(h Parameter) bool { return h.Path == p.Path }) {
				continue
			}
			if _, err := tx.Exec("ALTER TABLE runs ADD COLUMN " + column(p.Path)); err != nil {
				return err
			}
			if _, err := tx.Exec("INSERT INTO parameters(path, unit) VALUES(?, ?)", p.Path, p.Unit); err != nil {
				return err
			}
		}
		return nil
	}))
}

// keys are the keys of all runs, with their fingerprints.
func (s *Store) keys(ctx context.Context) (map[string]string, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT key, fingerprint FROM runs")
	if err != nil {
		return nil, s.fail(err)
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var k, f string
		if err := rows.Scan(&k, &f); err != nil {
			return nil, s.fail(err)
		}
		out[k] = f
	}
	return out, s.fail(rows.Err())
}

// Row is one run as a database keeps it.
type Row struct {
	Key         string // names the run by content
	Hash        string // of the scenario
	Seed        uint64
	Replication int
	Params      []any     // values of the parameters: numbers, texts or nil
	Values      []float64 // of study.Metrics; NaN for none
	Counts      []uint64  // packets received, forwarded, to the host, dropped
	Fingerprint string
	Version     string // of the program
	Result      string // JSON
}

// ErrDiffers reports two runs that should be the same and are not.
var ErrDiffers = errors.New("the same run gave another result")

// Insert adds runs in one commit. A run that is there already must have done
// the same.
func (s *Store) Insert(ctx context.Context, ps []Parameter, rows []Row) error {
	names := slices.Clone(fixedColumns)
	for _, p := range ps {
		names = append(names, p.Path)
	}
	for _, m := range study.Metrics() {
		names = append(names, m.Name)
	}
	names = append(names, countColumns...)
	names = append(names, "fingerprint", "version", "result")
	q := insertQuery(names)
	return s.fail(s.update(ctx, func(tx *sql.Tx) error {
		for _, r := range rows {
			args := []any{r.Key, r.Hash, int64(r.Seed), r.Replication}
			args = append(args, r.Params...)
			for _, v := range r.Values {
				args = append(args, realOrNull(v))
			}
			for _, c := range r.Counts {
				args = append(args, int64(c))
			}
			args = append(args, r.Fingerprint, r.Version, r.Result)
			if err := insertOnce(tx, q, args, r.Key, r.Fingerprint); err != nil {
				return err
			}
		}
		return nil
	}))
}

// Results calls do with the result of every run, sorted by key.
func (s *Store) Results(ctx context.Context, do func(result string) error) error {
	rows, err := s.db.QueryContext(ctx, "SELECT result FROM runs ORDER BY key")
	if err != nil {
		return s.fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return s.fail(err)
		}
		if err := do(text); err != nil {
			return err
		}
	}
	return s.fail(rows.Err())
}

// Note is a text that a study keeps beside its runs, "" without one.
func (s *Store) Note(ctx context.Context, name string) (string, error) {
	var n int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'notes'").Scan(&n); err != nil || n == 0 {
		return "", s.fail(err)
	}
	var text string
	err := s.db.QueryRowContext(ctx, "SELECT text FROM notes WHERE name = ?", name).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return text, s.fail(err)
}

// SetNote keeps a text beside the runs.
func (s *Store) SetNote(ctx context.Context, name, text string) error {
	return s.fail(s.update(ctx, func(tx *sql.Tx) error {
		if _, err := tx.Exec("CREATE TABLE IF NOT EXISTS notes(name TEXT PRIMARY KEY NOT NULL, text TEXT NOT NULL)"); err != nil {
			return err
		}
		_, err := tx.Exec("INSERT INTO notes(name, text) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET text = excluded.text", name, text)
		return err
	}))
}

func insertQuery(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = column(n)
	}
	return "INSERT INTO runs(" + strings.Join(quoted, ", ") + ") VALUES(?" + strings.Repeat(", ?", len(names)-1) + ") ON CONFLICT(key) DO NOTHING"
}

// insertOnce inserts a run, or checks it against the one that is there.
func insertOnce(tx *sql.Tx, query string, args []any, key, fingerprint string) error {
	res, err := tx.Exec(query, args...)
	if err != nil {
		return err
	}
	n, err := res.RowsAffected()
	if err != nil || n == 1 {
		return err
	}
	var there string
	if err := tx.QueryRow("SELECT fingerprint FROM runs WHERE key = ?", key).Scan(&there); err != nil {
		return err
	}
	if there != fingerprint {
		return fmt.Errorf("%w: run %s has fingerprint %s, and now %s", ErrDiffers, key, there, fingerprint)
	}
	return nil
}

// realOrNull is a value as the database keeps it.
func realOrNull(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

// setParameters fills the factors' columns of runs that were made for another
// design, in which these fields did not vary.
func (s *Store) setParameters(ctx context.Context, ps []Parameter, points []plannedPoint) error {
	if len(ps) == 0 || len(points) == 0 {
		return nil
	}
	var sets, differs []string
	for _, p := range ps {
		sets = append(sets, column(p.Path)+" = ?")
		differs = append(differs, column(p.Path)+" IS NOT ?")
	}
	return s.fail(s.update(ctx, func(tx *sql.Tx) error {
		st, err := tx.Prepare("UPDATE runs SET " + strings.Join(sets, ", ") + " WHERE scenario_hash = ? AND (" + strings.Join(differs, " OR ") + ")")
		if err != nil {
			return err
		}
		defer st.Close()
		for _, p := range points {
			args := append(slices.Clone(p.params), p.hash)
			if _, err := st.Exec(append(args, p.params...)...); err != nil {
				return err
			}
		}
		return nil
	}))
}

// columns are the names of the table's columns.
func (s *Store) columns() ([]string, error) {
	rows, err := s.db.Query("SELECT name FROM pragma_table_info('runs')")
	if err != nil {
		return nil, s.fail(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var n string
		if err := rows.Scan(&n); err != nil {
			return nil, s.fail(err)
		}
		out = append(out, n)
	}
	return out, s.fail(rows.Err())
}

// mergeNotes takes over the notes of another database. One that both have must
// be the same.
func (s *Store) mergeNotes(ctx context.Context, from *Store) error {
	var names []string
	var n int
	if err := from.db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'notes'").Scan(&n); err != nil || n == 0 {
		return from.fail(err)
	}
	rows, err := from.db.QueryContext(ctx, "SELECT name FROM notes ORDER BY name")
	if err != nil {
		return from.fail(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return from.fail(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return from.fail(err)
	}
	for _, name := range names {
		theirs, err := from.Note(ctx, name)
		if err != nil {
			return err
		}
		ours, err := s.Note(ctx, name)
		switch {
		case err != nil:
			return err
		case ours == "":
			if err := s.SetNote(ctx, name, theirs); err != nil {
				return err
			}
		case ours != theirs:
			return &sim.InputError{Err: fmt.Errorf("databases %s and %s are of different studies: their notes of %s differ", s.path, from.path, name)}
		}
	}
	return nil
}

// Merge takes over the runs of another database, all or none. A run that both
// have must have done the same in both, else the error is ErrDiffers. It
// returns how many runs were new.
func (s *Store) Merge(ctx context.Context, from *Store) (added int, err error) {
	if err := s.mergeNotes(ctx, from); err != nil {
		return 0, err
	}
	ps, err := from.Parameters()
	if err != nil {
		return 0, err
	}
	if err := s.AddParameters(ctx, ps); err != nil {
		return 0, err
	}
	theirs, err := from.columns()
	if err != nil {
		return 0, err
	}
	ours, err := s.columns()
	if err != nil {
		return 0, err
	}
	// Metrics of another program version may be missing here.
	names := slices.DeleteFunc(theirs, func(n string) bool { return !slices.Contains(ours, n) })
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = column(n)
	}
	key, print := slices.Index(names, "key"), slices.Index(names, "fingerprint")
	if key < 0 || print < 0 {
		return 0, &sim.InputError{Err: fmt.Errorf("database %s: no key or no fingerprint", from.path)}
	}
	var before, after int
	count := func(tx *sql.Tx) (n int, err error) {
		return n, tx.QueryRow("SELECT count(*) FROM runs").Scan(&n)
	}
	err = s.update(ctx, func(tx *sql.Tx) error {
		var err error
		if before, err = count(tx); err != nil {
			return err
		}
		rows, err := from.db.QueryContext(ctx, "SELECT "+strings.Join(quoted, ", ")+" FROM runs ORDER BY key")
		if err != nil {
			return err
		}
		defer rows.Close()
		q := insertQuery(names)
		for rows.Next() {
			v := make([]any, len(names))
			p := make([]any, len(names))
			for i := range v {
				p[i] = &v[i]
			}
			if err := rows.Scan(p...); err != nil {
				return err
			}
			if err := insertOnce(tx, q, v, fmt.Sprint(v[key]), fmt.Sprint(v[print])); err != nil {
				return err
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		after, err = count(tx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("merge %s into %s: %w", from.path, s.path, err)
	}
	return after - before, nil
}
