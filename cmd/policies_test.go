package cmd

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"spinesim/spine"
)

func TestPoliciesCommand(t *testing.T) {
	execute := func(args ...string) (string, error) {
		var out bytes.Buffer
		c := newPolicies()
		c.SetOut(&out)
		c.SetArgs(args)
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.Execute()
		return out.String(), err
	}
	out, err := execute("--json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []policyRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil {
		t.Fatal(err)
	}
	kinds := spine.PolicyKinds()
	if len(rows) != len(kinds) {
		t.Fatalf("%d rows for %d policies", len(rows), len(kinds))
	}
	list, err := execute()
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range kinds {
		r := rows[i]
		if r.Name != k.Name || r.Doc != k.Doc || len(r.Params) != len(k.Params) || r.Params == nil ||
			r.WorkConserving != k.WorkConserving || r.StarvationFree != k.StarvationFree || r.Needs != k.Needs {
			t.Errorf("row %+v for kind %+v", r, k)
		}
		if !strings.Contains(list, "\n"+k.Name+" ") || !strings.Contains(list, k.Doc) {
			t.Errorf("the list leaves out %s:\n%s", k.Name, list)
		}
		if _, err := spine.NewPolicy(r.Example, 1, 0); err != nil {
			t.Errorf("example of %s: %v", k.Name, err)
		}
	}
	page, err := execute("quota", "oldest-first")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"quota: ", "limit", "handlers a round", "oldest-first: ", "needs event vector", "starvation-free yes"} {
		if !strings.Contains(page, want) {
			t.Errorf("description lacks %q:\n%s", want, page)
		}
	}
	if _, err := execute("fastest"); err == nil || status(err) != 2 || !strings.Contains(err.Error(), `"fastest" is not known`) {
		t.Errorf("an unknown name gives %v", err)
	}
}
