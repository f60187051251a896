package report_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"spinesim/sim/testenv"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"spinesim/plots"
	"spinesim/plots/report"
	"spinesim/sim"
	"spinesim/traces"
)

// screenshots is where pictures of the page are left to be looked at.
var screenshots = flag.String("screenshots", "", "directory to write pictures of the page to")

// chromium is the one browser of all tests, started by the first that needs it.
var chromium struct {
	once sync.Once
	ctx  context.Context
	err  error
	stop []func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, stop := range slices.Backward(chromium.stop) {
		stop()
	}
	os.Exit(code)
}

func startChromium(path string) (context.Context, error) {
	dir, err := os.MkdirTemp("", "report-test-")
	if err != nil {
		return nil, err
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(dir), chromedp.WindowSize(1400, 1000), chromedp.WSURLReadTimeout(60*time.Second),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	ctx, end := chromedp.NewContext(alloc)
	chromium.stop = append(chromium.stop, func() { os.RemoveAll(dir) }, stop, end)
	return ctx, chromedp.Do(ctx) // starts it; a context with a time limit must not
}

// browser opens a tab of a headless Chromium, which ends with the test.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := testenv.Client(t, "chromium", "chromium-browser", "google-chrome")
	chromium.once.Do(func() { chromium.ctx, chromium.err = startChromium(path) })
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	tab, end := chromedp.NewContext(chromium.ctx)
	t.Cleanup(end)
	if err := chromedp.Do(tab); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tab, 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// quiet collects what a page must not do: errors, and requests other than for
// itself.
type quiet struct {
	mu     sync.Mutex
	faults []string
}

func listen(t *testing.T, ctx context.Context, page string) *quiet {
	t.Helper()
	q := &quiet{}
	note := func(format string, args ...any) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.faults = append(q.faults, fmt.Sprintf(format, args...))
	}
	err := chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			note("exception: %s, line %d", e.ExceptionDetails.Text, e.ExceptionDetails.LineNumber+1)
			if x := e.ExceptionDetails.Exception; x != nil {
				note("%s", x.Description)
			}
		case *runtime.EventConsoleAPICalled:
			for _, a := range e.Args {
				note("console.%s: %s", e.Type, a.Value)
			}
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; u != page && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
				note("request for %s", u)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (q *quiet) check(t *testing.T) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, f := range q.faults {
		t.Error(f)
	}
}

