// SPDX-License-Identifier: GPL-2.0
/* Buffers of a channel: memory that the guest program and the host share. */
#include <linux/slab.h>
#include <linux/wait.h>

#include "vgpu.h"

static int vgpu_buffer_charge(struct vgpu_channel *channel, u64 bytes)
{
	struct vgpu_dev *vgpu = channel->vgpu;

	if (atomic_inc_return(&channel->buffer_count) > VGPU_MAX_BUFFERS)
		goto too_many;
	if (atomic64_add_return(bytes, &vgpu->pinned_bytes) > vgpu->max_pinned_bytes)
		goto too_large;
	return 0;
too_large:
	atomic64_sub(bytes, &vgpu->pinned_bytes);
too_many:
	atomic_dec(&channel->buffer_count);
	return -ENOMEM;
}

static void vgpu_buffer_uncharge(struct vgpu_channel *channel, u64 bytes)
{
	atomic64_sub(bytes, &channel->vgpu->pinned_bytes);
	atomic_dec(&channel->buffer_count);
}

/* Makes the buffer known to the host, then to this channel's other threads. */
static int vgpu_buffer_add(struct vgpu_channel *channel, struct vgpu_buffer *buffer)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	int ret = xa_alloc(&channel->buffers, &buffer->id, NULL, XA_LIMIT(1, INT_MAX), GFP_KERNEL_ACCOUNT);

	if (ret)
		return ret;
	ret = vgpu_ctrl_command(vgpu, VGPU_CTRL_BUFFER_ADD, channel->index, buffer->id, buffer->mem);
	if (ret) {
		xa_erase(&channel->buffers, buffer->id);
		return ret;
	}
	xa_store(&channel->buffers, buffer->id, buffer, GFP_KERNEL_ACCOUNT);
	return 0;
}

int vgpu_buffer_alloc(struct vgpu_channel *channel, struct vgpu_ioc_buffer *arg)
{
	struct vgpu_buffer *buffer;
	int ret;

	if (!arg->bytes || !PAGE_ALIGNED(arg->bytes) || arg->bytes > VGPU_BUFFER_MAX_BYTES || arg->buffer || arg->mbz)
		return -EINVAL;
	ret = vgpu_buffer_charge(channel, arg->bytes);
	if (ret)
		return ret;
	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	if (!buffer) {
		ret = -ENOMEM;
		goto uncharge;
	}
	buffer->mem = vgpu_mem_alloc(&channel->vgpu->pdev->dev, arg->bytes);
	if (IS_ERR(buffer->mem)) {
		ret = PTR_ERR(buffer->mem);
		goto free;
	}
	ret = vgpu_buffer_add(channel, buffer);
	if (ret)
		goto put;
	arg->buffer = buffer->id;
	arg->mmap_offset = (u64)buffer->id << VGPU_BUFFER_SHIFT;
	return 0;
put:
	if (ret == -ENODEV)
		vgpu_mem_get(buffer->mem); /* as in vgpu_channel_create() */
	else
		vgpu_mem_dma_unmap(buffer->mem);
	vgpu_mem_put(buffer->mem);
free:
	kfree(buffer);
uncharge:
	vgpu_buffer_uncharge(channel, arg->bytes);
	return ret;
}

/* Tells the host to let go, once, and waits for it. */
static int vgpu_buffer_revoke(struct vgpu_channel *channel, struct vgpu_buffer *buffer)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	long left;
	int ret;

	if (!buffer->removing) {
		ret = vgpu_ctrl_command(vgpu, VGPU_CTRL_BUFFER_REMOVE, channel->index, buffer->id, NULL);
		if (ret)
			return ret;
		buffer->removing = true;
		channel->removes++;
	}
	left = wait_event_killable_timeout(
		vgpu->wait,
		(s32)(vgpu_ctrl_buffer_ack(vgpu, channel->index) - channel->removes) >= 0 || READ_ONCE(channel->lost),
		msecs_to_jiffies(VGPU_BUFFER_FREE_MS));
	if (left < 0)
		return left;
	if (READ_ONCE(channel->lost))
		return -EIO;
	return left ? 0 : -ETIMEDOUT;
}

int vgpu_buffer_free(struct vgpu_channel *channel, const struct vgpu_ioc_buffer *arg)
{
	struct vgpu_buffer *buffer;
	int ret;

	if (!arg->buffer || arg->buffer > INT_MAX || arg->mbz)
		return -EINVAL;
	ret = mutex_lock_killable(&channel->buffer_lock);
	if (ret)
		return ret;
	buffer = xa_load(&channel->buffers, arg->buffer);
	ret = buffer ? vgpu_buffer_revoke(channel, buffer) : -ENOENT;
	if (!ret) {
		xa_erase(&channel->buffers, buffer->id);
		vgpu_mem_dma_unmap(buffer->mem);
		vgpu_buffer_uncharge(channel, buffer->mem->bytes);
		vgpu_mem_put(buffer->mem);
		kfree(buffer);
	}
	mutex_unlock(&channel->buffer_lock);
	return ret;
}

struct vgpu_mem *vgpu_buffer_mem(struct vgpu_channel *channel, u64 id)
{
	struct vgpu_buffer *buffer;
	struct vgpu_mem *mem = NULL;

	if (id > INT_MAX)
		return NULL;
	xa_lock(&channel->buffers);
	buffer = xa_load(&channel->buffers, id);
	if (buffer) {
		mem = buffer->mem;
		vgpu_mem_get(mem);
	}
	xa_unlock(&channel->buffers);
	return mem;
}
