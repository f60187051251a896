package isa

// badFetch is the fault of an instruction that cannot be fetched.
func (c *CPU) badFetch(cycle int64) error {
	return c.raise(c.reject(c.p0, wordSize), 0, "fetch", c.p0, wordSize, cycle)
}

// reject tells why an access is none.
func (c *CPU) reject(addr uint32, bytes int) error {
	switch {
	case addr%uint32(bytes) != 0:
		return ErrMisaligned
	case int64(addr)+int64(bytes) > int64(len(c.mem)):
		return ErrOutside
	}
	return ErrProtected
}

// device tells whether an access that is none to memory is one to a device, and
// whether it has to wait until the caller has brought the devices to its time.
func (c *CPU) device(access string, addr uint32, u *op, end, now int64) (wait bool, err error) {
	size := int(u.size & sizeMask)
	switch {
	case addr < DeviceBase:
		return false, c.raise(c.reject(addr, size), u.word, access, addr, size, end)
	case addr%wordSize != 0:
		return false, c.raise(ErrMisaligned, u.word, access, addr, size, end)
	case size != wordSize || c.Devices == nil:
		return false, c.raise(ErrDevice, u.word, access, addr, size, end)
	}
	return end != now, nil
}

func (c *CPU) deviceLoad(addr uint32, u *op, end, now int64) (v uint32, wait bool, err error) {
	if wait, err = c.device("load", addr, u, end, now); err != nil {
		return 0, false, err
	}
	if wait && (c.steady == nil || !c.steady.Steady(addr)) {
		return 0, true, nil
	}
	if v, err = c.Devices.Load(addr); err != nil {
		err = c.raise(err, u.word, "load", addr, wordSize, end)
	}
	return v, false, err
}

func (c *CPU) deviceStore(addr, v uint32, u *op, end, now int64) (wait bool, err error) {
	if wait, err = c.device("store", addr, u, end, now); wait || err != nil {
		return wait, err
	}
	if err = c.Devices.Store(addr, v); err != nil {
		err = c.raise(err, u.word, "store", addr, wordSize, end)
	}
	return false, err
}
