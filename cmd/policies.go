package cmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"spinesim/spine"
)

// policyRow describes a policy for people and programs.
type policyRow struct {
	Name           string     `json:"name"`
	Doc            string     `json:"doc"`
	Params         []paramRow `json:"params"`
	Needs          string     `json:"needs"`
	WorkConserving bool       `json:"work_conserving"`
	StarvationFree bool       `json:"starvation_free"`
	Example        string     `json:"example"`
}

type paramRow struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Doc     string `json:"doc"`
}

func newPolicies() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "policies [NAME]...",
		Short: "List the dispatcher's policies and their parameters",
		Long: `List the policies that a scenario's "policy", --policy and the studies know, or
describe those that are named.

A policy is written as its name, with parameters behind a colon, separated by
commas ("quota:limit=4/2/1/1/1/1/8,round=0"). An order of all seven queues, such
as "Q6 Q3 Q4 Q5 Q0 Q1 Q2" or 6345012, stands for strict priority; all 5,040 of
them do. Numbers by queue are those of Q0 … Q6, or one number for all.

Work-conserving: while a queue is ready, some handler runs next. Starvation-free:
a queue that stays ready is served after a bounded number of others' handlers.
Both are claims for the default parameters, held to by the program's tests.`,
		Example: "  spinesim policies\n  spinesim policies quota rules\n  spinesim policies --json",
		RunE: func(c *cobra.Command, args []string) error {
			rows, err := policyRows(args)
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if asJSON {
				return writeJSON(w, rows)
			}
			if len(args) == 0 {
				return listPolicies(w, rows)
			}
			for i := range rows {
				if i > 0 {
					fmt.Fprintln(w)
				}
				if err := describePolicy(w, &rows[i]); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}

// policyRows are the policies of the given names in that order, all where none
// is given.
func policyRows(names []string) ([]policyRow, error) {
	byName := map[string]policyRow{}
	var all []string
	for _, k := range spine.PolicyKinds() {
		r := policyRow{
			Name: k.Name, Doc: k.Doc, Params: []paramRow{}, Needs: k.Needs,
			WorkConserving: k.WorkConserving, StarvationFree: k.StarvationFree, Example: k.Example,
		}
		for _, p := range k.Params {
			r.Params = append(r.Params, paramRow(p))
		}
		byName[k.Name] = r
		all = append(all, k.Name)
	}
	if len(names) == 0 {
		names = all
	}
	rows := []policyRow{}
	for _, n := range names {
		r, ok := byName[n]
		if !ok {
			return nil, usagef("policy %q is not known, want one of %s", n, strings.Join(all, ", "))
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func listPolicies(w io.Writer, rows []policyRow) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "policy\twork-conserving\tstarvation-free\tneeds\twhat it does")
	for _, r := range rows {
		needs, _, _ := strings.Cut(r.Needs, ":")
		if needs == "" {
			needs = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", r.Name, yesNo(r.WorkConserving), yesNo(r.StarvationFree), needs, r.Doc)
	}
	fmt.Fprintln(t, "Q6 Q3 Q4 Q5 Q0 Q1 Q2\tyes\tno\t-\tstrict priority in this order, or any other of the seven queues")
	return t.Flush()
}

func describePolicy(w io.Writer, r *policyRow) error {
	fmt.Fprintf(w, "%s: %s\n", r.Name, r.Doc)
	if len(r.Params) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, p := range r.Params {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", p.Name, p.Default, p.Doc)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	needs := r.Needs
	if needs == "" {
		needs = "nothing but polling"
	}
	_, err := fmt.Fprintf(w, "  work-conserving %s, starvation-free %s, needs %s\n  example: %s\n",
		yesNo(r.WorkConserving), yesNo(r.StarvationFree), needs, r.Example)
	return err
}
