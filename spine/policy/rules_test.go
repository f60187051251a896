package policy

import (
	"fmt"
	"strings"
	"testing"
)

// TestRules: which order rules choose for a view.
func TestRules(t *testing.T) {
	full := View{FreeBuffers: 16, Buffers: 16, Credits: 12, AllCredits: 12}
	with := func(change func(*View)) View {
		v := full
		change(&v)
		return v
	}
	free := func(n int) View { return with(func(v *View) { v.FreeBuffers = n }) }
	backlog := func(n int) View { return with(func(v *View) { v.Backlog = n }) }
	last := func(q uint8) View { return with(func(v *View) { v.LastQueue = q }) }
	chain := with(func(v *View) { v.ChainActive, v.EngineBusy = true, true })
	ack := with(func(v *View) { v.EngineBusy = true })
	short := with(func(v *View) { v.Credits = 3 })
	for _, tc := range []struct {
		rules string
		views []View
		want  string // orders, one a view
	}{
		{"when buffers<4 use pci-first", []View{full, free(4), free(3), free(4)}, "0123456 0123456 6345012 0123456"},
		{"when buffers<=25% use pci-first", []View{full, free(5), free(4)}, "0123456 0123456 6345012"},
		{"when buffers<4 until buffers>=8 use pci-first", []View{free(4), free(3), free(7), free(8), free(7)}, "0123456 6345012 6345012 0123456 0123456"},
		// What ends a rule keeps it from beginning, too.
		{"when buffers<8 until backlog=0 use pci-first", []View{free(3), free(3)}, "0123456 0123456"},
		{"order=6543210,when chain first Q0 Q3", []View{full, chain, ack}, "6543210 0365421 6543210"},
		{"when not chain and engine first Q6", []View{full, chain, ack}, "0123456 0123456 6012345"},
		{"when last Q1 last Q1 Q0", []View{last(1), last(0)}, "2345610 0123456"},
		{"when not last Q6 first Q6", []View{last(6), last(2)}, "0123456 6012345"},
		{"order=pci-first,when credits<=25% last Q6", []View{full, short}, "6345012 3450126"},
		{"when credits<4 last Q5", []View{full, short}, "0123456 0123465"},
		// The first that holds decides.
		{"when backlog>=3 first Q6,when backlog>0 first Q3", []View{backlog(0), backlog(1), backlog(3)}, "0123456 3012456 6012345"},
		{"when backlog!=2 first Q1", []View{backlog(2), backlog(1)}, "0123456 1023456"},
		{"when backlog==2 first Q1", []View{backlog(2), backlog(1)}, "1023456 0123456"},
		{"when backlog>2 first Q1", []View{backlog(2), backlog(3)}, "0123456 1023456"},
		// A later rule's hysteresis goes on behind an earlier one.
		{"when chain first Q5,when buffers=0 until buffers=100% first Q6", []View{
			with(func(v *View) { v.ChainActive, v.FreeBuffers = true, 0 }), free(8), full,
		}, "5012346 6012345 0123456"},
	} {
		r, err := NewRules(tc.rules)
		if err != nil {
			t.Errorf("%s: %v", tc.rules, err)
			continue
		}
		var got []string
		for i := range tc.views {
			got = append(got, orderOf(r, &tc.views[i]))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: orders %v, want %s", tc.rules, got, tc.want)
		}
	}
}

// TestRulesUnpolled counts handlers since a queue's last poll.
func TestRulesUnpolled(t *testing.T) {
	r, err := NewRules("when unpolled Q6>=3 first Q6")
	if err != nil {
		t.Fatal(err)
	}
	var plan Plan
	var got []string
	for _, hit := range []int64{1, 2, 7, 1, 1, 1, 1, 9, 1, 1, 1, 2} {
		r.Plan(&View{}, &plan)
		got = append(got, fmt.Sprintf("%d", plan.Seq[0]))
		r.Hit(hit, plan.Seq[(hit-1)%NumQueues])
	}
	// Hits of polls 1 and 2 leave Q6 out, that of poll 7 looks at it, as does a
	// second turn (poll 9).
	if want := "0 0 0 0 0 0 6 0 0 0 0 6"; strings.Join(got, " ") != want {
		t.Errorf("first polls %v, want %s", got, want)
	}
}
