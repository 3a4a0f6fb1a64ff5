// SPDX-License-Identifier: GPL-2.0-only
/* Channels: how they begin, how they end, and what ends them from outside. */
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "vgpu.h"

/* How long a silent host, or a process that ended before its file was closed, may go unnoticed. */
#define VGPU_WATCH_EVERY (HZ / 2)
/* How long a reset, suspend or removal waits for the host to end all channels. */
#define VGPU_STOP_WAIT (5 * HZ)
/* How often a channel that ends is looked at if no interrupt tells of it, and when it is said. */
#define VGPU_REAP_AGAIN HZ
#define VGPU_REAP_COMPLAIN (10 * HZ)

struct workqueue_struct *vgpu_reaper;

/* Has the host, a reset or the end of the device ended it? */
bool vgpu_channel_lost(struct vgpu_channel *channel)
{
	return READ_ONCE(channel->vgpu->epoch) != channel->epoch ||
	       READ_ONCE(channel->vgpu->state) != VGPU_RUNNING ||
	       READ_ONCE(channel->slot->state) != VGPU_CHANNEL_OPEN;
}

/* vgpu_enter() for a channel's file; -EIO when the channel is lost. */
int vgpu_channel_enter(struct vgpu_channel *channel, int *srcu)
{
	int ret = vgpu_enter(channel->vgpu, srcu);

	if (ret)
		return ret == -EAGAIN ? -EIO : ret;
	if (!vgpu_channel_lost(channel))
		return 0;
	vgpu_leave(channel->vgpu, *srcu);
	return -EIO;
}

/* ---- Beginning ---- */

static int vgpu_channel_take_slot(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	int ret = -EBUSY;

	mutex_lock(&vgpu->slot_lock);
	channel->index = find_first_zero_bit(vgpu->used, vgpu->max_channels);
	if (channel->index < vgpu->max_channels) {
		channel->slot = &vgpu->slots[channel->index];
		set_bit(channel->index, vgpu->used);
		ret = 0;
	}
	mutex_unlock(&vgpu->slot_lock);
	return ret;
}

/*
 * From here on nobody finds the channel in its slot. The slot itself is given back only when the
 * file is closed: until then those may sleep there who poll the file.
 *
 * Return: whether the file is closed.
 */
static bool vgpu_channel_give_slot(struct vgpu_channel *channel)
{
	bool closed;

	mutex_lock(&channel->vgpu->slot_lock);
	closed = !channel->mapping;
	channel->slot->channel = NULL;
	if (closed)
		clear_bit(channel->index, channel->vgpu->used);
	mutex_unlock(&channel->vgpu->slot_lock);
	return closed;
}

static void vgpu_channel_fill_header(struct vgpu_channel *channel)
{
	struct vgpu_channel_header *header = kmap_local_page(channel->area->pages[0]);

	BUILD_BUG_ON(sizeof(*header) > PAGE_SIZE);
	header->magic = cpu_to_le32(VGPU_MAGIC);
	header->abi_version = cpu_to_le32(channel->vgpu->info.abi_version);
	header->payload_bytes = cpu_to_le64(channel->area->bytes - VGPU_CHANNEL_PAYLOAD_OFFSET);
	kunmap_local(header);
}

/* Makes the channel known to the host. Its memory is the host's after 0 and after -ENODEV. */
static int vgpu_channel_announce(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	int srcu, ret;

	ret = vgpu_enter(vgpu, &srcu);
	if (ret)
		return ret == -ENODEV ? -ENXIO : ret;
	channel->epoch = READ_ONCE(vgpu->epoch);
	atomic_set(&channel->seen_wakes, atomic_read(&channel->slot->wakes));
	vgpu_channel_fill_header(channel);
	ret = vgpu_ctrl_command(vgpu, VGPU_CTRL_CHANNEL_CREATE, channel->index, 0, channel->area);
	if (!ret)
		queue_delayed_work(vgpu_reaper, &vgpu->watch, VGPU_WATCH_EVERY);
	vgpu_leave(vgpu, srcu);
	if (ret)
		dev_warn_ratelimited(&vgpu->dev, "channel %u: refused by the host (%d)\n",
				     channel->index, ret);
	return ret;
}

