/* A load balancer: packets for one service address go to one of several
 * servers, the same for all packets of a flow. The header's checksum is
 * corrected for the changed address. */

#include "spine.h"

#define SERVICE 0xC6120A01u	/* 198.18.10.1 */

static const u32 servers[] = { 0xC6120B01u, 0xC6120B02u, 0xC6120B03u, 0xC6120B04u };

static u32 fold(u32 sum)
{
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (sum & 0xFFFF) + (sum >> 16);
}

enum action spine_extension(struct packet *p)
{
	u32 *h = p->buffer + 1;
	u32 hash, to, sum;

	if (h[4] != SERVICE)
		return NEXT;
	hash = h[3] ^ h[h[0] >> 24 & 15];
	hash ^= hash >> 16;
	hash ^= hash >> 8;
	to = servers[hash & 3];
	/* RFC 1624: the sum loses the old halves and gains the new ones. */
	sum = (~h[2] & 0xFFFF) + (~h[4] >> 16) + (~h[4] & 0xFFFF) + (to >> 16) + (to & 0xFFFF);
	h[2] = (h[2] & 0xFFFF0000) | (~fold(sum) & 0xFFFF);
	h[4] = to;
	MARK_2();
	return NEXT;
}
