// SPDX-License-Identifier: GPL-2.0-only
/* Buffers of a channel: memory that the guest program and the host share. */
#include <linux/slab.h>
#include <linux/wait.h>

#include "vgpu.h"

#define VGPU_BUFFER_FREE_WAIT (10 * HZ)

/**
 * vgpu_buffer_prepare() - a buffer that nobody knows of yet
 * @channel: its channel
 * @bytes: page aligned, up to VGPU_BUFFER_MAX_BYTES
 *
 * Return: the buffer with its number, for vgpu_buffer_publish() or vgpu_buffer_discard(), or an
 * ERR_PTR().
 */
struct vgpu_buffer *vgpu_buffer_prepare(struct vgpu_channel *channel, u64 bytes)
{
	struct vgpu_buffer *buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	int ret;

	if (!buffer)
		return ERR_PTR(-ENOMEM);
	buffer->mem = vgpu_mem_alloc(channel->vgpu, channel->user, bytes);
	if (IS_ERR(buffer->mem)) {
		ret = PTR_ERR(buffer->mem);
		goto free;
	}
	ret = xa_alloc(&channel->buffers, &buffer->id, NULL, XA_LIMIT(1, VGPU_MAX_BUFFERS),
		       GFP_KERNEL_ACCOUNT);
	if (ret) {
		vgpu_mem_put(buffer->mem);
		goto free;
	}
	buffer->mem->cookie = buffer->id;
	return buffer;
free:
	kfree(buffer);
	return ERR_PTR(ret == -EBUSY ? -ENOMEM : ret);
}

/* The host does not know the buffer. */
void vgpu_buffer_discard(struct vgpu_channel *channel, struct vgpu_buffer *buffer)
{
	xa_erase(&channel->buffers, buffer->id);
	vgpu_mem_put(buffer->mem);
	kfree(buffer);
}

/**
 * vgpu_buffer_publish() - make a buffer known to the host, then to the channel's other threads
 * @channel: its channel
 * @buffer: afterwards it may be freed at any time; in case of an error it is
 *
 * Return: 0 or a negative errno.
 */
int vgpu_buffer_publish(struct vgpu_channel *channel, struct vgpu_buffer *buffer)
{
	int srcu, ret;

	ret = vgpu_channel_enter(channel, &srcu);
	if (!ret) {
		ret = vgpu_ctrl_command(channel->vgpu, VGPU_CTRL_BUFFER_ADD, channel->index,
					buffer->id, buffer->mem);
		vgpu_leave(channel->vgpu, srcu);
		/* A host that fell silent may have it: it stays until the file is closed. */
		if (!ret || ret == -ENODEV) {
			/* The entry exists, so this needs no memory. */
			xa_store(&channel->buffers, buffer->id, buffer, GFP_KERNEL_ACCOUNT);
			return ret;
		}
	}
	vgpu_buffer_discard(channel, buffer);
	return ret;
}

static bool vgpu_buffer_acked(struct vgpu_channel *channel)
{
	return (s32)(READ_ONCE(channel->slot->acks) - channel->removes) >= 0;
}

/* Tells the host to let go, once, and waits. Acknowledgements are counted, not named. */
static int vgpu_buffer_revoke(struct vgpu_channel *channel, struct vgpu_buffer *buffer)
{
	long left;
	int srcu, ret;

	lockdep_assert_held(&channel->free_lock);
	ret = vgpu_channel_enter(channel, &srcu);
	if (ret)
		return ret;
	if (!buffer->removing)
		ret = vgpu_ctrl_command(channel->vgpu, VGPU_CTRL_BUFFER_REMOVE, channel->index,
					buffer->id, NULL);
	vgpu_leave(channel->vgpu, srcu);
	if (ret)
		return ret;
	channel->removes += !buffer->removing;
	buffer->removing = true;
	left = wait_event_killable_timeout(channel->slot->wait, vgpu_buffer_acked(channel) ||
					   vgpu_channel_lost(channel), VGPU_BUFFER_FREE_WAIT);
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
 * Return: 0, or -ENOENT, -EIO (lost), -ENODEV, -EINTR, -ETIMEDOUT (may be tried again).
 */
int vgpu_buffer_free(struct vgpu_channel *channel, u32 id)
{
	struct vgpu_buffer *buffer;
	int ret = mutex_lock_killable(&channel->free_lock);

	if (ret)
		return ret;
	buffer = xa_load(&channel->buffers, id);
	ret = buffer ? vgpu_buffer_revoke(channel, buffer) : -ENOENT;
	if (!ret) {
		xa_erase(&channel->buffers, id);
		vgpu_mem_release(buffer->mem);
		kfree(buffer);
	}
	mutex_unlock(&channel->free_lock);
	return ret;
}

/* A buffer's memory, referenced; NULL when there is no such buffer. */
struct vgpu_mem *vgpu_buffer_mem(struct vgpu_channel *channel, unsigned long id)
{
	struct vgpu_buffer *buffer;
	struct vgpu_mem *mem = NULL;

	xa_lock(&channel->buffers);
	buffer = xa_load(&channel->buffers, id);
	if (buffer) {
		mem = buffer->mem;
		kref_get(&mem->ref);
	}
	xa_unlock(&channel->buffers);
	return mem;
}
