package cmd

import (
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/pprof"

	"github.com/spf13/cobra"
)

// profiling writes profiles of the simulator itself.
type profiling struct {
	cpu, mem string
	file     *os.File // of the CPU profile that is being taken
	begun    bool
}

// add gives every command --cpuprofile and --memprofile.
func (p *profiling) add(root *cobra.Command) {
	root.PersistentFlags().StringVar(&p.cpu, "cpuprofile", "", "write a CPU profile of the simulator itself to this file")
	root.PersistentFlags().StringVar(&p.mem, "memprofile", "", "write a heap profile of the simulator itself to this file")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if err := checkOutput("--memprofile", p.mem); err != nil {
			return err
		}
		if p.cpu != "" {
			var err error
			if p.file, err = os.Create(p.cpu); err != nil {
				return usagef("--cpuprofile: %w", err)
			}
			if err := pprof.StartCPUProfile(p.file); err != nil {
				return err
			}
		}
		p.begun = true
		return nil
	}
}

// finish ends the profiles once the command has ended, however it did.
func (p *profiling) finish() error {
	var err error
	if p.file != nil {
		pprof.StopCPUProfile()
		err = p.file.Close()
	}
	if p.mem == "" || !p.begun {
		return err
	}
	runtime.GC()
	return errors.Join(err, writeFile(p.mem, func(w io.Writer) error { return pprof.WriteHeapProfile(w) }))
}
