package bihash

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"spinesim/lanai"
)

// oracle is a Go map beside a table.
type oracle struct {
	t    *Table
	want map[string]uint64
}

func (o *oracle) add(tb testing.TB, key []byte, v uint64) {
	err := o.t.Add(key, v)
	switch {
	case v == Empty:
		if !errors.Is(err, ErrValue) {
			tb.Fatalf("add of the reserved value: %v, want %v", err, ErrValue)
		}
	case errors.Is(err, ErrFull):
		if _, ok := o.want[string(key)]; ok {
			tb.Fatalf("a key that is there could not be given a new value: %v", err)
		}
	case err != nil:
		tb.Fatal(err)
	default:
		o.want[string(key)] = v
	}
}

func (o *oracle) remove(tb testing.TB, key []byte) {
	_, want := o.want[string(key)]
	if got := o.t.Delete(key); got != want {
		tb.Fatalf("delete of %x: %v, want %v", key, got, want)
	}
	delete(o.want, string(key))
}

func (o *oracle) look(tb testing.TB, key []byte) {
	want, wok := o.want[string(key)]
	if got, ok := o.t.Search(key); got != want || ok != wok {
		tb.Fatalf("search for %x: %d, %v, want %d, %v", key, got, ok, want, wok)
	}
	got, r, ok := o.t.Find(key)
	if got != want || ok != wok {
		tb.Fatalf("find of %x: %d, %v, want %d, %v", key, got, ok, want, wok)
	}
	if r.Words < 2 || r.Pairs > 0 && r.Pages == 0 || !r.Linear && r.Pages > 1 {
		tb.Fatalf("find of %x: impossible reads %+v", key, r)
	}
}

// whole compares everything, and the table's own books.
func (o *oracle) whole(tb testing.TB) {
	got := map[string]uint64{}
	o.t.All(func(k []byte, v uint64) bool {
		if _, twice := got[string(k)]; twice {
			tb.Fatalf("key %x is there twice", k)
		}
		got[string(k)] = v
		return true
	})
	if d := cmp.Diff(o.want, got); d != "" {
		tb.Fatalf("pairs (-want +got):\n%s", d)
	}
	if o.t.Len() != len(o.want) {
		tb.Fatalf("length %d, want %d", o.t.Len(), len(o.want))
	}
	o.books(tb)
}

// books checks that every page belongs to one bucket or to one free piece.
func (o *oracle) books(tb testing.TB) {
	t := o.t
	owner := make([]string, t.next)
	claim := func(page uint32, n int, who string) {
		for p := page; p < page+uint32(n); p++ {
			if owner[p] != "" {
				tb.Fatalf("page %d belongs to %s and %s", p, owner[p], who)
			}
			owner[p] = who
		}
	}
	used := 0
	for i := range t.spec.Buckets {
		b := t.bucket(i)
		if b.empty() {
			continue
		}
		if b.pairs() == 0 {
			tb.Fatalf("bucket %d has pages and no pairs", i)
		}
		used += b.count()
		claim(b.page(), b.count(), fmt.Sprintf("bucket %d", i))
		n := 0
		t.Bucket(i, func(k []byte, _ uint64) bool {
			n++
			if t.index(t.Hash(k)) != i {
				tb.Fatalf("key %x lies in bucket %d", k, i)
			}
			return true
		})
		if n != b.pairs() {
			tb.Fatalf("bucket %d counts %d pairs and has %d", i, b.pairs(), n)
		}
	}
	for log2, l := range t.free {
		for _, p := range l {
			claim(p, 1<<log2, fmt.Sprintf("free piece of %d", 1<<log2))
		}
	}
	for p, who := range owner {
		if who == "" {
			tb.Fatalf("page %d is lost", p)
		}
	}
	if used != t.inUse {
		tb.Fatalf("%d pages in use, the table counts %d", used, t.inUse)
	}
}