// simulate gives the records of a run with every poll of its first millisecond.
func simulate(t *testing.T, packets, limit int) (*report.Events, *traces.Meta) {
	t.Helper()
	sc, err := sim.Load("fig6.4", fmt.Sprintf("traffic.packets=%d", packets), "traffic.arrivals.rate=15000 packets/s")
	if err != nil {
		t.Fatal(err)
	}
	events := report.NewEvents(limit)
	s, err := sim.New(sc, sim.Options{Unmeasured: true, Sinks: []traces.Sink{events}, Expand: []sim.Span{{From: 0, To: 1e9}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	return events, s.Meta()
}

// pageOf writes a page to a file and gives its address.
func pageOf(t *testing.T, events *report.Events, meta *traces.Meta) string {
	t.Helper()
	bars := plots.Comparison{Title: "Mean gap", XLabel: "gap (µs)", Series: []string{""}, FromZero: true,
		Groups: []plots.BarGroup{{Name: "default", Values: []plots.Value{plots.PlusMinus(66.7, 0.9)}}}}
	p, err := bars.Plot()
	if err != nil {
		t.Fatal(err)
	}
	r := report.Report{
		Title: "A run <of> fig6.4", Lead: "Packets & polls.", Meta: meta, Events: events,
		Summary: []report.Group{{Name: "Run", Rows: []report.Row{{Name: "scenario", Value: "fig6.4", Note: "seed 1"}}}},
		Figures: []report.Figure{{Title: "Gap", Caption: "The mean gap.", Plots: column(p), Size: bars.Size()}},
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

func picture(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if len(png) < 20_000 {
		t.Errorf("picture %s has only %d bytes", name, len(png))
	}
	if *screenshots != "" {
		if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

type point struct{ X, Y float64 }

type viewState struct{ T0, T1, Whole0, Whole1, Scroll, Frame float64 }

// eval runs a script in the page.
func eval[T any](t *testing.T, ctx context.Context, script string, args ...any) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](fmt.Sprintf(script, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	return v
}

// settle waits until what was asked for is drawn.
func settle(t *testing.T, ctx context.Context) {
	t.Helper()
	eval[bool](t, ctx, "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))")
}

func open(t *testing.T, ctx context.Context, page string) {
	t.Helper()
	if err := chromedp.Do(ctx, chromedp.Navigate(page), chromedp.WaitReady(chromedp.CSS("#canvas"))); err != nil {
		t.Fatal(err)
	}
	if !eval[bool](t, ctx, "spinesim.ready") {
		t.Fatal("the viewer is not ready")
	}
	eval[bool](t, ctx, "(document.getElementById('graph').scrollIntoView(), true)")
	settle(t, ctx)
}

// Find gives the first record for which a condition on i holds.
func find(t *testing.T, ctx context.Context, condition string, args ...any) int {
	t.Helper()
	i := eval[int](t, ctx, "(() => { const r = spinesim.records; for (let i = 0; i < r.n; i++) if (%s) return i; return -1; })()", fmt.Sprintf(condition, args...))
	if i < 0 {
		t.Fatalf("no record with %s", fmt.Sprintf(condition, args...))
	}
	return i
}

func TestViewerByHand(t *testing.T) {
	ctx := browser(t)
	events, meta := simulate(t, 400, 200_000)
	page := pageOf(t, events, meta)
	faults := listen(t, ctx, page)
	open(t, ctx, page)

	if n := eval[int](t, ctx, "spinesim.records.n"); n != events.Len() {
		t.Fatalf("the page holds %d records, want %d", n, events.Len())
	}
	// The page unpacks what was recorded.
	records := events.All()
	for _, i := range []int{0, 1, 17, len(records) / 2, len(records) - 1} {
		r := &records[i]
		got := eval[[]float64](t, ctx, "(r => [r.kind[%d], r.event[%[1]d], r.card[%[1]d], r.peer[%[1]d], r.queue[%[1]d], r.reason[%[1]d], r.verdict[%[1]d], r.start[%[1]d], r.end[%[1]d], r.packet[%[1]d], r.number[%[1]d], r.bytes[%[1]d], r.count[%[1]d], r.cycles[%[1]d], r.stall[%[1]d]])(spinesim.records)", i)
		from, _ := events.Span()
		want := []float64{float64(r.Kind), float64(r.Event), float64(r.Card), float64(r.Peer), float64(r.Queue), float64(r.Reason), float64(r.Verdict),
			float64(r.Start - from), float64(r.End - from), float64(r.Packet), float64(r.ID.Number()), float64(r.Bytes), float64(r.Count), float64(r.Cycles), float64(r.Stall)}
		for k := range want {
			if got[k] != want[k] {
				t.Errorf("record %d: value %d is %v, want %v", i, k, got[k], want[k])
			}
		}
	}
	view := func() viewState { settle(t, ctx); return eval[viewState](t, ctx, "spinesim.view()") }
	whole := view()
	if whole.T0 > whole.Whole0 || whole.T1 < whole.Whole1 {
		t.Errorf("at first the page shows %v to %v of %v to %v", whole.T0, whole.T1, whole.Whole0, whole.Whole1)
	}
	picture(t, ctx, "whole")

	// The wheel zooms about the pointer.
	middle := eval[point](t, ctx, "(b => ({X: b.left + 152 + (b.width - 152) / 4, Y: b.top + 120}))(document.getElementById('canvas').getBoundingClientRect())")
	wheel := func(x, y, by float64) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.MouseEvent(chromedp.MouseWheel, x, y, func(p *input.DispatchMouseEventParams) { p.DeltaX, p.DeltaY = 1e-6, by })); err != nil {
			t.Fatal(err)
		}
	}
	at := func(v viewState) float64 { return v.T0 + (v.T1-v.T0)/4 }
	before := at(whole)
	for range 5 {
		wheel(middle.X, middle.Y, -240)
	}
	near := view()
	if got, want := (near.T1-near.T0)/(whole.T1-whole.T0), math.Exp(-5); math.Abs(got/want-1) > 0.05 {
		t.Errorf("five turns of the wheel zoom to %.5f, want %.5f", got, want)
	}
	if d := math.Abs(at(near)-before) / (near.T1 - near.T0); d > 0.02 {
		t.Errorf("what lay under the pointer moved by %.3f of the view", d)
	}

	// Dragging moves.
	if err := chromedp.Do(ctx,
		chromedp.MouseEvent(chromedp.MousePressed, middle.X, middle.Y, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, middle.X+50, middle.Y, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, middle.X+100, middle.Y, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseReleased, middle.X+100, middle.Y, chromedp.ButtonLeft)); err != nil {
		t.Fatal(err)
	}
	moved := view()
	if moved.T0 >= near.T0 || math.Abs((moved.T1-moved.T0)-(near.T1-near.T0)) > 1 {
		t.Errorf("after dragging to the right the view is %v to %v, was %v to %v", moved.T0, moved.T1, near.T0, near.T1)
	}
	if c := eval[int](t, ctx, "spinesim.chosen()"); c >= 0 {
		t.Errorf("dragging chose record %d", c)
	}

	// Hovering tells of event, cause, wait and reason.
	start := find(t, ctx, "r.kind[i] === %d && r.event[i] === %d && r.wait[i] >= 0 && r.reason[r.wait[i]] === %d", traces.KindBox, traces.PeerToPeerStart, traces.ReasonEngineBusy)
	box := &records[start]
	eval[bool](t, ctx, "(spinesim.show(spinesim.records.start[%d] - 4e7, spinesim.records.end[%[1]d] + 9e7), true)", start)
	settle(t, ctx)
	p := eval[point](t, ctx, "(p => ({X: p.x, Y: p.y}))(spinesim.at(%d))", start)
	if err := chromedp.Do(ctx, chromedp.MouseEvent(chromedp.MouseMoved, p.X, p.Y)); err != nil {
		t.Fatal(err)
	}
	settle(t, ctx)
	tip := eval[string](t, ctx, "document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")
	for _, want := range []string{"Peer to peer start", fmt.Sprintf("packet %d", box.Packet), "card 0", "cause EnQ IP output", "engine busy", "waited"} {
		if !strings.Contains(tip, want) {
			t.Errorf("the tip says %q, want %q in it", tip, want)
		}
	}
	picture(t, ctx, "hover")

	// A click lights up the packet's way on all cards.
	click := func(p point) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.MouseClickXY(p.X, p.Y)); err != nil {
			t.Fatal(err)
		}
		settle(t, ctx)
	}
	click(p)
	if got := eval[int](t, ctx, "spinesim.chosen()"); got != start {
		t.Errorf("a click chose record %d, want %d", got, start)
	}
	want := map[uint8]int{}
	n := 0
	for i := range records {
		if records[i].Packet == box.Packet {
			want[records[i].Card]++
			n++
		}
	}
	got := eval[map[string]int](t, ctx, "spinesim.path().reduce((m, i) => (m[spinesim.records.card[i]] = (m[spinesim.records.card[i]] || 0) + 1, m), {})")
	if len(want) < 2 {
		t.Fatalf("packet %d was on %d cards", box.Packet, len(want))
	}
	for c, k := range want {
		if got[fmt.Sprint(c)] != k {
			t.Errorf("the way has %d records on card %d, want %d", got[fmt.Sprint(c)], c, k)
		}
	}
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#packet"))); err != nil {
		t.Fatal(err)
	}
	v := view()
	for i := range records {
		if records[i].Packet != box.Packet {
			continue
		}
		from, _ := events.Span()
		if s, e := float64(records[i].Start-from), float64(records[i].End-from); s < v.T0 || e > v.T1 {
			t.Errorf("record %d of the packet, %v to %v, lies outside the view %v to %v", i, s, e, v.T0, v.T1)
		}
	}
	// Every lane of the way is in the picture, and no other.
	shown := eval[map[string]int](t, ctx, "spinesim.lanes.filter(l => l.y >= 0).reduce((m, l) => (m[l.card] = (m[l.card] || 0) + 1, m), {})")
	for c := range want {
		if shown[fmt.Sprint(c)] == 0 {
			t.Errorf("no lane of card %d is shown, where the packet was", c)
		}
	}
	if off := eval[int](t, ctx, "spinesim.path().filter(i => spinesim.records.kind[i] !== %d && !spinesim.at(i)).length", traces.KindLevel); off > 0 {
		t.Errorf("%d records of the way have no place", off)
	}
	if items := eval[int](t, ctx, "document.querySelectorAll('#detail li').length"); items != n {
		t.Errorf("the list has %d records, want %d", items, n)
	}
	picture(t, ctx, "packet")

	// A step of the list can be chosen too.
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#detail li:nth-child(3)"))); err != nil {
		t.Fatal(err)
	}
	settle(t, ctx)
	if path, chosen := eval[[]int](t, ctx, "spinesim.path()"), eval[int](t, ctx, "spinesim.chosen()"); chosen != path[2] {
		t.Errorf("the third step of the list chose record %d, want %d", chosen, path[2])
	}

	// Search: a packet, an event, a reason, a time, and what is not there.
	search := func(text string) string {
		t.Helper()
		eval[bool](t, ctx, "(document.getElementById('query').value = '', true)")
		if err := chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS("#query"), text+"\r")); err != nil {
			t.Fatal(err)
		}
		settle(t, ctx)
		return eval[string](t, ctx, "document.getElementById('hits').value")
	}
	search("packet 42")
	if got := eval[int](t, ctx, "spinesim.packet()"); got != 42 {
		t.Errorf("search for packet 42 chose packet %d", got)
	}
	count := func(is func(r *traces.Record) bool) (n int) {
		for i := range records {
			if is(&records[i]) {
				n++
			}
		}
		return n
	}
	routers := count(func(r *traces.Record) bool { return r.Kind == traces.KindBox && r.Event == traces.RouterIn })
	if got := search("router in handler"); !strings.HasSuffix(got, fmt.Sprintf("of %d", routers)) {
		t.Errorf("search for the router handler found %q, want %d", got, routers)
	}
	i := eval[int](t, ctx, "spinesim.chosen()")
	if i < 0 {
		t.Fatal("search for the router handler chose nothing")
	}
	if records[i].Event != traces.RouterIn {
		t.Errorf("search for the router handler chose %v", records[i].Event)
	}
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#next"))); err != nil {
		t.Fatal(err)
	}
	settle(t, ctx)
	if j := eval[int](t, ctx, "spinesim.chosen()"); j <= i || records[j].Event != traces.RouterIn {
		t.Errorf("the next hit after record %d is record %d", i, j)
	}
	busy := count(func(r *traces.Record) bool { return r.Kind == traces.KindWait && r.Reason == traces.ReasonEngineBusy })
	if got := search("engine busy"); !strings.HasSuffix(got, fmt.Sprintf("of %d", busy)) {
		t.Errorf("search for a busy engine found %q, want %d", got, busy)
	}
	search("@12.5 ms")
	from, _ := events.Span()
	if v := view(); math.Abs((v.T0+v.T1)/2+float64(from)-12.5e9) > 1e3 {
		t.Errorf("search for 12.5 ms shows the time round %v ps", (v.T0+v.T1)/2+float64(from))
	}
	if got := search("no such thing"); got != "nothing" {
		t.Errorf("search for what is not there says %q", got)
	}

	// Keys: all, and choosing nothing.
	if err := chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("#canvas")), chromedp.KeyEvent("0")); err != nil {
		t.Fatal(err)
	}
	if v := view(); math.Abs((v.T1-v.T0)/(whole.T1-whole.T0)-1) > 0.01 {
		t.Errorf("key 0 shows %v of %v", v.T1-v.T0, whole.T1-whole.T0)
	}
	search("packet 42")
	if err := chromedp.Do(ctx, chromedp.Focus(chromedp.CSS("#canvas")), chromedp.KeyEvent("\u001b")); err != nil {
		t.Fatal(err)
	}
	settle(t, ctx)
	if c := eval[int](t, ctx, "spinesim.chosen()"); c >= 0 {
		t.Errorf("after Esc record %d is chosen", c)
	}
	faults.check(t)
}

