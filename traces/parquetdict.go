package traces

// parquetDictionary gives different values numbers from 0, in the order in
// which they come.
type parquetDictionary struct {
	values []uint64
	near   [256]int32 // of the values below 256: number + 1
	slots  []int32    // of the others, hashed: number + 1; 0 is free
	shift  uint       // of a hash, that it be a slot
}

func (d *parquetDictionary) reset() {
	d.values = d.values[:0]
	clear(d.near[:])
	if d.slots == nil {
		d.slots, d.shift = make([]int32, 1<<10), 64-10
	}
	clear(d.slots)
}

// append appends the values' numbers to index.
func (d *parquetDictionary) append(index []int32, values []uint64) []int32 {
	for _, v := range values {
		if v < uint64(len(d.near)) {
			if d.near[v] == 0 {
				d.values = append(d.values, v)
				d.near[v] = int32(len(d.values))
			}
			index = append(index, d.near[v]-1)
			continue
		}
		at := d.find(v)
		number := d.slots[at]
		if number == 0 {
			number = d.insert(v, at)
		}
		index = append(index, number-1)
	}
	return index
}

// find gives the slot that holds v, or the free one where it belongs.
func (d *parquetDictionary) find(v uint64) uint64 {
	at := v * mix0 >> d.shift
	for d.slots[at] != 0 && d.values[d.slots[at]-1] != v {
		at = (at + 1) & uint64(len(d.slots)-1)
	}
	return at
}

// insert adds v, whose free slot is known. Half of the slots are kept free.
func (d *parquetDictionary) insert(v, at uint64) int32 {
	d.values = append(d.values, v)
	number := int32(len(d.values))
	d.slots[at] = number
	if 2*len(d.values) > len(d.slots) {
		d.slots = make([]int32, 2*len(d.slots))
		d.shift--
		for i, v := range d.values {
			if v >= uint64(len(d.near)) {
				d.slots[d.find(v)] = int32(i + 1)
			}
		}
	}
	return number
}
