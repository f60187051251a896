package policy

import (
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// permutations calls f with every order of the seven queues.
func permutations(f func([NumQueues]uint8)) {
	o := DefaultOrder
	var rec func(int)
	rec = func(i int) {
		if i == NumQueues {
			f(o)
			return
		}
		for j := i; j < NumQueues; j++ {
			o[i], o[j] = o[j], o[i]
			rec(i + 1)
			o[i], o[j] = o[j], o[i]
		}
	}
	rec(0)
}

// TestAllOrders: each of the 5,040 strict orders has a name, in every way of
// writing it, and that name makes the policy that polls in it.
func TestAllOrders(t *testing.T) {
	seen := map[string]bool{}
	var plan Plan
	permutations(func(o [NumQueues]uint8) {
		long := FormatOrder(o)
		seen[long] = true
		for _, text := range []string{
			long, digits(o), strings.Join(strings.Split(digits(o), ""), ","), "strict:order=" + digits(o),
			strings.ToLower(strings.ReplaceAll(long, " ", ">")),
		} {
			p, err := NewPolicy(text, 1, 2)
			if err != nil {
				t.Fatal(err)
			}
			p.Plan(&View{}, &plan)
			if p.Name() != long || string(plan.Seq) != string(o[:]) || plan.Loop != 0 || p.(*Strict).Order() != o {
				t.Fatalf("%q makes %s, which polls %v", text, p.Name(), plan.Seq)
			}
		}
	})
	if len(seen) != 5040 {
		t.Errorf("%d orders, want 5,040", len(seen))
	}
}

// TestPolicyKinds: every kind says what it is, and its example and name make it.
func TestPolicyKinds(t *testing.T) {
	kinds := PolicyKinds()
	if !sort.SliceIsSorted(kinds, func(i, j int) bool { return kinds[i].Name < kinds[j].Name }) {
		t.Error("the kinds are not sorted by name")
	}
	names := map[string]bool{}
	for _, k := range kinds {
		if k.Doc == "" || k.Example == "" || k.New == nil || names[k.Name] {
			t.Errorf("%s: doc %q, example %q, named twice %v", k.Name, k.Doc, k.Example, names[k.Name])
		}
		names[k.Name] = true
		for _, p := range k.Params {
			if p.Name == "" || p.Doc == "" || !k.Language && p.Default == "" {
				t.Errorf("%s: parameter %+v is not described", k.Name, p)
			}
		}
		p := mustPolicy(t, k.Example)
		if _, vector := p.(VectorPolicy); vector != (k.Needs != "") {
			t.Errorf("%s needs %q, but its being a vector policy is %v", k.Name, k.Needs, vector)
		}
		if k.Language {
			continue
		}
		// Its defaults, written out, are its defaults.
		var written []string
		for _, p := range k.Params {
			written = append(written, p.Name+"="+p.Default)
		}
		if len(written) > 0 {
			bare, full := mustPolicy(t, k.Name), mustPolicy(t, k.Name+":"+strings.Join(written, ","))
			if bare.Name() != full.Name() {
				t.Errorf("%s by default is %q, written out %q", k.Name, bare.Name(), full.Name())
			}
			if k.Name != "strict" && bare.Name() != k.Name {
				t.Errorf("%s by default calls itself %q", k.Name, bare.Name())
			}
		}
	}
	// The list is a copy: changing it changes nothing.
	PolicyKinds()[0].Name = "gone"
	if diff := cmp.Diff(kinds[0].Name, PolicyKinds()[0].Name); diff != "" {
		t.Error(diff)
	}
}

// TestNames: a policy's name makes the same policy again.
func TestNames(t *testing.T) {
	for _, text := range someTexts() {
		p := mustPolicy(t, text)
		again := mustPolicy(t, p.Name())
		if again.Name() != p.Name() {
			t.Errorf("%q calls itself %q, which makes %q", text, p.Name(), again.Name())
		}
	}
	for text, want := range map[string]string{
		"quota":                                      "quota",
		" quota : limit = 2 2 2 2 2 2 8 ":            "quota:limit=2/2/2/2/2/2/8",
		"quota:limit=3,round=9,order=Q6 012345":      "quota:limit=3/3/3/3/3/3/3,round=9,order=6012345",
		"weighted-round-robin:weights=4/2/1/1/1/1/5": "weighted-round-robin",
		"round-robin:order=pci-first":                "round-robin:order=6345012",
		"adaptive:low=1,high=2":                      "adaptive:low=1,high=2",
		"continuation-first:hold=yes":                "continuation-first:hold=yes",
		"rules: when backlog == 2 first Q6":          "rules:when backlog=2 first Q6",
		"rules:order=pci-first,when not last q1 and buffers<=25% until chain use Q0 Q1 Q2 Q3 Q4 Q5 Q6": "rules:order=6345012,when not last Q1 and buffers<=25% until chain use 0123456",
	} {
		if got := mustPolicy(t, text).Name(); got != want {
			t.Errorf("%q calls itself %q, want %q", text, got, want)
		}
	}
}

func TestPolicyErrors(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "is not known, want an order of Q0 … Q6 or one of adaptive, continuation-first"},
		{"fastest", `policy "fastest" is not known`},
		{"fastest:x=1", `policy "fastest:x=1" is not known`},
		{"Q6 Q3", `order "Q6 Q3" leaves out Q0`},
		{"0123455", "names Q5 twice"},
		{"0123457", "is not one of Q0 … Q6"},
		{"default:order=6345012", `policy default: "order=6345012" is not a parameter, want none`},
		{"quota:", `policy quota: "" is not a parameter, want limit=4/2/1/1/1/1/5, round=0, order=default`},
		{"quota:limits=2", `policy quota: "limits=2" is not a parameter`},
		{"quota:limit", `policy quota: "limit" is not a parameter`},
		{"quota:limit=2,limit=3", "policy quota: parameter limit is given twice"},
		{"quota:limit=0", `parameter limit: "0", want whole numbers of 1 … 65536`},
		{"quota:limit=65537", "want whole numbers of 1 … 65536"},
		{"quota:limit=1 2 3", `parameter limit: "1 2 3", want 1 or 7 numbers`},
		{"quota:limit=", `parameter limit: "", want 1 or 7 numbers`},
		{"quota:limit=2.5", "want whole numbers"},
		{"quota:round=-1", `parameter round: "-1", want a whole number of at least 0`},
		{"quota:round=x", "parameter round"},
		{"quota:order=012", `parameter order: order "012" leaves out Q3`},
		{"strict:order=x", "parameter order"},
		{"round-robin:order=01234567", "parameter order"},
		{"weighted-round-robin:weights=-1", "parameter weights"},
		{"weighted-round-robin:order=0", "parameter order"},
		{"stride:tickets=999999999999999999999", "parameter tickets"},
		{"stride:order=0", "parameter order"},
		{"lottery:tickets=a", "parameter tickets"},
		{"adaptive:order=0", "parameter order"},
		{"adaptive:scarce=0", "parameter scarce"},
		{"adaptive:low=four", `parameter low: "four", want a whole number of 0 … 1000000000 or a share of 0% … 100%`},
		{"adaptive:high=101%", "parameter high"},
		{"adaptive:low=8,high=8", "low 8 and high 8: want 0 ≤ low < high"},
		{"adaptive:low=4", "low 4 and high 50%: want both as numbers or both as shares"},
		{"continuation-first:hold=maybe", `parameter hold: "maybe", want yes or no`},
		{"continuation-first:order=0", "parameter order"},
		{"longest-queue-first:order=0", "parameter order"},
		{"oldest-first:order=default", "want none"},

		{"rules", `policy rules: rule "": begins with nothing, want when`},
		{"rules:order=default", "no rule, want at least one"},
		{"rules:order=03", `order "03" leaves out Q1`},
		{"rules:when chain first Q6,order=default", "order= is given twice or behind a rule"},
		{"rules:order=default,order=default,when chain first Q6", "given twice"},
		{"rules:if chain first Q6", `rule "if chain first Q6": begins with "if", want when`},
		{"rules:when chain first Q6,", `rule "": begins with nothing`},
		{"rules:when bufers<4 use pci-first", `"bufers" is nothing that a condition can be about, want one of buffers, credits, backlog, unpolled Qn, chain, engine, last Qn`},
		{"rules:when buffers use pci-first", `"use" behind buffers, want <`},
		{"rules:when buffers<>4 use pci-first", `buffers <: ">", want a whole number`},
		{"rules:when buffers<4.5 use pci-first", `buffers <: "4.5"`},
		{"rules:when buffers<120% use pci-first", `"120%"`},
		{"rules:when buffers!4 use pci-first", `"!" behind buffers`},
		{"rules:when not buffers<4 use pci-first", "not before buffers"},
		{"rules:when backlog>50% first Q6", "backlog > 50%: want a number"},
		{"rules:when unpolled>4 first Q6", `">", want a queue: Q0 … Q6`},
		{"rules:when unpolled Q7>4 first Q6", `"Q7", want a queue`},
		{"rules:when last first Q6", `"first", want a queue`},
		{"rules:when chain", "nothing behind the conditions, want and, until, use, first or last"},
		{"rules:when chain or engine first Q6", `"or" behind the conditions`},
		{"rules:when chain and first Q6", `"first" is nothing that a condition can be about`},
		{"rules:when chain until first Q6", `"first" is nothing`},
		{"rules:when chain use", `order "" leaves out Q0`},
		{"rules:when chain use Q6 Q3", "leaves out Q0"},
		{"rules:when chain first", "nothing, want a queue"},
		{"rules:when chain first Q6 Q6", "names Q6 twice"},
		{"rules:when chain last Q6 now", `"now", want a queue`},
	} {
		p, err := NewPolicy(tc.text, 1, 0)
		switch {
		case err == nil:
			t.Errorf("%q makes %s, want an error with %q", tc.text, p.Name(), tc.want)
		case !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "policy"):
			t.Errorf("%q: %v, want it to say %q", tc.text, err, tc.want)
		}
	}
}

