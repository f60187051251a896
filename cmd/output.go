package cmd

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// writeJSON prints one value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// writeFile makes a file appear whole or not at all.
func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".spinesim-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// checkOutput refuses, before any work is done, a path where no file can
// appear. An empty path is none.
func checkOutput(flag, path string) error {
	if path == "" {
		return nil
	}
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return usagef("%s: %s is a directory", flag, path)
	}
	st, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return usagef("%s: %w", flag, err)
	}
	if !st.IsDir() {
		return usagef("%s: %s is not a directory", flag, filepath.Dir(path))
	}
	return nil
}

// makeDir makes the directory for results.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usagef("output directory: %w", err)
	}
	return nil
}

// onTerminal tells whether the command's error stream is a terminal, where a
// progress bar helps.
func onTerminal(c *cobra.Command) bool {
	f, ok := c.ErrOrStderr().(*os.File)
	return ok && isTerminal(int(f.Fd()))
}
