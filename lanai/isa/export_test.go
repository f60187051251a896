package isa

// Paths counts the paths that are known, and how often memos took one to its end.
func (c *CPU) Paths() (paths int, recalled int64) {
	for _, p := range c.pages {
		if p == nil {
			continue
		}
		for _, t := range p.paths {
			if t == nil {
				continue
			}
			paths++
			if t.memo != nil {
				recalled += int64(t.memo.hits)
			}
		}
	}
	return paths, recalled
}
