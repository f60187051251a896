/* A router filter: refuses packets by source network, protocol and port before
 * the router sees them. */

#include "spine.h"

struct rule {
	u32 source, mask;	/* from where */
	u32 protocol;		/* 0: any */
	u32 port;		/* the target's, for TCP and UDP; 0: any */
};

static const struct rule refused[] = {
	{ 0x0A000000, 0xFF000000, 0, 0 },	/* 10.0.0.0/8 */
	{ 0, 0, 6, 23 },			/* telnet */
};

static u32 dropped;

enum action spine_extension(struct packet *p)
{
	const u32 *h = p->buffer + 1;	/* behind the buffer's own word */
	u32 protocol = h[2] >> 16 & 0xFF;
	u32 ports = h[h[0] >> 24 & 15];

	for (u32 i = 0; i < sizeof refused / sizeof *refused; i++) {
		const struct rule *r = &refused[i];

		if ((h[3] & r->mask) != r->source)
			continue;
		if (r->protocol && r->protocol != protocol)
			continue;
		if (r->port && r->port != (ports & 0xFFFF))
			continue;
		MARK_0();
		dropped++;
		p->why = LOCAL;
		return DROP;
	}
	return NEXT;
}
