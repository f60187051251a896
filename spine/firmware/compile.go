package firmware

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoCompiler reports that there is no clang with the lanai target.
var ErrNoCompiler = errors.New("no compiler for the lanai target")

// Flags are what clang is called with, besides the target and the optimisation:
// no headers or library of a host, no calls invented, and addresses of 21 bits.
func Flags() []string {
	return []string{"--target=lanai", "-ffreestanding", "-fno-builtin", "-Xclang", "-mcmodel=small", "-Wall", "-Wextra"}
}

// Compiler calls clang.
type Compiler struct {
	// Path is the program; empty looks for clang on PATH, then for clang-22
	// down to clang-14.
	Path string
	// Optimise is the level, "-O2" when empty.
	Optimise string
	// Include are directories to search for headers.
	Include []string
}

// Find tells which program will be called. The error wraps ErrNoCompiler.
func (c Compiler) Find() (string, error) {
	names := []string{c.Path}
	if c.Path == "" {
		names = []string{"clang"}
		for v := 22; v >= 14; v-- {
			names = append(names, fmt.Sprintf("clang-%d", v))
		}
	}
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("firmware: %w: looked for %s; install clang and llvm, version 14 or later (Debian: apt-get install clang llvm)", ErrNoCompiler, strings.Join(names, ", "))
}

// Compile compiles one C file to an object. The error carries what clang said.
func (c Compiler) Compile(ctx context.Context, source, object string) error {
	clang, err := c.Find()
	if err != nil {
		return err
	}
	opt := c.Optimise
	if opt == "" {
		opt = "-O2"
	}
	args := append(Flags(), opt)
	for _, d := range c.Include {
		args = append(args, "-I"+d)
	}
	// In the source's own directory, so that the object names the file alone.
	abs, err := filepath.Abs(object)
	if err != nil {
		return fmt.Errorf("firmware: %s: %w", object, err)
	}
	args = append(args, "-c", filepath.Base(source), "-o", abs)
	cmd := exec.CommandContext(ctx, clang, args...)
	cmd.Dir = filepath.Dir(source)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	said := strings.TrimSpace(string(out))
	if strings.Contains(said, "unknown target triple") || strings.Contains(said, "unable to create target") || strings.Contains(said, "No available targets") {
		return fmt.Errorf("firmware: %s: %w: %s does not know the target: %s", source, ErrNoCompiler, clang, said)
	}
	return fmt.Errorf("firmware: %s: %s: %w\n%s", source, filepath.Base(clang), err, said)
}

// CompileTo compiles source and returns the object's bytes.
func (c Compiler) CompileTo(ctx context.Context, source string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "spinesim-firmware-")
	if err != nil {
		return nil, fmt.Errorf("firmware: %w", err)
	}
	defer os.RemoveAll(dir)
	object := filepath.Join(dir, "out.o")
	if err := c.Compile(ctx, source, object); err != nil {
		return nil, err
	}
	b, err := os.ReadFile(object)
	if err != nil {
		return nil, fmt.Errorf("firmware: %w", err)
	}
	return b, nil
}
