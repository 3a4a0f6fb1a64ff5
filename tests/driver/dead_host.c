// SPDX-License-Identifier: GPL-2.0
/*
 * The host is gone. Opens fail at once and keep no memory.
 *
 * usage: dead_host [opens]
 */
#include "device.h"

int main(int argc, char **argv)
{
	unsigned int opens = argc > 1 ? (unsigned int)atoi(argv[1]) : 100, opened = 0;
	int64_t before, after;
	double worst = 0;
	int error = 0;

	tap_begin();
	close(device_open()); /* the first one may find out that nobody answers */
	before = memory_available();
	for (unsigned int i = 0; i < opens; i++) {
		double start = now_s();
		int fd = device_open();

		if (fd < 0)
			error = errno;
		else
			close(fd);
		opened += fd >= 0;
		if (now_s() - start > worst)
			worst = now_s() - start;
	}
	tap_ok(!opened, "no channel opens (%u did)", opened);
	tap_ok(error == ENODEV, "the error says that there is no device: %s", strerror(error));
	tap_ok(worst < 2, "nobody waits for it: %.2f s at worst", worst);
	memory_returns(before - 8 * (int64_t)MIB, 5);
	after = memory_available();
	tap_ok(after >= before - 8 * (int64_t)MIB, "%u opens keep no memory: %lld KiB less", opens,
	       (long long)(before - after) / 1024);
	tap_end();
}
