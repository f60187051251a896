package cmd

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"spinesim/sim/testenv"
)

// update rewrites the outputs that the README shows, except those that leave
// lines out.
var update = flag.Bool("update", false, "rewrite the outputs in the README")

// wall is the part of an output that differs from run to run.
var wall = regexp.MustCompile(`wall [0-9.]+ s`)

// example is a command in the README with the output that stands below it.
type example struct {
	line int
	args []string
	want []string
	// mark is what stands before the block, if anything does.
	mark string
}

// listing is a C file that the README has its reader write.
var listing = regexp.MustCompile("(?s)```c\n(/\\* ([a-z]+\\.c): .*?)```")

// compiled tells whether a command needs a compiler, or what one has made.
func (e *example) compiled() bool {
	return slices.Contains(e.args, "build") || slices.ContainsFunc(e.args, func(a string) bool { return strings.HasSuffix(a, ".o") }) ||
		slices.ContainsFunc(e.args, func(a string) bool { return a == "quiet.csv" })
}

// A block of commands that take a while runs with the long tests only, and one
// that takes minutes, or a file that the reader is to bring along, is only
// shown: of those the flags are checked.
const (
	longMark  = "<!-- long -->"
	shownMark = "<!-- shown -->"
)

// readExamples finds the console blocks of the README.
func readExamples(t *testing.T, text string) []example {
	t.Helper()
	var out []example
	in, mark := false, ""
	var cur *example
	for i, l := range strings.Split(text, "\n") {
		switch {
		case !in && (strings.TrimSpace(l) == longMark || strings.TrimSpace(l) == shownMark):
			mark = strings.TrimSpace(l)
		case !in && strings.TrimSpace(l) == "```console":
			in = true
		case in && strings.TrimSpace(l) == "```":
			in, mark, cur = false, "", nil
		case in && strings.HasPrefix(l, "$ "):
			cmd := strings.TrimPrefix(l, "$ ")
			cmd = strings.Replace(cmd, "go run ./cmd/spinesim", "spinesim", 1)
			args := splitWords(cmd)
			if args[0] != "spinesim" {
				cur = nil
				continue
			}
			out = append(out, example{line: i + 1, args: args[1:], mark: mark})
			cur = &out[len(out)-1]
		case in && cur != nil:
			cur.want = append(cur.want, strings.TrimRight(l, " "))
		}
	}
	return out
}

// splitWords splits as a shell does, with double and single quotes.
func splitWords(s string) []string {
	var out []string
	var w strings.Builder
	quote, some := rune(0), false
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, some = r, true
		case quote == 0 && r == ' ':
			if some || w.Len() > 0 {
				out = append(out, w.String())
			}
			w.Reset()
			some = false
		default:
			w.WriteRune(r)
		}
	}
	if some || w.Len() > 0 {
		out = append(out, w.String())
	}
	return out
}

// TestReadme runs the README's examples: each must do what it says. A … in the
// output stands for anything; a line of … for any number of lines.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	examples := readExamples(t, string(text))
	if len(examples) < 5 {
		t.Fatalf("%d examples found in the README, want several", len(examples))
	}
	readme, err := filepath.Abs(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	shift := 0
	t.Chdir(t.TempDir())
	for _, m := range listing.FindAllStringSubmatch(string(text), -1) {
		if err := os.WriteFile(m[2], []byte(m[1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if testenv.Clients() {
		testenv.Client(t, "clang")
	}
	for _, e := range examples {
		name := strings.Join(e.args, " ")
		if e.mark == shownMark || e.mark == longMark && !testenv.Long() || e.compiled() && !testenv.Clients() {
			checkFlags(t, e)
			continue
		}
		var stdout, stderr bytes.Buffer
		if code := Execute(context.Background(), e.args, nil, &stdout, &stderr); code != 0 {
			t.Errorf("README.md:%d: spinesim %s: status %d: %s", e.line, name, code, stderr.String())
			continue
		}
		got := strings.Split(strings.TrimRight(stdout.String(), "\n"), "\n")
		if *update && len(e.want) > 0 && !slices.Contains(e.want, "…") {
			for i := range got {
				got[i] = strings.TrimRight(wall.ReplaceAllString(got[i], "wall … s"), " ")
			}
			at := e.line + shift
			lines = slices.Replace(lines, at, at+len(e.want), got...)
			shift += len(got) - len(e.want)
			continue
		}
		if d := mismatch(e.want, got); d != "" {
			t.Errorf("README.md:%d: spinesim %s: %s\ngot:\n%s", e.line, name, d, stdout.String())
		}
	}
	if *update {
		if err := os.WriteFile(readme, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadmeCode: every Go listing of the README stands in an example that is
// compiled and run.
func TestReadmeCode(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var sources strings.Builder
	for _, pattern := range []string{"../sim/example*_test.go", "../spine/example*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources.WriteString(strings.Join(strings.Fields(string(b)), " ") + " ")
		}
	}
	n := 0
	for _, part := range strings.Split(string(text), "```go\n")[1:] {
		code, _, _ := strings.Cut(part, "```")
		n++
		if !strings.Contains(sources.String(), strings.Join(strings.Fields(code), " ")) {
			t.Errorf("this listing of the README is in no example:\n%s", code)
		}
	}
	if n == 0 {
		t.Error("the README has no Go listing")
	}
}

// TestReadmeReference: the scenario reference in the README is the program's.
func TestReadmeReference(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	code, table, stderr := spinesim("scenario", "reference")
	if code != 0 {
		t.Fatal(stderr)
	}
	if *update {
		before, rest, ok := strings.Cut(string(text), "| key | default | meaning |\n")
		_, after, ok2 := strings.Cut(rest, "\n\n")
		if !ok || !ok2 {
			t.Fatal("the README has no place for the reference")
		}
		if err := os.WriteFile(filepath.Join("..", "README.md"), []byte(before+table+"\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !strings.Contains(string(text), table) {
		t.Error("the scenario reference is out of date; go test ./cmd -run Readme -update rewrites it")
	}
}

// checkFlags sees that a command and the flags it is shown with exist.
func checkFlags(t *testing.T, e example) {
	t.Helper()
	c, rest, err := newRoot(&profiling{}).Find(e.args)
	if err != nil {
		t.Errorf("README.md:%d: %v", e.line, err)
		return
	}
	if err := c.ParseFlags(rest); err != nil {
		t.Errorf("README.md:%d: %v", e.line, err)
	}
}

// mismatch says where the output differs from what the README shows.
func mismatch(want, got []string) string {
	if len(want) == 0 {
		return ""
	}
	g := 0
	for i := 0; i < len(want); i++ {
		if strings.TrimSpace(want[i]) == "…" {
			if i+1 == len(want) {
				return ""
			}
			for g < len(got) && !matches(want[i+1], got[g]) {
				g++
			}
			continue
		}
		if g >= len(got) {
			return "the output ends before: " + want[i]
		}
		if !matches(want[i], got[g]) {
			return "README has: " + want[i] + "\nthe command prints: " + got[g]
		}
		g++
	}
	if g < len(got) {
		return "the output goes on with: " + got[g]
	}
	return ""
}

func matches(want, got string) bool {
	p := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(want, " ")), "…", ".*")
	return regexp.MustCompile("^" + p + "$").MatchString(strings.TrimRight(got, " "))
}
