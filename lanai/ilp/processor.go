package ilp

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// hostProcessor is what the operating system tells of the running machine. What
// it does not tell stays zero.
type hostProcessor struct {
	model     string
	mhz       float64
	lastCache int // bytes of the largest cache
}

// readProcessor asks Linux's proc and sys file systems below root ("/" on a
// running machine). Elsewhere they do not exist, and nothing is known.
func readProcessor(root string) hostProcessor {
	var h hostProcessor
	if f, err := os.Open(filepath.Join(root, "proc/cpuinfo")); err == nil {
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			key, value, _ := strings.Cut(lines.Text(), ":")
			value = strings.TrimSpace(value)
			switch strings.TrimSpace(key) {
			case "model name":
				if h.model == "" {
					h.model = value
				}
			case "cpu MHz":
				if v, err := strconv.ParseFloat(value, 64); err == nil && v > 0 && h.mhz == 0 {
					h.mhz = v
				}
			}
		}
	}
	for i := range 8 {
		text, err := os.ReadFile(filepath.Join(root, "sys/devices/system/cpu/cpu0/cache", "index"+strconv.Itoa(i), "size"))
		if err != nil {
			break
		}
		h.lastCache = max(h.lastCache, cacheSize(strings.TrimSpace(string(text))))
	}
	return h
}

// cacheSize reads Linux's "48K" or "480M"; 0 for anything else.
func cacheSize(s string) int {
	scale := 1
	switch {
	case strings.HasSuffix(s, "K"):
		scale = 1 << 10
	case strings.HasSuffix(s, "M"):
		scale = 1 << 20
	case strings.HasSuffix(s, "G"):
		scale = 1 << 30
	}
	n, err := strconv.Atoi(strings.TrimRight(s, "KMG"))
	if err != nil || n < 0 || n > 1<<20 {
		return 0
	}
	return n * scale
}