/* The area, as large as memory allows. */
static int vgpu_channel_create(struct vgpu_channel *channel)
{
	struct vgpu_mem *area;
	int ret;

	area = vgpu_mem_alloc(channel->vgpu, channel->user, VGPU_CHANNEL_BYTES);
	if (area == ERR_PTR(-ENOMEM))
		area = vgpu_mem_alloc(channel->vgpu, channel->user, VGPU_CHANNEL_MIN_BYTES);
	if (IS_ERR(area))
		return PTR_ERR(area);
	channel->area = area;
	ret = vgpu_channel_announce(channel);
	if (ret == -ENODEV)
		vgpu_mem_release(area);
	else if (ret)
		vgpu_mem_put(area);
	return ret;
}

static void vgpu_channel_ring_later(struct work_struct *work)
{
	struct vgpu_channel *channel = container_of(to_delayed_work(work), typeof(*channel), ring);
	int srcu;

	if (vgpu_channel_enter(channel, &srcu))
		return;
	vgpu_ctrl_doorbell(channel->vgpu, channel->index);
	vgpu_leave(channel->vgpu, srcu);
}

static void vgpu_channel_reap(struct work_struct *work);

static struct vgpu_channel *vgpu_channel_new(struct vgpu_dev *vgpu)
{
	struct vgpu_channel *channel = kzalloc(sizeof(*channel), GFP_KERNEL_ACCOUNT);

	if (!channel)
		return NULL;
	channel->vgpu = vgpu;
	channel->mm = current->mm;
	mmgrab(channel->mm);
	get_device(&vgpu->dev);
	mutex_init(&channel->free_lock);
	xa_init_flags(&channel->buffers, XA_FLAGS_ALLOC1);
	INIT_DELAYED_WORK(&channel->ring, vgpu_channel_ring_later);
	INIT_DELAYED_WORK(&channel->reap, vgpu_channel_reap);
	return channel;
}

static void vgpu_channel_free(struct vgpu_channel *channel)
{
	xa_destroy(&channel->buffers);
	mmdrop(channel->mm);
	put_device(&channel->vgpu->dev);
	kfree(channel);
}

/**
 * vgpu_channel_open() - a new channel for the current process
 * @vgpu: the device, referenced by the caller
 * @file: stands for the channel
 *
 * Return: the channel, or an ERR_PTR(): -EBUSY (the VF has none left), -EMFILE (the user has as
 * many as allowed), -ENOMEM, -EINTR, -EAGAIN and -ENODEV as vgpu_enter(), or what the host says.
 */
struct vgpu_channel *vgpu_channel_open(struct vgpu_dev *vgpu, struct file *file)
{
	struct vgpu_channel *channel = vgpu_channel_new(vgpu);
	int ret;

	if (!channel)
		return ERR_PTR(-ENOMEM);
	channel->user = vgpu_user_open(!(file->f_flags & O_NONBLOCK));
	if (IS_ERR(channel->user)) {
		ret = PTR_ERR(channel->user);
		goto free;
	}
	ret = vgpu_channel_take_slot(channel);
	if (ret)
		goto close_user;
	ret = vgpu_channel_create(channel);
	if (ret)
		goto give_slot;
	mutex_lock(&vgpu->slot_lock);
	channel->mapping = file->f_mapping;
	channel->slot->channel = channel;
	mutex_unlock(&vgpu->slot_lock);
	return channel;

give_slot:
	vgpu_channel_give_slot(channel);
close_user:
	vgpu_user_close(channel->user, false, true);
free:
	vgpu_channel_free(channel);
	return ERR_PTR(ret == -ENXIO ? -ENODEV : ret);
}

/* ---- Ending ---- */

/* Sends CHANNEL_DESTROY, once. Without the device there is nobody to send it to. */
static void vgpu_channel_send_destroy(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	int srcu, ret;

	if (vgpu_enter(vgpu, &srcu))
		return;
	if (!channel->destroy_sent && READ_ONCE(vgpu->epoch) == channel->epoch) {
		ret = vgpu_ctrl_command(vgpu, VGPU_CTRL_CHANNEL_DESTROY, channel->index, 0, NULL);
		if (ret && ret != -ENODEV)
			dev_warn(&vgpu->dev, "channel %u: the host refused to end it (%d)\n",
				 channel->index, ret);
	}
	channel->destroy_sent = true;
	vgpu_ctrl_refresh(vgpu, false);
	vgpu_leave(vgpu, srcu);
}

