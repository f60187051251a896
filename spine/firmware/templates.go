package firmware

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

//go:embed templates/*.c
var templates embed.FS

// Templates names the extensions that New writes.
func Templates() []string { return []string{"filter", "counter", "balancer"} }

// Template is the C source of an extension to start from.
func Template(name string) ([]byte, error) {
	b, err := templates.ReadFile("templates/" + name + ".c")
	if err != nil {
		return nil, fmt.Errorf("firmware: no template %q, there are %s", name, strings.Join(Templates(), ", "))
	}
	return b, nil
}

// Header is spine.h, which extensions include.
func Header() ([]byte, error) {
	b, err := files.ReadFile("spine/spine.h")
	if err != nil {
		return nil, fmt.Errorf("firmware: %w", err)
	}
	return b, nil
}

// Build compiles an extension to an object; it finds spine.h beside the source
// or, where there is none, the one that is built in.
func Build(ctx context.Context, c Compiler, source, object string) error {
	dir, err := os.MkdirTemp("", "spinesim-include-")
	if err != nil {
		return fmt.Errorf("firmware: %w", err)
	}
	defer os.RemoveAll(dir)
	h, err := Header()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "spine.h"), h, 0o644); err != nil {
		return fmt.Errorf("firmware: %w", err)
	}
	c.Include = append(append([]string(nil), c.Include...), dir)
	return c.Compile(ctx, source, object)
}
