#include "spine.h"

/* The one's complement sum of whole words, folded to 16 bits. */
u32 spine_checksum(const u32 *words, u32 count)
{
	u32 sum = 0;

	/* Halves apart, so that no carry is lost within 128 KB. */
	do {
		u32 w = *words++;

		sum += w & 0xFFFF;
		sum += w >> 16;
	} while (--count);
	sum = (sum & 0xFFFF) + (sum >> 16);
	return (sum & 0xFFFF) + (sum >> 16);
}
