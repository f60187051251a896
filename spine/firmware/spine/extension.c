#include "spine.h"

/* Without an extension everything is left to the router. */
__attribute__((weak)) enum action spine_extension(struct packet *p)
{
	(void)p;
	return NEXT;
}
