// SPDX-License-Identifier: GPL-2.0
/* The data path: a channel answers, interrupts wake its program, and buffers hold what the host and the program wrote. */
#include "ring.h"

#define BUFFER_BYTES (3 * MIB)
#define PATIENCE 30.0

static void fill(uint32_t *words, size_t count, uint32_t seed)
{
	for (size_t i = 0; i < count; i++)
		words[i] = seed + (uint32_t)i * 2654435761u;
}

static bool holds(const uint32_t *words, size_t count, uint32_t seed)
{
	for (size_t i = 0; i < count; i++)
		if (words[i] != seed + (uint32_t)i * 2654435761u)
			return false;
	return true;
}

/* Copies `bytes` from one pinned buffer to the device and back into another. */
static int copy_through_device(struct ring *ring, uint32_t from, uint32_t to, uint64_t bytes)
{
	struct vgpu_cqe done;
	uint64_t address;
	int ret = ring_run(ring, (struct vgpu_sqe){ .op = VGPU_OP_MEM_ALLOC, .args = { bytes } }, &done, PATIENCE);

	if (ret)
		return ret;
	address = done.value[0];
	ret = ring_run(ring, (struct vgpu_sqe){ .op = VGPU_OP_BUF_IN, .args = { address, from, 0, bytes } }, &done, PATIENCE);
	if (!ret)
		ret = ring_run(ring, (struct vgpu_sqe){ .op = VGPU_OP_BUF_OUT, .args = { address, to, 0, bytes } }, &done,
			       PATIENCE);
	if (!ret)
		ret = ring_run(ring, (struct vgpu_sqe){ .op = VGPU_OP_MEM_FREE, .args = { address } }, &done, PATIENCE);
	return ret;
}

static void test_buffers(struct ring *ring)
{
	struct vgpu_ioc_buffer from, to;
	int ret = buffer_alloc(ring->fd, BUFFER_BYTES, &from);
	uint32_t *in, *out;

	if (!ret)
		ret = buffer_alloc(ring->fd, BUFFER_BYTES, &to);
	if (!tap_ok(!ret, "two buffers of 3 MiB: %s", strerror(ret)))
		return;
	in = buffer_map(ring->fd, &from, BUFFER_BYTES);
	out = buffer_map(ring->fd, &to, BUFFER_BYTES);
	if (!tap_ok(in != MAP_FAILED && out != MAP_FAILED, "both are mapped"))
		return;
	tap_ok(holds(out, 0, 0) && out[0] == 0 && out[BUFFER_BYTES / 4 - 1] == 0, "a new buffer is zero");
	fill(in, BUFFER_BYTES / 4, 7);
	ret = copy_through_device(ring, from.buffer, to.buffer, BUFFER_BYTES);
	tap_ok(!ret, "the device copies one into the other (%d)", ret);
	tap_ok(holds(out, BUFFER_BYTES / 4, 7), "what arrived is what was sent");
	munmap(in, BUFFER_BYTES);
	munmap(out, BUFFER_BYTES);
	ret = buffer_free(ring->fd, from.buffer);
	tap_ok(!ret, "the first is freed: %s", strerror(ret));
	ret = buffer_free(ring->fd, from.buffer);
	tap_ok(ret == ENOENT, "a second time there is none: %s", strerror(ret));
	ret = buffer_free(ring->fd, to.buffer);
	tap_ok(!ret, "the second is freed: %s", strerror(ret));
}

int main(void)
{
	struct ring ring;
	int ret;

	tap_begin();
	ret = ring_open(&ring);
	if (!tap_ok(!ret, "a channel opens: %s", strerror(ret)))
		tap_end();
	for (int i = 0; i < 3 && !ret; i++)
		ret = ring_nop(&ring, PATIENCE);
	tap_ok(!ret, "it answers three times, and the interrupt wakes poll() (%d)", ret);
	if (!ret)
		test_buffers(&ring);
	ring_close(&ring);
	tap_end();
}
