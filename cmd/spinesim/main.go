// Command spinesim simulates a router built from LANai network cards that run
// the SPINE dispatcher, cycle by cycle.
//
// Exit status: 0 when all went well, 1 when a run failed, 2 for wrong usage or
// bad input.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"spinesim/cmd"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for an orderly end, a second one ends at once.
	context.AfterFunc(ctx, stop)
	os.Exit(cmd.Execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