// TestDotsAreShares compares the shade of dots with the share of time that the
// lane is busy, summed up record by record.
func TestDotsAreShares(t *testing.T) {
	ctx := browser(t)
	events, meta := simulate(t, 3000, 200_000)
	open(t, ctx, pageOf(t, events, meta))
	type dot struct{ From, To, Blue float64 }
	// The lane of the transfers of card 0, over the whole record.
	dots := eval[[]dot](t, ctx, `(() => {
		const l = spinesim.lanes.find(l => l.name === 'DMA engine' && l.card === 0), v = spinesim.view();
		const c = document.getElementById('canvas'), x = c.getContext('2d'), b = c.getBoundingClientRect();
		const y = Math.round(spinesim.at(l.index[0]).y - b.top), cols = c.width - 152, per = (v.t1 - v.t0) / cols, out = [];
		const line = x.getImageData(152, y, cols, 1).data;
		for (let k = 0; k < cols; k += 7) out.push({From: v.t0 + k * per, To: v.t0 + (k + 1) * per, Blue: line[4 * k + 2]});
		return out;
	})()`)
	records := events.All()
	from, _ := events.Span()
	shaded := 0
	for _, d := range dots {
		busy := 0.0
		for i := range records {
			r := &records[i]
			if r.Kind == traces.KindTransfer && r.Card == 0 {
				busy += math.Max(0, math.Min(d.To, float64(r.End-from))-math.Max(d.From, float64(r.Start-from)))
			}
		}
		share := busy / (d.To - d.From)
		// Blue of the colour #d55e00 over white, at the opacity of the share.
		want := 255.0
		if share > 0 {
			want = 255 * (1 - 0.18 - 0.82*math.Max(1, math.Round(share*32))/32)
			shaded++
		}
		// A line of the grid takes another 7 %.
		if off := math.Min(math.Abs(d.Blue-want), math.Abs(d.Blue-0.93*want)); off > 10 {
			t.Errorf("dot from %.0f to %.0f ps is busy for %.3f of its time: blue is %v, want about %.0f", d.From, d.To, share, d.Blue, want)
		}
	}
	if shaded < len(dots)/2 {
		t.Errorf("only %d of %d dots are shaded", shaded, len(dots))
	}
}

