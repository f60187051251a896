package sweep

import (
	"bufio"
	"database/sql"
	"encoding/csv"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"spinesim/sim/study"
)

// exportColumns are all columns but the whole result, the factors' right
// behind what identifies a run.
func (s *Store) exportColumns() ([]string, []Parameter, error) {
	ps, err := s.Parameters()
	if err != nil {
		return nil, nil, err
	}
	have, err := s.columns()
	if err != nil {
		return nil, nil, err
	}
	names := slices.Clone(fixedColumns)
	for _, p := range ps {
		names = append(names, p.Path)
	}
	for _, n := range have {
		if n != "result" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names, ps, nil
}

// scan calls do for every run, sorted by the factors and then by replication.
// The values are int64, float64, string or nil; the slice is used again.
func (s *Store) scan(names []string, ps []Parameter, do func([]any) error) error {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = column(n)
	}
	var order []string
	for _, p := range ps {
		order = append(order, column(p.Path))
	}
	order = append(order, "scenario_hash", "version", "replication", "seed", "key")
	rows, err := s.db.Query("SELECT " + strings.Join(quoted, ", ") + " FROM runs ORDER BY " + strings.Join(order, ", "))
	if err != nil {
		return s.fail(err)
	}
	defer rows.Close()
	v, p := make([]any, len(names)), make([]any, len(names))
	for i := range v {
		p[i] = &v[i]
	}
	for rows.Next() {
		if err := rows.Scan(p...); err != nil {
			return s.fail(err)
		}
		for i := range v {
			if b, ok := v[i].([]byte); ok {
				v[i] = string(b)
			}
		}
		if err := do(v); err != nil {
			return err
		}
	}
	return s.fail(rows.Err())
}

// header is a column's name with its unit.
func header(name string, ps []Parameter) string {
	for _, p := range ps {
		if p.Path == name && p.Unit != "" {
			return name + " (" + p.Unit + ")"
		}
	}
	return name
}

func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// WriteCSV writes all runs, one line each, sorted by the factors. A figure that
// a run does not have is empty. The whole results stay in the database.
func (s *Store) WriteCSV(w io.Writer) error {
	names, ps, err := s.exportColumns()
	if err != nil {
		return err
	}
	c := csv.NewWriter(w)
	line := make([]string, len(names))
	for i, n := range names {
		line[i] = header(n, ps)
	}
	if err := c.Write(line); err != nil {
		return err
	}
	err = s.scan(names, ps, func(v []any) error {
		for i := range v {
			line[i] = cell(v[i])
		}
		return c.Write(line)
	})
	if err != nil {
		return err
	}
	c.Flush()
	return c.Error()
}

// columnKinds tells which columns hold only integers, only numbers, or text.
func (s *Store) columnKinds(names []string) ([]reflect.Type, error) {
	kinds := make([]reflect.Type, len(names))
	for i, n := range names {
		var ints, reals, texts sql.NullInt64
		q := fmt.Sprintf("SELECT sum(typeof(%[1]s)='integer'), sum(typeof(%[1]s)='real'), sum(typeof(%[1]s) IN ('text','blob')) FROM runs", column(n))
		if err := s.db.QueryRow(q).Scan(&ints, &reals, &texts); err != nil {
			return nil, s.fail(err)
		}
		switch {
		case texts.Int64 > 0:
			kinds[i] = reflect.TypeFor[*string]()
		case reals.Int64 > 0 || ints.Int64 == 0 && slices.ContainsFunc(study.Metrics(), func(m study.Metric) bool { return m.Name == n }):
			kinds[i] = reflect.TypeFor[*float64]()
		case ints.Int64 > 0:
			kinds[i] = reflect.TypeFor[*int64]()
		default:
			kinds[i] = reflect.TypeFor[*string]()
		}
	}
	return kinds, nil
}

// WriteParquet writes all runs as a Parquet file with a column for each of the
// table's, all optional; a factor's unit stands in its name, as in the CSV.
func (s *Store) WriteParquet(w io.Writer) error {
	names, ps, err := s.exportColumns()
	if err != nil {
		return err
	}
	kinds, err := s.columnKinds(names)
	if err != nil {
		return err
	}
	fields := make([]reflect.StructField, len(names))
	for i, n := range names {
		// A comma would end the name in the tag.
		name := strings.ReplaceAll(header(n, ps), ",", ";")
		fields[i] = reflect.StructField{
			Name: "F" + strconv.Itoa(i), Type: kinds[i],
			Tag: reflect.StructTag("parquet:" + strconv.Quote(name+",optional")),
		}
	}
	t := reflect.StructOf(fields)
	buf := bufio.NewWriter(w)
	pw := parquet.NewWriter(buf, parquet.SchemaOf(reflect.New(t).Interface()), parquet.Compression(&parquet.Zstd))
	err = s.scan(names, ps, func(v []any) error {
		r := reflect.New(t)
		for i := range v {
			if v[i] == nil {
				continue
			}
			f := reflect.New(kinds[i].Elem())
			switch f.Elem().Kind() {
			case reflect.String:
				f.Elem().SetString(cell(v[i]))
			case reflect.Float64:
				switch x := v[i].(type) {
				case float64:
					f.Elem().SetFloat(x)
				case int64:
					f.Elem().SetFloat(float64(x))
				}
			case reflect.Int64:
				if x, ok := v[i].(int64); ok {
					f.Elem().SetInt(x)
				}
			}
			r.Elem().Field(i).Set(f)
		}
		return pw.Write(r.Interface())
	})
	if err != nil {
		return err
	}
	if err := pw.Close(); err != nil {
		return err
	}
	return buf.Flush()
}
