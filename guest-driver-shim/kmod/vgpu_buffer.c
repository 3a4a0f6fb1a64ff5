// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers of a channel: memory that the guest program and the host share. Whoever takes an entry
 * out of the array has its reference.
 */
#include <linux/wait.h>

#include "vgpu.h"

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

void vgpu_buffer_forget(struct vgpu_channel *channel, u32 id)
{
	xa_erase(&channel->buffers, id);
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
	int ret = vgpu_ctrl_announce(channel, VGPU_CTRL_BUFFER_ADD, id, mem);
	bool kept = false;

	/* A host that fell silent may have it: it stays as long as the channel's own memory does. */
	if (!ret || ret == -ENODEV) {
		xa_lock(&channel->buffers);
		kept = channel->area;
		if (kept) {
			/* The entry exists, so this needs no memory. */
			mem->cookie = id;
			__xa_store(&channel->buffers, id, mem, GFP_ATOMIC);
		}
		xa_unlock(&channel->buffers);
		/* The host has let go of the channel meanwhile. */
		if (!kept && !ret)
			ret = -EIO;
	}
	if (!kept) {
		vgpu_buffer_forget(channel, id);
		vgpu_mem_release(mem);
	}
	return ret;
}

static bool vgpu_buffer_acked(struct vgpu_channel *channel)
{
	u32 acks;

	if (vgpu_channel_enter(channel))
		return true;
	acks = vgpu_ctrl_news(channel->vgpu, channel->index).acks;
	vgpu_leave(channel->vgpu);
	return (s32)(acks - channel->removes) >= 0;
}

/* Tells the host to let go, once, and waits. Acknowledgements are counted, not named. */
static int vgpu_buffer_revoke(struct vgpu_channel *channel, u32 id)
{
	long left;
	int ret;

	lockdep_assert_held(&channel->free_lock);
	ret = vgpu_channel_enter(channel);
	if (ret)
		return ret;
	if (!xa_load(&channel->buffers, id)) {
		ret = -ENOENT;
	} else if (!xa_get_mark(&channel->buffers, id, VGPU_REMOVING)) {
		ret = vgpu_ctrl_command(channel->vgpu, VGPU_CTRL_BUFFER_REMOVE, channel->index, id);
		if (!ret) {
			channel->removes++;
			xa_set_mark(&channel->buffers, id, VGPU_REMOVING);
		}
	}
	vgpu_leave(channel->vgpu);
	if (ret)
		return ret;
	left = wait_event_freezable_timeout(channel->wait, vgpu_buffer_acked(channel),
					    VGPU_BUFFER_FREE_WAIT);
	if (left < 0)
		return left;
	if (vgpu_channel_lost(channel))
		return -EIO;
	return left ? 0 : -ETIMEDOUT;
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
	int ret = mutex_lock_interruptible(&channel->free_lock);

	if (ret)
		return -ERESTARTSYS;
	ret = vgpu_buffer_revoke(channel, id);
	if (!ret)
		mem = xa_erase(&channel->buffers, id);
	mutex_unlock(&channel->free_lock);
	if (mem)
		vgpu_mem_release(mem);
	return ret;
}

/* A buffer's memory, referenced; NULL when there is no such buffer. */
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

/* The host has let go of them all. */
void vgpu_buffers_give_back(struct vgpu_channel *channel)
{
	struct vgpu_mem *mem;
	unsigned long id;

	xa_for_each(&channel->buffers, id, mem)
		if (xa_cmpxchg(&channel->buffers, id, mem, NULL, 0) == mem)
			vgpu_mem_release(mem);
}
