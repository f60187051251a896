#include "spine.h"

/* A node: 5 bits of branch, 5 of skip, 22 of address, from the top. */
#define BRANCH(n)	((n) >> 27)
#define SKIP(n)		((n) >> 22 & 31)
#define ADDRESS(n)	((n) & 0x3FFFFF)

/* A packed record: 6 bits of length, 16 of link, 10 of next hop. */
#define LENGTH(r)	((r) >> 26)
#define LINK(r)		((r) >> 10 & 0xFFFF)
#define HOP(r)		((r) & 0x3FF)
#define NO_LINK		0xFFFF

/* A wide one: 8 bits of length, 24 of link; the next hop in a word of its own. */
#define WIDE_LENGTH(r)	((r) >> 24)
#define WIDE_LINK(r)	((r) & 0xFFFFFF)
#define WIDE_NO_LINK	0xFFFFFF

/* Whether the first bits of what differs are all alike: one instruction counts
 * leading zeros. */
static inline u32 matches(u32 differs, u32 length)
{
	return (differs ? (u32)__builtin_clz(differs) : 32) >= length;
}

static u32 wide(const struct routes *r, u32 leaf, u32 address)
{
	const u32 *at = r->base + 3 * leaf, *hop = at + 2;
	u32 differs = at[0] ^ address, record = at[1];

	while (!matches(differs, WIDE_LENGTH(record))) {
		if (WIDE_LINK(record) == WIDE_NO_LINK)
			return NO_HOP;
		at = r->prefixes + 2 * WIDE_LINK(record);
		record = at[0];
		hop = at + 1;
	}
	return *hop;
}

/* The index of the longest matching prefix's next hop, or NO_HOP. */
u32 spine_lookup(const struct routes *r, u32 address)
{
	const u32 *nodes = r->nodes, *at;
	u32 node, rest = address, differs, record;

	if (r->empty)
		return NO_HOP;
	node = *nodes;
	while (BRANCH(node)) {
		u32 branch = BRANCH(node);

		rest <<= SKIP(node);
		node = nodes[ADDRESS(node) + (rest >> (32 - branch))];
		rest <<= branch;
	}
	if (r->wide)
		return wide(r, ADDRESS(node), address);
	at = r->base + 2 * ADDRESS(node);
	differs = at[0] ^ address;
	record = at[1];
	while (!matches(differs, LENGTH(record))) {
		if (LINK(record) == NO_LINK)
			return NO_HOP;
		record = r->prefixes[LINK(record)];
	}
	return HOP(record);
}
