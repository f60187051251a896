package router

import (
	"bytes"
	_ "embed"
)

//go:embed routes/rib2008.tsv
var rib2008 []byte

// RIB2008 returns a thousand real routes, a default route first: the first
// prefixes of the public RouteViews dump of 1 May 2008 with their best paths.
// The file they are in says more about where they come from.
func RIB2008() ([]Route, error) {
	f, err := Read(bytes.NewReader(rib2008), "rib2008.tsv", ReadOptions{})
	if err != nil {
		return nil, err
	}
	return f.Routes, nil
}
