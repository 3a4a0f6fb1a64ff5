// SPDX-License-Identifier: GPL-2.0
/*
 * Everything a program can call, while the host lies to the driver. Whatever comes back is a result or an error that programs
 * know; nobody hangs.
 *
 * usage: garbage [rounds]
 */
#include "device.h"

#define LAST_ERRNO 133 /* EHWPOISON; the kernel's own numbers come after */

static unsigned int calls, strange;

/* Takes a call's result into account: 0 and up, or -1 with an errno for programs. */
static long seen(long ret, const char *what)
{
	calls++;
	if (ret >= 0 || (ret == -1 && errno > 0 && errno <= LAST_ERRNO))
		return ret;
	strange++;
	tap_note("%s: %ld, errno %d", what, ret, errno);
	return -1;
}

static void use(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct vgpu_ioc_buffer buffer = { .bytes = 4 * PAGE };
	struct vgpu_ioc_wait wait = { .timeout_ms = 10 };
	struct vgpu_status status;
	struct vgpu_ioc_info info;
	char *map;

	if (!seen(ioctl(fd, VGPU_IOC_INFO, &info), "INFO") &&
	    (strnlen(info.name, sizeof(info.name)) == sizeof(info.name) || info.mbz)) {
		strange++;
		tap_note("INFO: a name without end, or padding that is not zero");
	}
	seen(ioctl(fd, VGPU_IOC_STATUS, &status), "STATUS");
	seen(ioctl(fd, VGPU_IOC_KICK), "KICK");
	seen(ioctl(fd, VGPU_IOC_WAIT, &wait), "WAIT");
	map = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map != MAP_FAILED) {
		map[PAGE - 1] = 1;
		munmap(map, PAGE);
	}
	if (!seen(ioctl(fd, VGPU_IOC_BUFFER_ALLOC, &buffer), "BUFFER_ALLOC")) {
		map = buffer_map(fd, &buffer, 4 * PAGE);
		if (map != MAP_FAILED)
			map[4 * PAGE - 1] = 1;
		buffer.mmap_offset = 0;
		seen(ioctl(fd, VGPU_IOC_BUFFER_FREE, &buffer), "BUFFER_FREE");
		if (map != MAP_FAILED)
			munmap(map, 4 * PAGE);
	}
	seen(poll(&p, 1, 10), "poll");
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 3;

	tap_begin();
	alarm(100);
	for (int i = 0; i < rounds; i++) {
		int fd = (int)seen(device_open(), "open");

		if (fd < 0)
			continue;
		use(fd);
		seen(close(fd), "close");
	}
	tap_ok(!strange, "%u calls, %u with results that no program knows", calls, strange);
	tap_end();
}
