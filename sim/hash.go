package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"spinesim/spine"
)

// Hash names the scenario by everything in it that can change a result, with
// the contents of the files that it reads. Name, description, seed and how a
// value was found do not count. It is a sum over the sorted key=value pairs that
// differ from the preset base, so that a key that comes to be known later, at
// its default, changes no scenario's hash.
func (s *Scenario) Hash() (string, error) {
	c, err := s.byContents()
	if err != nil {
		return "", err
	}
	mine, err := pairs(c)
	if err != nil {
		return "", err
	}
	base, err := basePairs()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, p := range differing(mine, base) {
		fmt.Fprintf(h, "%q=%q\n", p.key, p.value)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// byContents is a copy without what changes no result, and with the sum of each
// file that is read in place of its name.
func (s *Scenario) byContents() (*Scenario, error) {
	c := *s
	c.Name, c.Description, c.Extends, c.Found, c.Seed = "", "", "", nil, 0
	if c.Firmware.Execution == "" {
		c.Firmware.Execution = string(spine.ExecuteTable)
	}
	c.Firmware.Extension = slices.Clone(c.Firmware.Extension)
	files := []*string{&c.Routes.File, captureFile(&c)}
	for i := range c.Firmware.Extension {
		files = append(files, &c.Firmware.Extension[i])
	}
	for _, f := range files {
		if f == nil || *f == "" {
			continue
		}
		sum, err := fileSum(*f)
		if err != nil {
			return nil, &InputError{err}
		}
		*f = sum
	}
	var scheduleErr error
	c.Policy = withScheduleFile(c.Policy, func(file string) (string, error) {
		var sum string
		sum, scheduleErr = fileSum(file)
		return sum, scheduleErr
	})
	if scheduleErr != nil {
		return nil, &InputError{scheduleErr}
	}
	return &c, nil
}

// pair is a key of a scenario, with the keys that it lies in before it, and its
// value as text.
type pair struct{ key, value string }

// basePairs are the pairs of the preset base.
var basePairs = sync.OnceValues(func() ([]pair, error) {
	s, err := Load("base")
	if err != nil {
		return nil, err
	}
	c, err := s.byContents()
	if err != nil {
		return nil, err
	}
	return pairs(c)
})

// pairs are all keys that the scenario has a value for, sorted.
func pairs(s *Scenario) ([]pair, error) {
	var n yaml.Node
	if err := n.Encode(s); err != nil {
		return nil, err
	}
	var out []pair
	var walk func(path string, n *yaml.Node)
	walk = func(path string, n *yaml.Node) {
		switch n.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(join(path, n.Content[i].Value), n.Content[i+1])
			}
		case yaml.SequenceNode:
			for i, e := range n.Content {
				walk(fmt.Sprintf("%s[%d]", path, i), e)
			}
		default:
			out = append(out, pair{path, n.Value})
		}
	}
	walk("", &n)
	slices.SortFunc(out, func(a, b pair) int { return strings.Compare(a.key, b.key) })
	return out, nil
}

// differing are those of mine that base does not have, and those keys of base
// that mine has no value for, with none.
func differing(mine, base []pair) []pair {
	var out []pair
	for len(mine) > 0 || len(base) > 0 {
		switch {
		case len(base) == 0 || len(mine) > 0 && mine[0].key < base[0].key:
			out, mine = append(out, mine[0]), mine[1:]
		case len(mine) == 0 || base[0].key < mine[0].key:
			out, base = append(out, pair{key: base[0].key}), base[1:]
		default:
			if mine[0] != base[0] {
				out = append(out, mine[0])
			}
			mine, base = mine[1:], base[1:]
		}
	}
	return out
}

// captureFile is the capture's file name in a copy of the capture's settings.
func captureFile(s *Scenario) *string {
	if s.Traffic.Capture == nil {
		return nil
	}
	c := *s.Traffic.Capture
	s.Traffic.Capture = &c
	return &c.File
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
