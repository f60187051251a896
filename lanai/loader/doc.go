// Package loader puts compiled firmware into a card's memory. It reads
// relocatable ELF objects as clang's lanai target writes them (32-bit,
// big-endian, EM_LANAI, RELA), lays out their sections in blocks of SRAM that
// its allocator gives, resolves symbols among the objects, and applies the
// seven relocations that the target knows. No linker for the machine exists, so
// this is one, for objects that lie in memory as they are: no archives, shared
// objects, thread-local storage, or merging of strings.
//
// Weak definitions give way to others, and weak references to nothing resolve
// to 0. Common symbols are placed with the uninitialised data. Addresses must
// fit the forms that compiled code uses: 21 bits for data in the small model,
// 25 bits for branches.
package loader