func TestAgainstMap(t *testing.T) {
	for _, k := range KeySizes() {
		for _, h := range Hashes() {
			for _, buckets := range []int{1, 4, 256} {
				t.Run(fmt.Sprintf("%d %s %d", k, h, buckets), func(t *testing.T) {
					t.Parallel()
					r := rand.New(rand.NewPCG(1, uint64(k*buckets)))
					tab, err := New(Spec{KeyBytes: k, Buckets: buckets, Bytes: buckets*8 + 700*4*(k+8), Hash: h})
					if err != nil {
						t.Fatal(err)
					}
					o := &oracle{tab, map[string]uint64{}}
					key := make([]byte, k)
					draw := func() []byte {
						n := r.Uint64N(900)
						for i := 0; i < k; i += 8 {
							// Keys that differ in one place only, early or late.
							v := uint64(0)
							if uint64(i/8) == n%uint64(k/8) {
								v = n
							}
							binary.BigEndian.PutUint64(key[i:], v)
						}
						return key
					}
					for step := range 5000 {
						switch {
						case step/1250%2 == 0 && r.IntN(3) > 0, r.IntN(3) == 0:
							o.add(t, draw(), r.Uint64())
						default:
							o.remove(t, draw())
						}
						o.look(t, draw())
						if step%1000 == 0 {
							o.whole(t)
						}
					}
					o.whole(t)
					for k := range o.want {
						o.t.Delete([]byte(k))
					}
					if s := tab.Stats(); s.Pages != 0 || s.Pairs != 0 || s.UsedBuckets != 0 {
						t.Errorf("an emptied table has %+v", s)
					}
				})
			}
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add(uint8(0), uint8(0), []byte{0, 1, 1, 0, 1, 2, 0, 2, 3, 1, 1, 0})
	f.Add(uint8(1), uint8(1), []byte("the quick brown fox jumps over the lazy dog"))
	f.Fuzz(func(t *testing.T, kind, shape uint8, ops []byte) {
		k := keySizes[int(kind)%len(keySizes)]
		buckets := 1 << (shape % 4)
		pages := 1 + int(shape>>2)
		tab, err := New(Spec{KeyBytes: k, Buckets: buckets, Bytes: buckets*8 + pages*4*(k+8), Hash: Hashes()[kind>>7]})
		if err != nil {
			t.Fatal(err)
		}
		o := &oracle{tab, map[string]uint64{}}
		key := make([]byte, k)
		for ; len(ops) >= 3; ops = ops[3:] {
			for i := range key {
				key[i] = 0xFF
			}
			key[int(ops[1])%k] = ops[2]
			key[k-1] ^= ops[1]
			switch ops[0] % 4 {
			case 0, 1:
				o.add(t, key, uint64(ops[0])<<8|uint64(ops[2]))
			case 2:
				o.remove(t, key)
			default:
				o.add(t, key, Empty)
			}
			o.look(t, key)
		}
		o.whole(t)
	})
}

// TestLinear crowds keys whose hashes agree in all bits that choose a page.
func TestLinear(t *testing.T) {
	tab, err := New(Spec{KeyBytes: 8, Buckets: 256, Bytes: 1 << 20, Hash: CRC32C})
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{tab, map[string]uint64{}}
	var crowd [][]byte
	for i := uint64(0); len(crowd) < 40; i++ {
		key := binary.BigEndian.AppendUint64(nil, i)
		if tab.Hash(key)&0xFFFF == 7 { // bucket 7 of 256, page 0 of up to 256
			crowd = append(crowd, key)
		}
	}
	for i, k := range crowd {
		o.add(t, k, uint64(i))
		wantLinear := i >= PairsPerPage
		if s := tab.Stats(); (s.LinearBuckets == 1) != wantLinear {
			t.Fatalf("after %d keys that fall on one page: %+v", i+1, s)
		}
	}
	o.whole(t)
	_, r, ok := tab.Find(crowd[39])
	if !ok || !r.Linear || r.Pages < 10 {
		t.Errorf("the last of 40 in a linear bucket: %v, %+v; want 10 pages and more", ok, r)
	}
	for i, k := range crowd {
		o.remove(t, k)
		if s := tab.Stats(); (s.LinearBuckets == 0) != (i == len(crowd)-1) {
			t.Fatalf("after deleting %d of %d: %+v; a bucket stays linear until it is empty", i+1, len(crowd), s)
		}
	}
}

// TestGrowth fills one page after the other: four pairs a page, then two pages.
func TestGrowth(t *testing.T) {
	tab, err := New(Spec{KeyBytes: 8, Buckets: 1, Bytes: 8 + 64*64, Hash: Multiplicative})
	if err != nil {
		t.Fatal(err)
	}
	var pages []int
	for i := range uint64(20) {
		if err := tab.Add(binary.BigEndian.AppendUint64(nil, i), i); err != nil {
			t.Fatal(err)
		}
		pages = append(pages, tab.Stats().MaxPages)
	}
	if pages[3] != 1 || pages[4] < 2 || pages[19] < 8 {
		t.Errorf("pages after each of 20 pairs: %v", pages)
	}
}

func TestFull(t *testing.T) {
	tab, err := New(Spec{KeyBytes: 8, Buckets: 1, Bytes: 8 + 3*64, Hash: CRC32C})
	if err != nil {
		t.Fatal(err)
	}
	var full error
	n := uint64(0)
	for ; full == nil && n < 100; n++ {
		full = tab.Add(binary.BigEndian.AppendUint64(nil, n), n)
	}
	if !errors.Is(full, ErrFull) {
		t.Fatalf("no error from a table of 3 pages after %d pairs: %v", n, full)
	}
	for i := range n - 1 {
		if v, ok := tab.Search(binary.BigEndian.AppendUint64(nil, i)); !ok || v != i {
			t.Errorf("pair %d was lost when the table was full", i)
		}
	}
}

func TestInSRAM(t *testing.T) {
	sram := lanai.NewSRAM(1 << 20)
	if _, err := sram.Alloc("something", 100, 4); err != nil {
		t.Fatal(err)
	}
	spec := Spec{KeyBytes: 8, Buckets: 1024, Bytes: 64 << 10, Hash: CRC32C}
	tab, err := NewIn(spec, sram, "stations")
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("station1")
	if err := tab.Add(key, 0x0102030405060708); err != nil {
		t.Fatal(err)
	}
	// The pair is in the card's memory, as words that firmware would read.
	_, page, ok := tab.Place(tab.Hash(key))
	if !ok {
		t.Fatal("no place")
	}
	var words []uint32
	for i := range uint32(4) {
		w, err := sram.Word(tab.Address() + uint32(page) + 4*i)
		if err != nil {
			t.Fatal(err)
		}
		words = append(words, w)
	}
	want := []uint32{0x73746174, 0x696f6e31, 0x01020304, 0x05060708}
	if d := cmp.Diff(want, words); d != "" {
		t.Errorf("words of the pair (-want +got):\n%s", d)
	}
	if sram.Held("stations") != 64<<10 {
		t.Errorf("stations hold %d bytes", sram.Held("stations"))
	}
	if _, err := NewIn(Spec{KeyBytes: 8, Buckets: 1024, Bytes: 1 << 20, Hash: CRC32C}, sram, "more"); !errors.Is(err, lanai.ErrNoRoom) {
		t.Errorf("a table beyond the card's memory: %v, want %v", err, lanai.ErrNoRoom)
	}
}

func TestSpec(t *testing.T) {
	for _, s := range []Spec{
		{KeyBytes: 12, Buckets: 16, Bytes: 1 << 20, Hash: CRC32C},
		{KeyBytes: 8, Buckets: 15, Bytes: 1 << 20, Hash: CRC32C},
		{KeyBytes: 8, Buckets: 0, Bytes: 1 << 20, Hash: CRC32C},
		{KeyBytes: 8, Buckets: 16, Bytes: 16*8 + 63, Hash: CRC32C},
		{KeyBytes: 8, Buckets: 16, Bytes: 2 << 30, Hash: CRC32C},
		{KeyBytes: 8, Buckets: 16, Bytes: 1 << 20, Hash: "md5"},
	} {
		if _, err := New(s); !errors.Is(err, ErrSpec) {
			t.Errorf("%+v: %v, want %v", s, err, ErrSpec)
		}
	}
	tab, err := New(DefaultSpec())
	if err != nil {
		t.Fatal(err)
	}
	if err := tab.Add([]byte("short"), 1); !errors.Is(err, ErrKey) {
		t.Errorf("short key: %v", err)
	}
	if _, ok := tab.Search(nil); ok {
		t.Error("a key without bytes was found")
	}
}

func TestPipelines(t *testing.T) {
	for _, k := range KeySizes() {
		tab, err := New(Spec{KeyBytes: k, Buckets: 64, Bytes: 1 << 20, Hash: CRC32C})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, uint64(k)))
		keys := make([]byte, 500*k)
		for i := range keys {
			keys[i] = byte(r.Uint32() % 3)
		}
		for i := 0; i < 500; i += 2 {
			if err := tab.Add(keys[i*k:i*k+k], uint64(i)); err != nil {
				t.Fatal(err)
			}
		}
		p := NewPipeline(tab)
		for _, n := range []int{0, 1, 3, 64, 255, 256} {
			want := make([]uint64, n)
			hits := 0
			at := r.IntN(500 - n)
			batch := keys[at*k : (at+n)*k]
			for i := range want {
				v, ok := tab.Search(batch[i*k : i*k+k])
				if want[i] = v; !ok {
					want[i] = Empty
				} else {
					hits++
				}
			}
			got := make([]uint64, n)
			if found := p.Search(batch, got); found != hits || cmp.Diff(want, got) != "" {
				t.Errorf("%d keys of %d bytes, in stages: %d found, want %d: %s", n, k, found, hits, cmp.Diff(want, got))
			}
			for _, d := range []int{1, 2, 7, 64, 1000} {
				clear(got)
				if found := p.SearchAhead(batch, got, d); found != hits || cmp.Diff(want, got) != "" {
					t.Errorf("%d keys of %d bytes, %d ahead: %d found, want %d: %s", n, k, d, found, hits, cmp.Diff(want, got))
				}
			}
		}
	}
}

