/* Division, which the processor has no instruction for: one bit of the quotient
 * a round. Dividing by zero gives a quotient of all ones and leaves the
 * dividend as remainder. */

typedef unsigned long long u64;

unsigned __udivsi3(unsigned n, unsigned d)
{
	unsigned rest = 0;

	for (int i = 0; i < 32; i++) {
		unsigned out = rest >> 31;

		rest = rest << 1 | n >> 31;
		n <<= 1;
		if (out | (rest >= d)) {
			rest -= d;
			n |= 1;
		}
	}
	return n;
}

unsigned __umodsi3(unsigned n, unsigned d)
{
	unsigned rest = 0;

	for (int i = 0; i < 32; i++) {
		unsigned out = rest >> 31;

		rest = rest << 1 | n >> 31;
		n <<= 1;
		if (out | (rest >= d))
			rest -= d;
	}
	return rest;
}

int __divsi3(int n, int d)
{
	unsigned q = __udivsi3(n < 0 ? -(unsigned)n : n, d < 0 ? -(unsigned)d : d);

	return (n ^ d) < 0 ? -q : q;
}

int __modsi3(int n, int d)
{
	unsigned r = __umodsi3(n < 0 ? -(unsigned)n : n, d < 0 ? -(unsigned)d : d);

	return n < 0 ? -r : r;
}

static u64 divide(u64 n, u64 d, u64 *left)
{
	unsigned high = n >> 32, low = n;
	u64 rest = 0;

	for (int i = 0; i < 64; i++) {
		unsigned out = rest >> 63;

		rest = rest << 1 | high >> 31;
		high = high << 1 | low >> 31;
		low <<= 1;
		if (out | (rest >= d)) {
			rest -= d;
			low |= 1;
		}
	}
	*left = rest;
	return (u64)high << 32 | low;
}

u64 __udivdi3(u64 n, u64 d)
{
	u64 rest;

	return divide(n, d, &rest);
}

u64 __umoddi3(u64 n, u64 d)
{
	u64 rest;

	divide(n, d, &rest);
	return rest;
}

long long __divdi3(long long n, long long d)
{
	u64 q = __udivdi3(n < 0 ? -(u64)n : n, d < 0 ? -(u64)d : d);

	return (n ^ d) < 0 ? -q : q;
}

long long __moddi3(long long n, long long d)
{
	u64 r = __umoddi3(n < 0 ? -(u64)n : n, d < 0 ? -(u64)d : d);

	return n < 0 ? -r : r;
}
