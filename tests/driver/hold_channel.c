// SPDX-License-Identifier: GPL-2.0
/*
 * A program that has a channel and a mapped buffer when its device goes away. It waits in poll() for POLLHUP, gets errors from
 * then on, and its memory stays mapped.
 *
 * usage: hold_channel SECONDS
 */
#include "ring.h"

static bool is_gone(int error)
{
	return error == EIO || error == ENODEV;
}

/* A failed ioctl's errno, 0 when it works. */
static int info_error(int fd)
{
	struct vgpu_ioc_info info;

	return ioctl(fd, VGPU_IOC_INFO, &info) ? errno : 0;
}

static uint32_t lost_state(const struct ring *ring)
{
	return __atomic_load_n(&ring->header->state, __ATOMIC_SEQ_CST);
}

int main(int argc, char **argv)
{
	double end = now_s() + (argc > 1 ? atof(argv[1]) : 60);
	struct vgpu_ioc_buffer buffer, another;
	struct ring ring;
	short events = 0;
	volatile char *mapped;
	int error;

	tap_begin();
	error = ring_open(&ring);
	if (!error)
		error = ring_nop(&ring, 30);
	if (!error)
		error = buffer_alloc(ring.fd, 4 * MIB, &buffer);
	if (error)
		tap_bail("no channel with a buffer: %s", strerror(error));
	mapped = buffer_map(ring.fd, &buffer, 4 * MIB);
	if (mapped == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	mapped[0] = mapped[4 * MIB - 1] = 1;
	puts("holding");
	while (now_s() < end && !(events & POLLHUP)) {
		struct pollfd p = { .fd = ring.fd, .events = POLLIN };

		poll(&p, 1, (int)((end - now_s()) * 1000) + 1);
		events = p.revents;
	}
	tap_ok(events & POLLHUP, "poll() reports POLLHUP (0x%x)", (unsigned int)events);
	error = ioctl(ring.fd, VGPU_IOC_KICK) ? errno : 0;
	tap_ok(is_gone(error), "a doorbell: %s", strerror(error));
	error = buffer_alloc(ring.fd, PAGE, &another);
	tap_ok(is_gone(error), "a new buffer: %s", strerror(error));
	error = info_error(ring.fd);
	tap_ok(is_gone(error), "INFO: %s", strerror(error));
	mapped[1] = 2;
	tap_ok(mapped[1] == 2, "the buffer's memory is still there");
	tap_ok(mapped[0] == 1 && mapped[4 * MIB - 1] == 1, "with what the program has put there");
	for (int i = 0; i < 500 && lost_state(&ring) != VGPU_CHANNEL_LOST; i++)
		sleep_ms(10);
	tap_ok(lost_state(&ring) == VGPU_CHANNEL_LOST, "the channel's header says that it is lost (%u)", lost_state(&ring));
	error = buffer_free(ring.fd, buffer.buffer);
	tap_ok(!error || is_gone(error), "freeing the buffer: %s", strerror(error));
	munmap((void *)mapped, 4 * MIB);
	ring_close(&ring);
	tap_end();
}