// TestMillionEventsStaySmooth moves about in a million events.
func TestMillionEventsStaySmooth(t *testing.T) {
	testenv.NeedLong(t)
	ctx := browser(t)
	events, meta := simulate(t, 20_500, 1_000_000)
	if events.Len() < 1_000_000 {
		t.Fatalf("only %d records", events.Len())
	}
	page := pageOf(t, events, meta)
	faults := listen(t, ctx, page)
	begun := time.Now()
	open(t, ctx, page)
	t.Logf("loaded in %v", time.Since(begun))
	// Times of drawing at many zooms, on a machine that may be busy and has no
	// graphics processor; it takes about 4 ms on an idle one.
	frames := eval[[]float64](t, ctx, `(() => {
		const v = spinesim.view(), out = [];
		for (let f = 1; f > 1e-5; f *= 0.6) for (const c of [0.2, 0.5, 0.8]) {
			const mid = v.whole0 + c * (v.whole1 - v.whole0), half = f * (v.whole1 - v.whole0) / 2;
			spinesim.show(mid - half, mid + half);
			let best = Infinity; // of three: others use the machine too
			for (let k = 0; k < 3; k++) { spinesim.draw(); best = Math.min(best, spinesim.view().frame); }
			out.push(best);
		}
		return out.sort((a, b) => a - b);
	})()`)
	median, slow := frames[len(frames)/2], frames[len(frames)*9/10]
	t.Logf("%d pictures: median %.1f ms, nine of ten within %.1f ms", len(frames), median, slow)
	if median > 40 || slow > 150 {
		t.Errorf("drawing a million events takes %.1f ms in the median, and nine times of ten %.1f ms", median, slow)
	}
	eval[bool](t, ctx, "(spinesim.show(spinesim.view().whole0, spinesim.view().whole1), true)")
	settle(t, ctx)
	picture(t, ctx, "million")
	faults.check(t)
}
