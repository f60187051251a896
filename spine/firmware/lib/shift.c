/* The shift of two words that compiled code does not do in line. */

long long __ashrdi3(long long v, int by)
{
	int high = v >> 32;
	unsigned low = v;

	if (by >= 32)
		return (long long)(high >> 31) << 32 | (unsigned)(high >> (by - 32));
	if (by)
		low = low >> by | (unsigned)high << (32 - by);
	return (long long)(high >> by) << 32 | low;
}
