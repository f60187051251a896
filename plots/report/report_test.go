package report_test

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot"

	"spinesim/plots"
	"spinesim/plots/report"
	"spinesim/sim/des"
	"spinesim/traces"
)

func column(p *plot.Plot) [][]*plot.Plot { return [][]*plot.Plot{{p}} }

// unpacked is what a viewer gets, record by record and by name.
type unpacked map[string]int64

// unpack reads a page's columns, written anew from their description.
func unpack(t *testing.T, page string) (head struct {
	N       int
	Base    int64
	Columns []struct {
		Name, Packing string
		Bytes         int
	}
	Kinds, Events, Reasons, Cards []string
}, out []unpacked) {
	t.Helper()
	part := func(id string) string {
		m := regexp.MustCompile(`(?s)<script id="` + id + `" type="[^"]*">(.*?)</script>`).FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("the page has no %s", id)
		}
		return m[1]
	}
	if err := json.Unmarshal([]byte(part("head")), &head); err != nil {
		t.Fatal(err)
	}
	b, err := base64.StdEncoding.DecodeString(part("packed"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(flate.NewReader(bytes.NewReader(b)))
	if err != nil {
		t.Fatal(err)
	}
	out = make([]unpacked, head.N)
	for i := range out {
		out[i] = unpacked{}
	}
	for _, c := range head.Columns {
		col := raw[:c.Bytes]
		raw = raw[c.Bytes:]
		last := int64(0)
		for i := range out {
			var v int64
			n := 1
			switch c.Packing {
			case "u8":
				v = int64(col[0])
			case "uint":
				var u uint64
				u, n = binary.Uvarint(col)
				v = int64(u)
			case "int":
				v, n = binary.Varint(col)
			case "delta":
				v, n = binary.Varint(col)
				v += last
				last = v
			default:
				t.Fatalf("packing %q", c.Packing)
			}
			col = col[n:]
			out[i][c.Name] = v
		}
		if len(col) != 0 {
			t.Fatalf("column %s has %d bytes too many", c.Name, len(col))
		}
	}
	if len(raw) != 0 {
		t.Fatalf("%d bytes behind the columns", len(raw))
	}
	return head, out
}

// random is a stream of records with all there can be in them.
func random(rnd *rand.Rand, n int) []traces.Record {
	at := des.Time(rnd.Int64N(1e12))
	var out []traces.Record
	for i := range n {
		at += des.Time(rnd.Int64N(3e6))
		r := traces.Record{
			Kind: traces.Kind(1 + rnd.IntN(traces.NumKinds-1)), Event: traces.Event(rnd.IntN(traces.NumEvents + 1)), Card: uint8(rnd.IntN(4)),
			Peer: traces.NoCard, Queue: traces.NoQueue, End: at, Start: at - des.Time(rnd.Int64N(2e6)), Packet: uint64(rnd.IntN(30)),
			Reason: traces.Reason(rnd.IntN(traces.NumReasons)), Verdict: traces.Verdict(rnd.IntN(traces.NumVerdicts)),
			Bytes: rnd.Uint32N(2000), Count: rnd.Uint32N(99), Cycles: rnd.Uint64N(1e6), Stall: rnd.Uint32N(50),
		}
		r.Ready = r.Start - des.Time(rnd.Int64N(1e6))
		if rnd.IntN(8) > 0 {
			r.ID = traces.MakeID(r.Card, uint64(i+1))
		}
		if k := rnd.IntN(n + 5); rnd.IntN(3) > 0 && k < len(out) {
			r.Cause = out[k].ID
		}
		if rnd.IntN(2) == 0 {
			r.Queue, r.Peer = uint8(rnd.IntN(7)), uint8(rnd.IntN(4))
		}
		out = append(out, r)
	}
	return out
}

func write(t *testing.T, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPackedAgainstRecords: everything of every record is in the page, with
// the records that caused it and that it waited as.
func TestPackedAgainstRecords(t *testing.T) {
	for seed := range uint64(20) {
		records := random(rand.New(rand.NewPCG(seed, 1)), 300)
		e := report.NewEvents(1000)
		for i := range records {
			if err := e.Record(&records[i]); err != nil {
				t.Fatal(err)
			}
		}
		head, got := unpack(t, write(t, &report.Report{Events: e, Meta: &traces.Meta{}}))
		if head.N != len(records) {
			t.Fatalf("%d records, want %d", head.N, len(records))
		}
		for i := range records {
			r := &records[i]
			want := unpacked{
				"kind": int64(r.Kind), "event": int64(r.Event), "card": int64(r.Card), "peer": int64(r.Peer), "queue": int64(r.Queue),
				"reason": int64(r.Reason), "verdict": int64(r.Verdict), "end": int64(r.End) - head.Base, "length": int64(r.End - r.Start), "ready": int64(r.Start - r.Ready),
				"packet": int64(r.Packet), "number": int64(r.ID.Number()), "bytes": int64(r.Bytes), "count": int64(r.Count), "cycles": int64(r.Cycles), "stall": int64(r.Stall),
				"cause": 0, "wait": 0,
			}
			for j := range records {
				if r.Cause != 0 && records[j].ID == r.Cause && j != i {
					want["cause"] = int64(i - j)
				}
			}
			// The wait that ended where the record began, unless another record
			// of the same event took it.
			if r.Kind == traces.KindBox || r.Kind == traces.KindTransfer || r.Kind == traces.KindReceive || r.Kind == traces.KindSend {
				for j := i - 1; j >= 0 && r.Packet != 0; j-- {
					w := &records[j]
					if w.Packet != r.Packet || w.Card != r.Card || w.Event != r.Event {
						continue
					}
					if w.Kind == traces.KindWait {
						if w.End == r.Start {
							want["wait"] = int64(i - j)
						}
						break
					}
					if w.Kind == traces.KindBox || w.Kind == traces.KindTransfer || w.Kind == traces.KindReceive || w.Kind == traces.KindSend {
						break
					}
				}
			}
			if d := cmp.Diff(want, got[i]); d != "" {
				t.Fatalf("seed %d, record %d: %s", seed, i, d)
			}
		}
	}
}

func TestWaitsAreFound(t *testing.T) {
	e := report.NewEvents(10)
	for _, r := range []traces.Record{
		{Kind: traces.KindWait, Event: traces.PeerToPeerStart, Packet: 3, Start: 10, End: 40, Reason: traces.ReasonEngineBusy},
		{Kind: traces.KindBox, Event: traces.RxCheckBody, Packet: 3, Start: 20, End: 45},
		{Kind: traces.KindBox, Event: traces.PeerToPeerStart, Packet: 3, Start: 40, End: 50},
	} {
		if err := e.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	_, got := unpack(t, write(t, &report.Report{Events: e}))
	if got[2]["wait"] != 2 || got[1]["wait"] != 0 {
		t.Errorf("waits are %d and %d records back, want 0 and 2", got[1]["wait"], got[2]["wait"])
	}
}

func TestEventsLimit(t *testing.T) {
	e := report.NewEvents(2)
	for i := range des.Time(5) {
		if err := e.Record(&traces.Record{Kind: traces.KindEnter, Start: i, End: i}); err != nil {
			t.Fatal(err)
		}
	}
	if e.Len() != 2 || e.Lost() != 3 {
		t.Errorf("%d kept and %d lost, want 2 and 3", e.Len(), e.Lost())
	}
	if from, to := e.Span(); from != 0 || to != 1 {
		t.Errorf("span %v to %v", from, to)
	}
	far := report.NewEvents(2)
	for _, at := range []des.Time{0, 1 << 60} {
		if err := far.Record(&traces.Record{Kind: traces.KindEnter, Start: at, End: at}); err != nil {
			t.Fatal(err)
		}
	}
	if err := (&report.Report{Events: far}).Write(io.Discard); err == nil {
		t.Error("a page of times that it cannot hold is written")
	}
}

// TestPageStandsAlone: nothing in the page comes from elsewhere, whatever is
// written in it stays text, and the same run gives the same page.
func TestPageStandsAlone(t *testing.T) {
	p, err := (&plots.Pareto{Title: `</svg><script>alert(1)</script>`, Points: []plots.ParetoPoint{{X: plots.PlusMinus(1, 0), Y: plots.PlusMinus(1, 0)}}}).Plot()
	if err != nil {
		t.Fatal(err)
	}
	evil := `</script><script>alert("x")</script>&<b>`
	e := report.NewEvents(10)
	if err := e.Record(&traces.Record{Kind: traces.KindEnter, Start: 1, End: 1}); err != nil {
		t.Fatal(err)
	}
	r := &report.Report{
		Title: evil, Lead: evil, Events: e, Meta: &traces.Meta{ScenarioYAML: evil, Cards: []traces.CardMeta{{Name: evil}}},
		Summary: []report.Group{{Name: evil, Rows: []report.Row{{Name: evil, Value: evil, Note: evil}}}},
		Figures: []report.Figure{{Title: evil, Caption: evil, Plots: column(p), Size: plots.Wide}},
	}
	page := write(t, r)
	if page != write(t, r) {
		t.Error("the same run gives different pages")
	}
	if n := strings.Count(page, "alert("); n == 0 {
		t.Error("the texts are not in the page")
	}
	if strings.Contains(page, `<script>alert`) || strings.Contains(page, `<b>`+"\n") {
		t.Error("a text became part of the page")
	}
	if n := strings.Count(page, "<script"); n != 3 {
		t.Errorf("%d scripts, want 3", n)
	}
	for _, m := range regexp.MustCompile(`\b(?:href|src)\s*=|url\(|@import|\w+://[^\s"'<>]*`).FindAllString(page, -1) {
		if !strings.HasPrefix(m, "http://www.w3.org/") { // names of the SVG language
			t.Errorf("the page refers to elsewhere: %q", m)
		}
	}
	if !strings.Contains(page, `default-src 'none'`) {
		t.Error("the page may open connections")
	}
	if !strings.Contains(page, html.EscapeString(`alert("x")`)) && !strings.Contains(page, `alert(&#34;x&#34;)`) {
		t.Error("the title is not escaped as text")
	}
}

func TestPageWithoutEvents(t *testing.T) {
	page := write(t, &report.Report{Title: "Nothing happened"})
	if strings.Contains(page, "<canvas") || strings.Contains(page, "<script") {
		t.Error("a page without events has a viewer")
	}
	if err := (&report.Report{Figures: []report.Figure{{Title: "none"}}}).Write(io.Discard); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("a figure of nothing: %v", err)
	}
}

// A page with a summary only.
func ExampleReport_Write() {
	var b strings.Builder
	r := report.Report{Title: "fig6.4", Summary: []report.Group{{Name: "Gap", Rows: []report.Row{{Name: "mean", Value: "66.7 µs"}}}}}
	if err := r.Write(&b); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.Contains(b.String(), "<td>66.7 µs</td>"))
	// Output: true
}
