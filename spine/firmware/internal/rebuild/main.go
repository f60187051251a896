// Command rebuild compiles the firmware's C sources anew. It is called by go
// generate in package firmware.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"spinesim/spine/firmware"
)

func main() {
	for _, dir := range []string{"lib", "spine"} {
		sources, err := filepath.Glob(filepath.Join(dir, "*.c"))
		if err == nil && len(sources) == 0 {
			err = fmt.Errorf("no sources in %s", dir)
		}
		for _, s := range sources {
			if err == nil {
				err = firmware.Compiler{}.Compile(context.Background(), s, strings.TrimSuffix(s, ".c")+".o")
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "rebuild:", err)
			os.Exit(1)
		}
	}
}
