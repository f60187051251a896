package lctrie

// The fields of a node, from the top: branch, skip, address.
const (
	branchBits = 5
	skipBits   = 5
	addrBits   = 32 - branchBits - skipBits

	branchShift = 32 - branchBits
	skipMask    = 1<<skipBits - 1
	addrMask    = 1<<addrBits - 1

	maxNodes = 1 << addrBits // a node's address names one of so many
)

func node(branch, skip, addr uint32) uint32 {
	return branch<<branchShift | skip<<addrBits | addr
}

// The word that a packed base record holds beside its string, and that is all
// of a packed prefix record, from the top: length, link, next hop.
const (
	packedHopBits  = 10
	packedLinkBits = 16
	packedLenShift = packedLinkBits + packedHopBits

	packedNoLink  = 1<<packedLinkBits - 1 // also the largest number of prefix records
	packedHopMask = 1<<packedHopBits - 1  // also the largest next-hop index
)

func packedWord(length, link, hop uint32) uint32 {
	return length<<packedLenShift | link<<packedHopBits | hop
}

// The first of the two words that a wide record holds beside the string: length
// and link. The second is the next hop.
const (
	wideLenShift = 24
	wideNoLink   = 1<<wideLenShift - 1
)

func wideWord(length, link uint32) uint32 { return length<<wideLenShift | link }

// The words of a record in either form.
const (
	packedBase, packedPrefix = 2, 1
	wideBase, widePrefix     = 3, 2
)

const noLink = 1<<32 - 1 // while building
