#include "spine.h"

static u32 in(const struct prefix *p, u32 n, u32 address)
{
	for (; n; n--, p++)
		if ((address & p->mask) == p->address)
			return 1;
	return 0;
}

static inline enum action refuse(struct packet *p, enum action a, enum reason why)
{
	p->why = why;
	spine.routes.refused[why]++;
	return a;
}

/* The lists of special addresses, for the few packets whose first octets may
 * be on one. */
static enum action special(struct packet *p, u32 source, u32 target)
{
	struct routes *r = &spine.routes;
	const struct prefix *l = r->list;

	if (in(l, r->bad_sources, source))
		return refuse(p, DROP, MARTIAN);
	if (in(l + r->bad_sources, r->locals, target))
		return refuse(p, TO_HOST, LOCAL);
	if (in(l + r->bad_sources + r->locals, r->bad_targets, target))
		return refuse(p, DROP, MARTIAN);
	return NEXT;
}

/* IPv4 forwarding, checks in the order of RFC 1812, 5.2. */
enum action spine_route(struct packet *p)
{
	struct routes *r = &spine.routes;
	u32 *h = p->buffer + 1;
	u32 first, words, size, total, source, target, hop;
	const u32 *next;

	if (p->bad_crc)
		return refuse(p, DROP, BAD_CRC);
	if (p->bytes < 20)
		return refuse(p, DROP, TRUNCATED);
	first = h[0];
	words = first >> 24;
	if (words >> 4 != 4)
		return refuse(p, DROP, BAD_VERSION);
	words &= 15;
	if (words < 5)
		return refuse(p, DROP, BAD_HEADER_LENGTH);
	size = words << 2;
	if (size > p->bytes)
		return refuse(p, DROP, TRUNCATED);
	if (spine_checksum(h, words) != 0xFFFF)
		return refuse(p, DROP, BAD_CHECKSUM);
	total = first & 0xFFFF;
	if (total < size)
		return refuse(p, DROP, BAD_TOTAL_LENGTH);
	if (total > p->bytes)
		return refuse(p, DROP, TRUNCATED);
	source = h[3];
	target = h[4];
	if (r->special[source >> 24] | r->special[target >> 24]) {
		enum action a = special(p, source, target);

		if (a != NEXT)
			return a;
	}
	if (words > 5)
		return refuse(p, TO_HOST, OPTIONS);
	if (h[2] >> 24 < 2)
		return refuse(p, TO_HOST, TTL_EXPIRED);
	hop = spine_lookup(r, target);
	if (hop == NO_HOP)
		return refuse(p, TO_HOST, NO_ROUTE);
	next = r->hops + 2 * hop;
	p->hop = next[0];
	p->peer = next[1];
	if (p->peer == spine.card && !r->own_wire)
		return refuse(p, TO_HOST, OWN_WIRE);
	if (r->mtu && total > r->mtu)
		return refuse(p, TO_HOST, TOO_LONG);
	/* One from the TTL, and so 0x100 to the checksum, with the carry brought
	 * round (RFC 1624): both are in one word. */
	{
		u32 w = h[2] - 0x01000000, sum = (w & 0xFFFF) + 0x100;

		sum = (sum & 0xFFFF) + (sum >> 16);
		/* Of the two forms of zero, the one that a fresh sum would have. */
		if (sum == 0xFFFF)
			sum = 0;
		h[2] = (w & 0xFFFF0000) | sum;
	}
	return FORWARD;
}