/* Is there nothing more to wait for? The host has let go, or can't be asked. */
static bool vgpu_channel_is_over(struct vgpu_channel *channel)
{
	int state = READ_ONCE(channel->vgpu->state);

	return state == VGPU_DEAD || state == VGPU_GONE ||
	       READ_ONCE(channel->vgpu->epoch) != channel->epoch ||
	       (channel->destroy_sent && READ_ONCE(channel->slot->state) == VGPU_CHANNEL_FREE);
}

/* The host has let go. Whoever had mappings of it, or could use it, is gone. */
static void vgpu_channel_give_memory(struct vgpu_channel *channel)
{
	struct vgpu_buffer *buffer;
	unsigned long id;

	xa_for_each(&channel->buffers, id, buffer) {
		vgpu_mem_release(buffer->mem);
		kfree(buffer);
	}
	xa_destroy(&channel->buffers);
	vgpu_mem_release(channel->area);
	channel->area = NULL;
}

static void vgpu_channel_reap(struct work_struct *work)
{
	struct vgpu_channel *channel = container_of(to_delayed_work(work), typeof(*channel), reap);
	bool had_memory = channel->area, closed;

	vgpu_channel_send_destroy(channel);
	if (!vgpu_channel_is_over(channel)) {
		if (time_after(jiffies, channel->complain_at)) {
			dev_warn_ratelimited(&channel->vgpu->dev,
					     "channel %u: the host still holds its memory\n",
					     channel->index);
			channel->complain_at = jiffies + MAX_JIFFY_OFFSET;
		}
		queue_delayed_work(vgpu_reaper, &channel->reap, VGPU_REAP_AGAIN);
		return;
	}
	closed = vgpu_channel_give_slot(channel);
	if (had_memory)
		vgpu_channel_give_memory(channel);
	vgpu_user_close(channel->user, had_memory, closed);
	if (!closed)
		return;
	/* Whoever found it in its slot a moment ago may have asked for one more run. */
	cancel_delayed_work(&channel->reap);
	vgpu_channel_free(channel);
}

/* Nobody can use it any more. Its memory goes now, the rest when the file is closed, too. */
static void vgpu_channel_end(struct vgpu_channel *channel)
{
	lockdep_assert_held(&channel->vgpu->slot_lock);
	if (!channel->ending) {
		channel->ending = true;
		channel->complain_at = jiffies + VGPU_REAP_COMPLAIN;
		vgpu_user_closing(channel->user);
	}
	mod_delayed_work(vgpu_reaper, &channel->reap, 0);
}

/* Its process is gone, and with it all mappings. Others have the file: a forked child, say. */
static bool vgpu_channel_is_orphan(struct vgpu_channel *channel)
{
	return !atomic_read(&channel->mm->mm_users);
}

/* A descriptor of the file is closed, perhaps by the end of the process. */
void vgpu_channel_flush(struct vgpu_channel *channel)
{
	if (!vgpu_channel_is_orphan(channel))
		return;
	mutex_lock(&channel->vgpu->slot_lock);
	vgpu_channel_end(channel);
	mutex_unlock(&channel->vgpu->slot_lock);
}

/* The file is closed: by close(), the last munmap() or the end of the process. */
void vgpu_channel_close(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;

	cancel_delayed_work_sync(&channel->ring);
	/* The reaper may be done, and the device gone with it, before the lock is let go of. */
	get_device(&vgpu->dev);
	mutex_lock(&vgpu->slot_lock);
	channel->mapping = NULL;
	vgpu_channel_end(channel);
	mutex_unlock(&vgpu->slot_lock);
	put_device(&vgpu->dev);
}

/* ---- From outside ---- */

static bool vgpu_slot_is_free(struct vgpu_dev *vgpu, unsigned int index)
{
	return READ_ONCE(vgpu->slots[index].state) == VGPU_CHANNEL_FREE;
}

