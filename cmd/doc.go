// Package cmd is the command line of spinesim: every command as flags, one call
// into the library, and what it prints or draws.
//
// [Execute] runs one command line. A program of one's own, which has registered
// policies, extensions, arrival processes or trace formats that spinesim does
// not have, gets all commands over them by calling it from its main, as
// cmd/spinesim does:
//
//	func main() {
//		os.Exit(cmd.Execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
//	}
//
// Exit status: 0 when all went well, 1 when a run failed, 2 for wrong usage or
// bad input.
//
// The package holds no model, no measure and no figure; it leaves signals and
// the process's streams to its caller.
package cmd
