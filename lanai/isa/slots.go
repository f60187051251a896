package isa

// Slots tells what the memory bus leaves to the processor.
type Slots interface {
	// Window tells what is free in the cycles from the given one on.
	Window(cycle int64) Window
}

// Window is what the memory bus leaves to the processor in some cycles.
type Window struct {
	// Free is the accesses in each cycle; nil stands for at least two in every
	// one until the boundary Until. It is valid until the next Window.
	Free []uint8
	// Waits is what AppendWaits makes of Free and what follows it.
	Waits []uint8
	// Until is needed where Free is nil.
	Until int64
}

const (
	// waitBits is the bits of a wait, of which an entry of Window.Waits has two:
	// that of an instruction with one access in the lower ones, with two above.
	waitBits = 4
	longWait = 1<<waitBits - 1 // and more, or not known
)

// AppendWaits appends, for each of the first n cycles of free, how many cycles an
// instruction that asks for its accesses then has to wait for the last of them.
func AppendWaits(to, free []uint8, n int) []uint8 {
	for i := range n {
		entry, got := uint8(longWait|longWait<<waitBits), uint8(0)
		for k, f := range free[i:min(len(free), i+longWait)] {
			if got == 0 && f > 0 {
				entry = entry&^longWait | uint8(k)
			}
			if got += f; got >= 2 {
				entry = entry&longWait | uint8(k)<<waitBits
				break
			}
		}
		to = append(to, entry)
	}
	return to
}

// Devices are the special registers, at addresses from DeviceBase on. They are
// accessed a word at a time, at multiples of 4.
type Devices interface {
	Load(addr uint32) (uint32, error)
	Store(addr, v uint32) error
}

// Steady is implemented by Devices that have registers whose reading changes
// nothing and whose value changes with events and stores only. Such registers
// are read without stopping the run.
type Steady interface {
	Steady(addr uint32) bool
}

// DeviceBase is where device registers begin. An address is taken for a device
// before it is compared with the memory's size.
const DeviceBase = 0xFFFF_FF00

// ReturnAddress is where a function called from outside returns to: reaching
// it stops the run with Returned.
const ReturnAddress = 0xFFFF_FEFC
