/* The memory functions that compilers call for structures and initial values.
 * Words are moved where both ends are aligned alike. */

typedef unsigned size;
typedef unsigned char u8;

void *memcpy(void *to, const void *from, size n)
{
	u8 *d = to;
	const u8 *s = from;

	if ((((unsigned)d ^ (unsigned)s) & 3) == 0) {
		for (; n && ((unsigned)d & 3); n--)
			*d++ = *s++;
		for (; n >= 4; n -= 4, d += 4, s += 4)
			*(unsigned *)d = *(const unsigned *)s;
	}
	while (n--)
		*d++ = *s++;
	return to;
}

void *memmove(void *to, const void *from, size n)
{
	u8 *d = to;
	const u8 *s = from;

	if ((unsigned)d - (unsigned)s >= n)
		return memcpy(to, from, n);
	d += n;
	s += n;
	if ((((unsigned)d ^ (unsigned)s) & 3) == 0) {
		for (; n && ((unsigned)d & 3); n--)
			*--d = *--s;
		for (; n >= 4; n -= 4) {
			d -= 4;
			s -= 4;
			*(unsigned *)d = *(const unsigned *)s;
		}
	}
	while (n--)
		*--d = *--s;
	return to;
}

void *memset(void *to, int c, size n)
{
	u8 *d = to;
	unsigned word = (c & 0xFF) | (c & 0xFF) << 8;

	word |= word << 16;
	for (; n && ((unsigned)d & 3); n--)
		*d++ = c;
	for (; n >= 4; n -= 4, d += 4)
		*(unsigned *)d = word;
	while (n--)
		*d++ = c;
	return to;
}

int memcmp(const void *a, const void *b, size n)
{
	const u8 *p = a, *q = b;

	for (; n; n--, p++, q++)
		if (*p != *q)
			return *p - *q;
	return 0;
}
