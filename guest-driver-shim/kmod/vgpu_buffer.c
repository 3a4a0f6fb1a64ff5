// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers of a channel: memory that the guest program and the host share. Number 0 is its rings.
 * The array owns a reference to each of its buffers; removing an entry hands that reference over.
 */
#include "vgpu.h"

/* The cookies for mmap() fit into a 32-bit offset. The host takes no more per channel either. */
#define VGPU_MAX_BUFFERS 4096
#define VGPU_BUFFER_FREE_WAIT (10 * HZ)

/**
 * vgpu_buffer_number() - a number for a buffer that nobody knows of yet
 * @channel: its channel
 * @id: the number, for vgpu_buffer_add() or vgpu_buffer_forget()
 *
 * Return: 0 or -ENOMEM.
 */
int vgpu_buffer_number(struct vgpu_channel *channel, u32 *id)
{
	int ret = xa_alloc(&channel->buffers, id, NULL, XA_LIMIT(1, VGPU_MAX_BUFFERS),
			   GFP_KERNEL_ACCOUNT);

	return ret == -EBUSY ? -ENOMEM : ret;
}

/**
 * vgpu_buffer_forget() - the host has never heard of a buffer, or has refused it
 * @channel: its channel
 * @id: its number
 * @mem: its memory; the caller's reference is gone afterwards
 */
void vgpu_buffer_forget(struct vgpu_channel *channel, u32 id, struct vgpu_mem *mem)
{
	xa_erase(&channel->buffers, id);
	vgpu_mem_release(mem);
}

/**
 * vgpu_buffer_put() - make memory a buffer that the host has not heard of yet
 * @channel: its channel
 * @mem: its memory; the caller's reference is gone afterwards
 * @id: its number
 *
 * Return: 0, or -ENOMEM: the memory has been given back.
 */
int vgpu_buffer_put(struct vgpu_channel *channel, struct vgpu_mem *mem, u32 id)
{
	int ret = xa_err(xa_store(&channel->buffers, id, mem, GFP_KERNEL_ACCOUNT));

	mem->cookie = id;
	if (ret)
		vgpu_mem_release(mem);
	return ret;
}

/**
 * vgpu_buffer_add() - make a buffer known to the host, then to the channel's other threads
 * @channel: its channel
 * @mem: its memory; the caller's reference is gone afterwards
 * @id: its number; it may be freed at any time. In case of an error it is
 *
 * Return: 0 or a negative errno.
 */
int vgpu_buffer_add(struct vgpu_channel *channel, struct vgpu_mem *mem, u32 id)
{
	int ret = vgpu_channel_announce(channel, VGPU_CTRL_BUFFER_ADD, id, mem);
	bool kept = false;

	/* A host that did not answer may have it: it stays as long as the channel's rings do. */
	if (!ret || ret == -ENODEV) {
		mem->cookie = id;
		xa_lock(&channel->buffers);
		kept = xa_load(&channel->buffers, 0);
		if (kept) /* the entry exists, so this needs no memory */
			__xa_store(&channel->buffers, id, mem, GFP_ATOMIC);
		xa_unlock(&channel->buffers);
	}
	if (kept)
		return ret;
	vgpu_buffer_forget(channel, id, mem);
	/* The host may have let go of the channel meanwhile. */
	return ret ? ret : -EIO;
}

/* 1: yes, 0: not yet, or as vgpu_channel_enter() */
static int vgpu_buffer_acked(struct vgpu_channel *channel)
{
	int ret = vgpu_channel_enter(channel);
	u32 acks;

	if (ret)
		return ret;
	acks = vgpu_ctrl_news(channel->vgpu, channel->index).acks;
	vgpu_leave(channel->vgpu);
	return (s32)(acks - channel->removes) >= 0;
}

/* Tells the host to let go, once. Acknowledgements are counted, not named. Inside vgpu_enter(). */
static int vgpu_buffer_remove(struct vgpu_channel *channel, u32 id)
{
	int ret;

	lockdep_assert_held(&channel->free_lock);
	if (!xa_load(&channel->buffers, id))
		return -ENOENT;
	if (xa_get_mark(&channel->buffers, id, VGPU_REMOVING))
		return 0;
	ret = vgpu_ctrl_command(channel->vgpu, VGPU_CTRL_BUFFER_REMOVE, channel->index, id);
	if (ret)
		return ret;
	channel->removes++;
	xa_set_mark(&channel->buffers, id, VGPU_REMOVING);
	return 0;
}

static int vgpu_buffer_revoke(struct vgpu_channel *channel, u32 id)
{
	int ret = vgpu_channel_enter(channel);
	long left;

	if (ret)
		return ret;
	ret = vgpu_buffer_remove(channel, id);
	vgpu_leave(channel->vgpu);
	if (ret)
		return ret;
	left = wait_event_freezable_timeout(channel->wait, (ret = vgpu_buffer_acked(channel)),
					    VGPU_BUFFER_FREE_WAIT);
	if (left < 0)
		return left;
	return left ? min(ret, 0) : -ETIMEDOUT;
}

/**
 * vgpu_buffer_free() - take a buffer back from the host
 * @channel: its channel
 * @id: its number
 *
 * Its pages are freed when nobody has them mapped any more.
 *
 * Return: 0, or -ENOENT, -EIO (lost), -ENODEV, -ERESTARTSYS, -ETIMEDOUT (may be tried again).
 */
int vgpu_buffer_free(struct vgpu_channel *channel, u32 id)
{
	struct vgpu_mem *mem = NULL;
	int ret;

	if (mutex_lock_interruptible(&channel->free_lock))
		return -ERESTARTSYS;
	ret = vgpu_buffer_revoke(channel, id);
	if (!ret)
		mem = xa_erase(&channel->buffers, id);
	mutex_unlock(&channel->free_lock);
	if (mem)
		vgpu_mem_release(mem);
	return ret;
}

/**
 * vgpu_buffer_mem() - a buffer's memory
 * @channel: its channel
 * @id: its number
 *
 * Return: the memory with a reference; NULL when there is no such buffer.
 */
struct vgpu_mem *vgpu_buffer_mem(struct vgpu_channel *channel, unsigned long id)
{
	struct vgpu_mem *mem;

	xa_lock(&channel->buffers);
	mem = xa_load(&channel->buffers, id);
	if (mem)
		kref_get(&mem->ref);
	xa_unlock(&channel->buffers);
	return mem;
}

/**
 * vgpu_buffers_give_back() - the host has let go of all the channel's memory
 * @channel: the channel; first the rings go, then nothing is added
 */
void vgpu_buffers_give_back(struct vgpu_channel *channel)
{
	struct vgpu_mem *mem;
	unsigned long id;

	xa_for_each(&channel->buffers, id, mem)
		if (xa_cmpxchg(&channel->buffers, id, mem, NULL, 0) == mem)
			vgpu_mem_release(mem);
}
