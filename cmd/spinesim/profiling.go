package main

import (
	"io"
	"os"
	"runtime"
	"runtime/pprof"

	"github.com/spf13/cobra"
)

// addProfiling gives every command --cpuprofile and --memprofile.
func addProfiling(root *cobra.Command) {
	var cpu, mem string
	root.PersistentFlags().StringVar(&cpu, "cpuprofile", "", "write a CPU profile of the simulator itself to this file")
	root.PersistentFlags().StringVar(&mem, "memprofile", "", "write a heap profile of the simulator itself to this file")
	var f *os.File
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if err := checkOutput("--memprofile", mem); err != nil {
			return err
		}
		if cpu == "" {
			return nil
		}
		var err error
		if f, err = os.Create(cpu); err != nil {
			return usagef("--cpuprofile: %w", err)
		}
		return pprof.StartCPUProfile(f)
	}
	root.PersistentPostRunE = func(*cobra.Command, []string) error {
		if f != nil {
			pprof.StopCPUProfile()
			if err := f.Close(); err != nil {
				return err
			}
		}
		if mem == "" {
			return nil
		}
		runtime.GC()
		return writeFile(mem, func(w io.Writer) error { return pprof.WriteHeapProfile(w) })
	}
}
