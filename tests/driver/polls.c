// SPDX-License-Identifier: GPL-2.0
/* poll() only looks: whoever asks is told of an event, as often as he asks, until VGPU_IOC_WAIT has answered it. */
#include "ring.h"

#include <sys/epoll.h>
#include <sys/select.h>

#define PATIENCE_MS 30000

/* One completion with its interrupt. */
static void event(struct ring *ring)
{
	struct pollfd p = { .fd = ring->fd, .events = POLLIN };

	ring_put(ring, (struct vgpu_sqe){ .op = VGPU_OP_NOP });
	__atomic_store_n(&ring->header->cq_need_wakeup, 1, __ATOMIC_SEQ_CST);
	if (device_kick(ring->fd) || poll(&p, 1, PATIENCE_MS) != 1 || !(p.revents & POLLIN))
		tap_bail("no event: %s, 0x%x", strerror(errno), (unsigned int)p.revents);
	ring->header->cq_head = ring->header->cq_tail;
}

/* All events so far are answered. */
static void answer(struct ring *ring)
{
	struct pollfd p = { .fd = ring->fd, .events = POLLIN };

	while (poll(&p, 1, 0) == 1) {
		ring->wait.timeout_ms = PATIENCE_MS;
		if (ioctl(ring->fd, VGPU_IOC_WAIT, &ring->wait))
			tap_bail("WAIT: %s", strerror(errno));
	}
}

static int watch(int fd)
{
	struct epoll_event wanted = { .events = EPOLLIN };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted);
	return epoll;
}

static bool hears(int epoll, int ms)
{
	struct epoll_event got;

	return epoll_wait(epoll, &got, 1, ms) == 1;
}

int main(void)
{
	struct timeval now = { 0, 0 };
	int early, late, again;
	struct ring ring;
	fd_set set;

	tap_begin();
	if (ring_open(&ring))
		tap_bail("no channel: %s", strerror(errno));
	early = watch(ring.fd);
	answer(&ring);
	tap_ok(!hears(early, 0), "without an event nobody hears of one");
	event(&ring);
	tap_ok(hears(early, PATIENCE_MS), "who watches hears of an event");
	late = watch(ring.fd);
	tap_ok(hears(late, PATIENCE_MS), "who begins to watch afterwards hears of it, too");
	tap_ok(hears(early, PATIENCE_MS), "and the first one again");
	FD_ZERO(&set);
	FD_SET(ring.fd, &set);
	again = select(ring.fd + 1, &set, NULL, NULL, &now);
	FD_SET(ring.fd, &set);
	again += select(ring.fd + 1, &set, NULL, NULL, &now);
	tap_ok(again == 2, "select() says so twice (%d)", again);
	answer(&ring);
	tap_ok(!hears(early, 0) && !hears(late, 0), "once VGPU_IOC_WAIT has answered it nobody does");
	event(&ring);
	tap_ok(hears(early, PATIENCE_MS) && hears(late, PATIENCE_MS), "both hear of the next one");
	ring_close(&ring);
	tap_end();
}