/* Asks the host to end every channel and waits for it, for a while. With life_lock held. */
void vgpu_channels_end(struct vgpu_dev *vgpu)
{
	unsigned long end = jiffies + VGPU_STOP_WAIT;
	unsigned int i;

	vgpu_ctrl_refresh(vgpu, false);
	for_each_set_bit(i, vgpu->used, VGPU_MAX_CHANNELS)
		if (!vgpu_slot_is_free(vgpu, i) &&
		    vgpu_ctrl_command(vgpu, VGPU_CTRL_CHANNEL_DESTROY, i, 0, NULL) == -ENODEV)
			return;
	for_each_set_bit(i, vgpu->used, VGPU_MAX_CHANNELS) {
		while (!vgpu_slot_is_free(vgpu, i) && time_before(jiffies, end)) {
			wait_event_idle_timeout(vgpu->slots[i].wait, vgpu_slot_is_free(vgpu, i),
						HZ / 20);
			vgpu_ctrl_refresh(vgpu, false);
		}
		if (!vgpu_slot_is_free(vgpu, i))
			dev_warn(&vgpu->dev, "channel %u: the host does not let go\n", i);
	}
}

/* The state or the epoch has changed: writes that into the rings, and wakes who sleeps. */
void vgpu_channels_lose(struct vgpu_dev *vgpu)
{
	struct vgpu_channel_header *header;
	struct vgpu_slot *slot;

	mutex_lock(&vgpu->slot_lock);
	for (slot = vgpu->slots; slot < vgpu->slots + VGPU_MAX_CHANNELS; slot++) {
		if (slot->channel) {
			header = kmap_local_page(slot->channel->area->pages[0]);
			WRITE_ONCE(header->state, cpu_to_le32(VGPU_CHANNEL_LOST));
			kunmap_local(header);
		}
		atomic_inc(&slot->wakes);
		wake_up_all(&slot->wait);
	}
	mutex_unlock(&vgpu->slot_lock);
}

/* Takes away all mappings, lets closed channels end now. The device is gone: none comes back. */
void vgpu_channels_detach(struct vgpu_dev *vgpu)
{
	struct vgpu_channel *channel;
	unsigned int i;

	mutex_lock(&vgpu->slot_lock);
	for (i = 0; i < VGPU_MAX_CHANNELS; i++) {
		channel = vgpu->slots[i].channel;
		if (channel && channel->mapping)
			unmap_mapping_range(channel->mapping, 0, 0, 1);
		if (channel && channel->ending)
			mod_delayed_work(vgpu_reaper, &channel->reap, 0);
	}
	mutex_unlock(&vgpu->slot_lock);
}

/* A process can end without closing its descriptors: one that shares their table may live on. */
static void vgpu_channels_end_orphans(struct vgpu_dev *vgpu)
{
	struct vgpu_channel *channel;
	unsigned int i;

	mutex_lock(&vgpu->slot_lock);
	for_each_set_bit(i, vgpu->used, VGPU_MAX_CHANNELS) {
		channel = vgpu->slots[i].channel;
		if (channel && !channel->ending && vgpu_channel_is_orphan(channel))
			vgpu_channel_end(channel);
	}
	mutex_unlock(&vgpu->slot_lock);
}

/*
 * Programs that only wait ask the host nothing, and a host that is gone raises no interrupt:
 * without this they would wait for ever. It reads one register.
 */
void vgpu_channels_watch(struct work_struct *work)
{
	struct vgpu_dev *vgpu = container_of(to_delayed_work(work), struct vgpu_dev, watch);
	int srcu;

	if (vgpu_enter(vgpu, &srcu))
		return; /* all its channels are lost; the next one begins anew */
	if (!vgpu_ctrl_is_silent(vgpu)) {
		vgpu_channels_end_orphans(vgpu);
		if (!bitmap_empty(vgpu->used, VGPU_MAX_CHANNELS))
			queue_delayed_work(vgpu_reaper, &vgpu->watch, VGPU_WATCH_EVERY);
	}
	vgpu_leave(vgpu, srcu);
}
