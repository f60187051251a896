package traces_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"spinesim/sim/des"
	"spinesim/traces"
)

// hand is a packet's first handlers, by hand.
const hand = `
  0.000000 +0.200000 0 receive Receive header  | packet=1 bytes=32 id=0#1
  0.200000 +0.360000 0 polls   -               | queue=1 count=1 cycles=12 id=0#2
  0.560000 +2.700000 0 box     Rx check header | packet=1 queue=1 cycles=90 ready=0.2 id=0#3 cause=0#1
  3.260000 +9.175000 0 receive Receive body    | packet=1 bytes=1468 id=0#4 cause=0#3
`

// A recorded file is converted by reading it into another writer; both formats
// are told by their extensions.
func ExampleConvert() {
	dir, err := os.MkdirTemp("", "traces")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	listing := filepath.Join(dir, "hand.txt")
	if err := os.WriteFile(listing, []byte(hand), 0o600); err != nil {
		log.Fatal(err)
	}

	in, err := traces.OpenReader(listing)
	if err != nil {
		log.Fatal(err)
	}
	defer in.Close()
	out, err := traces.CreateWriter(filepath.Join(dir, "hand.csv.gz"), in.Meta())
	if err != nil {
		log.Fatal(err)
	}
	defer out.Abort() // nothing is left of it if we fail before Close
	n, err := traces.Convert(in, out)
	if err != nil {
		log.Fatal(err)
	}
	if err := out.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "records")
	// Output: 4 records
}

// Cut keeps a window of a record; a listing shows it.
func ExampleCut() {
	in, err := traces.NewListingReader(strings.NewReader(hand), traces.ReadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	buffer := traces.NewBuffer(in.Meta(), 0)
	if _, err := traces.Cut(in, buffer, traces.Filter{From: des.Microsecond, Kinds: []traces.Kind{traces.KindBox}}); err != nil {
		log.Fatal(err)
	}
	var rec traces.Record
	for r := buffer.Reader(); ; {
		ok, err := r.Next(&rec)
		if err != nil {
			log.Fatal(err)
		}
		if !ok {
			break
		}
		fmt.Println(strings.TrimSpace(string(traces.AppendListing(nil, &rec))))
	}
	// Output: 0.560000    +2.700000  0     box       Rx check header     | packet=1 queue=1 cycles=90 ready=0.200000 id=0#3 cause=0#1
}

// Two runs are compared record by record.
func ExampleDiff() {
	read := func(s string) traces.Reader {
		r, err := traces.NewListingReader(strings.NewReader(s), traces.ReadOptions{})
		if err != nil {
			log.Fatal(err)
		}
		return r
	}
	other := strings.Replace(hand, "+2.700000", "+2.730000", 1)
	d, err := traces.Diff(read(hand), read(other), 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("record", d.Index, "differs in", strings.Join(d.Fields, ", "))
	fmt.Println("its cause:", d.CausesA[0].Event)
	// Output:
	// record 2 differs in end
	// its cause: Receive header
}

func ExampleFingerprint() {
	in, err := traces.NewListingReader(strings.NewReader(hand), traces.ReadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	var f traces.Fingerprint
	if _, err := traces.Convert(in, &f); err != nil {
		log.Fatal(err)
	}
	fmt.Println(&f, "of", f.Records(), "records")
	// Output: 270bf127e5a6491b of 4 records
}
