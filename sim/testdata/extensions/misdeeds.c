/* An extension that breaks a rule of its call now and then: which one, and for
 * which packets, goes by the destination's last bits. */

#include "spine.h"

static volatile u32 deep;
static u32 seen;

static u32 recurse(u32 n)
{
	volatile u32 here[16];

	here[n & 15] = n;
	deep++;
	return recurse(n + 1) + here[(n + 1) & 15];
}

enum action spine_extension(struct packet *p)
{
	u32 *h = p->buffer + 1;

	seen++;
	switch (h[4] & 31) {
	case 0:			/* never comes back */
		for (;;)
			deep++;
	case 1:			/* stores into the run-time */
		spine.free.first = 0;
		break;
	case 2:			/* into address 0 */
		*(volatile u32 *)0 = 1;
		break;
	case 3:			/* starts an engine */
		DMA_CTR = 64;
		break;
	case 4:			/* uses up its stack */
		return recurse(1);
	case 5:			/* an address that is none */
		*(volatile u32 *)((u32)p->buffer + 2) = 1;
		break;
	case 6:			/* sends messages */
		spine_send(&spine.self, spine_free_buffer, p);
		break;
	case 7:			/* returns no action */
		return (enum action)77;
	case 8:			/* forwards by a card that is none */
		p->peer = 1000;
		return FORWARD;
	case 9:			/* no instruction */
		__asm__ volatile(".4byte 0xdfffffff");
		break;
	case 10:		/* spoils its packet's structure, which does no harm */
		p->next = (struct packet *)0x12345678;
		p->buffer = 0;
		p->bytes = 1;
		break;
	case 11:		/* writes over its caller's stack */
		for (u32 *s = (u32 *)&p, i = 0; i < 4096; i++)
			((volatile u32 *)s)[i] = 0xDEADBEEF;
		break;
	case 12:		/* jumps into the run-time's midst */
		((void (*)(void))((u32)spine_dispatch + 12))();
		break;
	case 13:		/* drops without a reason */
		return DROP;
	case 14:		/* its own memory and its packet are its own */
		MARK_3();
		h[3] ^= spine_checksum(h + 3, 1) & 0;
		break;
	}
	return NEXT;
}
