package sim

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHashDiffering: what a hash is made of is what differs from base, and a key
// that both have at the same value, such as one that comes to be known later,
// is nothing.
func TestHashDiffering(t *testing.T) {
	mine := []pair{{"a", "1"}, {"c", "3"}, {"d", "4"}, {"new", "0"}}
	base := []pair{{"a", "1"}, {"b", "2"}, {"d", "5"}, {"new", "0"}}
	want := []pair{{"b", ""}, {"c", "3"}, {"d", "4"}}
	got := differing(mine, base)
	if d := cmp.Diff(want, got, cmp.AllowUnexported(pair{})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	without := func(p []pair) []pair {
		return slices.DeleteFunc(slices.Clone(p), func(p pair) bool { return p.key == "new" })
	}
	if d := cmp.Diff(got, differing(without(mine), without(base)), cmp.AllowUnexported(pair{})); d != "" {
		t.Errorf("a new key at its default: -with +without\n%s", d)
	}
}

// TestHashTellsScenariosApart: presets and single settings have hashes of their
// own; what changes no result has none.
func TestHashTellsScenariosApart(t *testing.T) {
	hash := func(name string, settings ...string) string {
		h, err := mustLoad(t, name, settings...).Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if a, b := hash("fig6.4"), hash("fig6.4", "name=x", "description=y", "seed=7", "firmware.poll=12 cycles"); a != b {
		t.Errorf("hash %s, and %s with another name, description, seed, and a default written out", a, b)
	}
	seen := map[string]string{}
	for _, v := range [][]string{
		{"base"}, {"fig6.4"}, {"four-way"}, {"one-card"}, {"l2"}, {"ilp"}, {"host-path"}, {"executed"},
		{"fig6.4", "firmware.poll=13 cycles"}, {"fig6.4", "traffic.ingress=[1]"}, {"fig6.4", "traffic.ingress=[0, 1]"},
		{"fig6.4", "random_ties=true"}, {"fig6.4", "policy=pci-first"}, {"fig6.4", "card.clock=40 MHz"},
		{"fig6.4", "firmware.costs={Free buffer: {cycles: 5 cycles, accesses: 1}}"},
	} {
		h := hash(v[0], v[1:]...)
		if other, ok := seen[h]; ok {
			t.Errorf("%q and %s have the same hash", v, other)
		}
		seen[h] = v[0] + " " + v[len(v)-1]
	}
}