func FuzzParseOrder(f *testing.F) {
	for _, s := range []string{"Q6 Q3 Q4 Q5 Q0 Q1 Q2", "6,3,4,5,0,1,2", "6345012", "q0>q1>q2>q3>q4>q5>q6", "", "0123455", "Q7", "\xff0123456"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseOrder(s)
		if err != nil {
			return
		}
		seen := 0
		for _, q := range o {
			seen |= 1 << q
		}
		if seen != 1<<NumQueues-1 {
			t.Fatalf("%q gives %v, which is not an order", s, o)
		}
		for _, text := range []string{FormatOrder(o), digits(o)} {
			if again, err := ParseOrder(text); err != nil || again != o {
				t.Fatalf("%q gives %v, written %q gives %v, %v", s, o, text, again, err)
			}
		}
	})
}

func FuzzNewPolicy(f *testing.F) {
	for _, s := range someTexts() {
		f.Add(s)
	}
	f.Add("rules:when buffers<<=>!4")
	f.Add("quota:limit=2,limit=3")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := NewPolicy(s, 1, 0)
		if err != nil {
			if p != nil {
				t.Fatalf("%q: a policy beside the error %v", s, err)
			}
			return
		}
		again, err := NewPolicy(p.Name(), 1, 0)
		if err != nil || again.Name() != p.Name() {
			t.Fatalf("%q calls itself %q, which gives %v, %v", s, p.Name(), again, err)
		}
		m := newQueueModel()
		m.send(3)
		var plan Plan
		if s, ok := m.serve(t, p, &plan, func() {}, 20); !ok || s.queue != 3 {
			t.Fatalf("%s does not find the only message", p.Name())
		}
	})
}
