/* Multiplication, which the processor has no instruction for. Compiled code
 * calls these by the names that compilers agree on. */

unsigned __mulsi3(unsigned a, unsigned b)
{
	unsigned sum = 0;

	/* One round a bit of the smaller factor. */
	if (a < b) {
		unsigned t = a;
		a = b;
		b = t;
	}
	while (b) {
		if (b & 1)
			sum += a;
		a <<= 1;
		b >>= 1;
	}
	return sum;
}

/* The whole product of two words. */
static unsigned long long widen(unsigned a, unsigned b)
{
	unsigned low = 0, high = 0, over = 0;

	while (b) {
		if (b & 1) {
			low += a;
			high += over + (low < a);
		}
		over = over << 1 | a >> 31;
		a <<= 1;
		b >>= 1;
	}
	return (unsigned long long)high << 32 | low;
}

unsigned long long __muldi3(unsigned long long a, unsigned long long b)
{
	unsigned alow = a, ahigh = a >> 32, blow = b, bhigh = b >> 32;
	unsigned long long p = widen(alow, blow);
	unsigned high = p >> 32;

	/* What would lie beyond 64 bits is lost. */
	if (ahigh)
		high += __mulsi3(ahigh, blow);
	if (bhigh)
		high += __mulsi3(bhigh, alow);
	return (unsigned long long)high << 32 | (unsigned)p;
}
