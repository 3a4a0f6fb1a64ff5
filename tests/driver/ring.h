/* SPDX-License-Identifier: GPL-2.0 */
/* The rings of a channel, as far as tests of the driver need them: one operation at a time, waiting in poll(). */
#ifndef RING_H
#define RING_H

#include "device.h"

struct ring {
	int fd;
	void *area;
	size_t bytes;
	struct vgpu_channel_header *header;
	uint64_t seqno;
};

static inline int ring_open(struct ring *ring)
{
	struct vgpu_ioc_info info;

	memset(ring, 0, sizeof(*ring));
	ring->fd = device_open();
	if (ring->fd < 0)
		return errno;
	if (ioctl(ring->fd, VGPU_IOC_INFO, &info))
		goto fail;
	ring->bytes = info.channel_bytes;
	ring->area = mmap(NULL, ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	if (ring->area == MAP_FAILED)
		goto fail;
	ring->header = ring->area;
	return 0;
fail:
	close(ring->fd);
	return errno;
}

static inline void ring_close(struct ring *ring)
{
	munmap(ring->area, ring->bytes);
	close(ring->fd);
}

/* Writes the entry, without ringing. */
static inline uint64_t ring_put(struct ring *ring, struct vgpu_sqe entry)
{
	struct vgpu_sqe *ring_entries = (void *)((char *)ring->area + VGPU_CHANNEL_SQ_OFFSET);
	uint32_t tail = ring->header->sq_tail;

	entry.seqno = ++ring->seqno;
	entry.flags |= VGPU_SQE_WANT_COMPLETION;
	ring_entries[tail & (VGPU_SQ_ENTRIES - 1)] = entry;
	__atomic_store_n(&ring->header->sq_tail, tail + 1, __ATOMIC_SEQ_CST);
	return ring->seqno;
}

static inline bool ring_has_completion(const struct ring *ring)
{
	return __atomic_load_n(&ring->header->cq_tail, __ATOMIC_SEQ_CST) !=
	       __atomic_load_n(&ring->header->cq_head, __ATOMIC_SEQ_CST);
}

/* Takes the next completion; 0, ETIMEDOUT after `seconds`, EPIPE when poll() says that the channel is dead. */
static inline int ring_take(struct ring *ring, struct vgpu_cqe *completion, double seconds)
{
	struct vgpu_cqe *entries = (void *)((char *)ring->area + VGPU_CHANNEL_CQ_OFFSET);
	double end = now_s() + seconds;
	uint32_t head = ring->header->cq_head;
	int ret = 0;

	__atomic_store_n(&ring->header->cq_need_wakeup, 1, __ATOMIC_SEQ_CST);
	while (!ring_has_completion(ring)) {
		struct pollfd p = { .fd = ring->fd, .events = POLLIN };
		double left = end - now_s();

		if (left <= 0) {
			ret = ETIMEDOUT;
			break;
		}
		poll(&p, 1, (int)(left * 1000) + 1);
		if (p.revents & (POLLHUP | POLLERR)) {
			ret = EPIPE;
			break;
		}
		__atomic_store_n(&ring->header->cq_need_wakeup, 1, __ATOMIC_SEQ_CST);
	}
	__atomic_store_n(&ring->header->cq_need_wakeup, 0, __ATOMIC_SEQ_CST);
	if (ret)
		return ret;
	*completion = entries[head & (VGPU_CQ_ENTRIES - 1)];
	__atomic_store_n(&ring->header->cq_head, head + 1, __ATOMIC_SEQ_CST);
	return 0;
}

/* Runs one operation; 0, an errno, or 1000 + its CUresult. */
static inline int ring_run(struct ring *ring, struct vgpu_sqe entry, struct vgpu_cqe *completion, double seconds)
{
	int ret;

	ring_put(ring, entry);
	if (ioctl(ring->fd, VGPU_IOC_KICK))
		return errno;
	ret = ring_take(ring, completion, seconds);
	if (!ret && completion->status)
		ret = 1000 + (int)completion->status;
	return ret;
}

static inline int ring_nop(struct ring *ring, double seconds)
{
	struct vgpu_cqe completion;

	return ring_run(ring, (struct vgpu_sqe){ .op = VGPU_OP_NOP }, &completion, seconds);
}

#endif
