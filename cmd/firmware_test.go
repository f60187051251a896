package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"spinesim/sim/testenv"
)

func TestFirmwareCommands(t *testing.T) {
	do := func(args ...string) (string, error) {
		root := newRoot(&profiling{})
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(append([]string{"firmware"}, args...))
		err := root.ExecuteContext(context.Background())
		return out.String(), err
	}
	dir := t.TempDir()
	src := filepath.Join(dir, "my.c")
	if _, err := do("new", "filter", src); err != nil {
		t.Fatal(err)
	}
	if _, err := do("new", "filter", src); err == nil || status(err) != 2 {
		t.Errorf("a second new: %v, want wrong usage", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "spine.h")); err != nil {
		t.Error(err)
	}
	out, err := do("run", "--packets", "20", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Costs []firmwareRow
		Marks []int
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Costs) < 20 {
		t.Errorf("%v in %s", err, out)
	}
	if out, err = do("profile", "--packets", "20", "--function", "spine_lookup"); err != nil || !strings.Contains(out, "leadz") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err = do("disasm", "--map"); err != nil || !strings.Contains(out, "dispatch.o(.text)") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err = do("disasm", src); err == nil || status(err) != 2 {
		t.Errorf("disasm of C: %v, want wrong usage", err)
	}
	testenv.Client(t, "clang")
	if _, err := do("build", src); err != nil {
		t.Fatal(err)
	}
	if out, err = do("run", "--packets", "20", "--extension", filepath.Join(dir, "my.o")); err != nil || !strings.Contains(out, "Router In handler") {
		t.Errorf("%v: %s", err, out)
	}
}