func TestNoAllocation(t *testing.T) {
	tab, err := New(DefaultSpec())
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]byte, 0, 64*8)
	for i := range uint64(64) {
		keys = binary.BigEndian.AppendUint64(keys, i*i)
		if err := tab.Add(keys[i*8:], i); err != nil {
			t.Fatal(err)
		}
	}
	p := NewPipeline(tab)
	values := make([]uint64, 64)
	for name, f := range map[string]func(){
		"search":   func() { tab.Search(keys[:8]) },
		"find":     func() { tab.Find(keys[8:16]) },
		"pipeline": func() { p.Search(keys, values) },
		"ahead":    func() { p.SearchAhead(keys, values, 4) },
		"delete and add": func() {
			tab.Delete(keys[16:24])
			if err := tab.Add(keys[16:24], 2); err != nil {
				t.Error(err)
			}
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %g times", name, n)
		}
	}
}

// crcBits is CRC-32C a bit at a time.
func crcBits(key []byte) uint64 {
	var r uint32
	for _, b := range key {
		r ^= uint32(b)
		for range 8 {
			if r&1 != 0 {
				r = r>>1 ^ 0x82F63B78
			} else {
				r >>= 1
			}
		}
	}
	return uint64(r)
}

func TestHashes(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, k := range KeySizes() {
		key := make([]byte, k)
		for range 200 {
			for i := range key {
				key[i] = byte(r.Uint32())
			}
			if got, want := CRC32C.Sum(key), crcBits(key); got != want {
				t.Fatalf("CRC-32C of %x: %#x, want %#x", key, got, want)
			}
		}
	}
	// Neither hash crowds consecutive numbers, which real addresses are.
	for _, h := range Hashes() {
		var count [256]int
		for i := range uint64(4096) {
			count[h.Sum(binary.BigEndian.AppendUint64(nil, 0x0200_0A00_0000_0000|i<<16))&255]++
		}
		for i, n := range count {
			if n > 48 {
				t.Errorf("%s: %d of 4,096 addresses in bucket %d of 256", h, n, i)
			}
		}
	}
}
