package firmware

import (
	"embed"
	"fmt"
	"path"

	"spinesim/lanai/loader"
)

//go:embed lib/*.c lib/*.o spine/*.c spine/*.h spine/*.o
var files embed.FS

// Spine is the objects of the SPINE run-time: its queues, handlers, router and
// dispatcher. They need the library.
func Spine() ([]*loader.Object, error) { return objects("spine") }

// Library is the run-time library's objects: what compiled code calls for
// products, quotients, shifts of two words and memory.
func Library() ([]*loader.Object, error) { return objects("lib") }

func objects(dir string) ([]*loader.Object, error) {
	list, err := files.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("firmware: %w", err)
	}
	var os []*loader.Object
	for _, e := range list {
		if path.Ext(e.Name()) != ".o" {
			continue
		}
		b, err := files.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("firmware: %w", err)
		}
		o, err := loader.Parse(e.Name(), b)
		if err != nil {
			return nil, err
		}
		os = append(os, o)
	}
	return os, nil
}
