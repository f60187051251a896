package cmd

import (
	"strings"

	"github.com/spf13/cobra"
)

// executionFlags say what the cards' processors execute.
type executionFlags struct {
	firmware  string
	extension []string
}

func (f *executionFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.firmware, "firmware", "", "what the processors execute: table (nothing: costs are data), handlers or full (the whole firmware in C)")
	c.Flags().StringSliceVar(&f.extension, "extension", nil, "object `files` of an extension in C, which the router handler calls first; --firmware handlers unless full is given")
}

// settings are what the flags change in a scenario, to be laid over what given
// settings change.
func (f *executionFlags) settings(given []string) (out []string) {
	how := f.firmware
	if how == "" && len(f.extension) > 0 && !set(given, "firmware.execution") {
		how = "handlers"
	}
	if how != "" {
		out = append(out, "firmware.execution="+quoted(how))
	}
	if len(f.extension) > 0 {
		var files []string
		for _, p := range f.extension {
			files = append(files, quoted(p))
		}
		out = append(out, "firmware.extension=["+strings.Join(files, ", ")+"]")
	}
	return out
}
