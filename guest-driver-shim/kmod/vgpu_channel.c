// SPDX-License-Identifier: GPL-2.0-only
/* One channel: how it begins, and how it ends. */
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "vgpu.h"

/* The longest time after which a host that has no time is asked again. */
#define VGPU_BUSY_MS 5120
/* How long a silent host, or a process that ended before its file was closed, may go unnoticed. */
#define VGPU_WATCH_EVERY (HZ / 2)

/**
 * vgpu_channel_enter() - vgpu_enter() for a channel
 * @channel: the channel
 *
 * Return: as vgpu_enter(), or -EIO: it has been ended by the host, a reset or a suspend.
 */
int vgpu_channel_enter(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	int ret = vgpu_enter(vgpu);

	if (ret)
		return ret == -EAGAIN ? -EIO : ret;
	if (vgpu->epoch == channel->epoch &&
	    vgpu_ctrl_news(vgpu, channel->index).state == VGPU_CHANNEL_OPEN)
		return 0;
	vgpu_leave(vgpu);
	return -EIO;
}

/**
 * vgpu_channel_error() - is a channel lost?
 * @channel: the channel
 *
 * Return: 0 or as vgpu_channel_enter().
 */
int vgpu_channel_error(struct vgpu_channel *channel)
{
	int ret = vgpu_channel_enter(channel);

	if (!ret)
		vgpu_leave(channel->vgpu);
	return ret;
}

static void vgpu_channel_free(struct kref *ref)
{
	struct vgpu_channel *channel = container_of(ref, struct vgpu_channel, ref);

	xa_destroy(&channel->buffers);
	mmdrop(channel->mm);
	vgpu_user_put(channel->user);
	put_device(&channel->vgpu->dev);
	kfree(channel);
	module_put(THIS_MODULE);
}

/**
 * vgpu_channel_put() - give up a reference
 * @channel: the channel
 */
void vgpu_channel_put(struct vgpu_channel *channel)
{
	kref_put(&channel->ref, vgpu_channel_free);
}

/**
 * vgpu_channel_give_back() - the host has let go of all its memory, or never had it
 * @channel: the channel; its slot is free afterwards
 */
void vgpu_channel_give_back(struct vgpu_channel *channel)
{
	bool had_slot = vgpu_slot_give(channel);

	vgpu_buffers_give_back(channel);
	channel->area_bytes = 0;
	if (!had_slot)
		return;
	/* Nobody sets it any more. */
	if (channel->ending)
		atomic_dec(&channel->user->closing);
	wake_up_all(&vgpu_users_wait);
	vgpu_channel_put(channel);
}

/* ---- Beginning ---- */

/**
 * vgpu_channel_new() - what an open file is
 * @vgpu: the device, referenced by the caller
 *
 * Return: a channel of the current process that is to be made, with one reference; NULL without
 * memory.
 */
struct vgpu_channel *vgpu_channel_new(struct vgpu_dev *vgpu)
{
	struct vgpu_channel *channel = kzalloc(sizeof(*channel), GFP_KERNEL_ACCOUNT);

	if (!channel)
		return NULL;
	channel->user = vgpu_user_get();
	if (!channel->user) {
		kfree(channel);
		return NULL;
	}
	kref_init(&channel->ref);
	/* For longer than the file does: nobody could give back what the host lets go of later. */
	__module_get(THIS_MODULE);
	channel->vgpu = vgpu;
	get_device(&vgpu->dev);
	channel->mm = current->mm;
	mmgrab(channel->mm);
	mutex_init(&channel->free_lock);
	xa_init_flags(&channel->buffers, XA_FLAGS_ALLOC);
	init_waitqueue_head(&channel->wait);
	return channel;
}

/* As large as memory allows. */
static int vgpu_channel_make_area(struct vgpu_channel *channel)
{
	struct vgpu_mem *area = vgpu_mem_make(channel, 0, VGPU_CHANNEL_BYTES);
	struct vgpu_channel_header *header;

	if (area == ERR_PTR(-ENOMEM))
		area = vgpu_mem_make(channel, 0, VGPU_CHANNEL_MIN_BYTES);
	if (IS_ERR(area))
		return PTR_ERR(area);
	channel->area_bytes = area->bytes;
	header = kmap_local_page(area->pages[0]);
	BUILD_BUG_ON(sizeof(*header) > PAGE_SIZE);
	header->magic = cpu_to_le32(VGPU_MAGIC);
	header->abi_version = cpu_to_le32(channel->vgpu->info.abi_version);
	header->payload_bytes = cpu_to_le64(area->bytes - VGPU_CHANNEL_PAYLOAD_OFFSET);
	kunmap_local(header);
	return vgpu_buffer_put(channel, area, 0);
}

/**
 * vgpu_channel_prepare() - all that a channel needs from this side
 * @channel: has neither memory nor a slot
 *
 * In case of an error vgpu_channel_give_back() undoes what has been done.
 *
 * Return: 0, or -EBUSY (the VF has none left), -EMFILE (the user has as many as he may), or as
 * vgpu_mem_make().
 */
int vgpu_channel_prepare(struct vgpu_channel *channel)
{
	bool admin = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	int ret = vgpu_user_pace_command(channel->user);

	if (!ret)
		ret = vgpu_channel_make_area(channel);
	if (!ret)
		ret = vgpu_user_retry(channel->user, vgpu_slot_take(channel, admin));
	return ret;
}

/* Not on its way out any more: removal waits for those inside before it ends the work. */
static void vgpu_look_soon(struct vgpu_dev *vgpu, unsigned long delay)
{
	if (vgpu_enter(vgpu))
		return;
	if (delay)
		queue_delayed_work(system_highpri_wq, &vgpu->janitor, delay);
	else
		mod_delayed_work(system_highpri_wq, &vgpu->janitor, 0);
	vgpu_leave(vgpu);
}

/**
 * vgpu_channel_announce() - vgpu_ctrl_announce() to a host that may have no time for it now
 * @channel: its channel
 * @op: as for that
 * @buffer: as for that
 * @mem: as for that
 *
 * The host is asked again, a little later each time. The caller has been answered, so that only
 * death interrupts this.
 *
 * Return: as vgpu_ctrl_announce(), or -EINTR: as an error of the host.
 */
int vgpu_channel_announce(struct vgpu_channel *channel, u32 op, u32 buffer, struct vgpu_mem *mem)
{
	unsigned int ms;
	int ret;

	for (ms = 10;; ms *= 2) {
		ret = vgpu_ctrl_announce(channel, op, buffer, mem);
		if (ret != -EBUSY || ms > VGPU_BUSY_MS)
			return ret;
		set_current_state(TASK_KILLABLE | TASK_FREEZABLE);
		schedule_timeout(msecs_to_jiffies(ms));
		if (fatal_signal_pending(current))
			return -EINTR;
	}
}

/**
 * vgpu_channel_create() - make a channel known to the host
 * @channel: prepared; what the host may have afterwards is @announced, and stays in its slot
 *
 * Return: 0 or what the host says.
 */
int vgpu_channel_create(struct vgpu_channel *channel)
{
	int ret = vgpu_channel_announce(channel, VGPU_CTRL_CHANNEL_CREATE, 0,
					xa_load(&channel->buffers, 0));

	if (!ret)
		vgpu_look_soon(channel->vgpu, VGPU_WATCH_EVERY);
	else if (ret != -ENODEV && ret != -EAGAIN)
		dev_warn_ratelimited(&channel->vgpu->dev, "channel %u: refused by the host (%d)\n",
				     channel->index, ret);
	return ret;
}

/* ---- Ending ---- */

/**
 * vgpu_channel_end() - nobody can use a channel any more
 * @channel: its memory goes as soon as the host has let go of it
 */
void vgpu_channel_end(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	bool begins;

	spin_lock_irq(&vgpu->slot_lock);
	begins = !channel->ending && vgpu->slots[channel->index].channel == channel;
	if (begins) {
		atomic_inc(&channel->user->closing);
		WRITE_ONCE(channel->ending, true);
	}
	spin_unlock_irq(&vgpu->slot_lock);
	if (begins)
		vgpu_look_soon(vgpu, 0);
}

/**
 * vgpu_channel_is_orphan() - is its process gone, and with it all mappings?
 * @channel: the channel; others may have its file, a forked child, say
 *
 * Return: true: yes.
 */
bool vgpu_channel_is_orphan(struct vgpu_channel *channel)
{
	return !atomic_read(&channel->mm->mm_users);
}

/* Tells the host, once. Inside vgpu_enter(). Is there nothing more to wait for? */
static bool vgpu_channel_is_over(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	int ret;

	if (!READ_ONCE(channel->announced) || channel->epoch != vgpu->epoch)
		return false; /* by its opener, or by who has changed the epoch */
	if (!channel->destroy_sent) {
		ret = vgpu_ctrl_command(vgpu, VGPU_CTRL_CHANNEL_DESTROY, channel->index, 0);
		/* Without an answer the page says what was before. The device is started anew. */
		if (ret == -ENODEV || ret == -ENXIO)
			return false;
		channel->destroy_sent = true;
		if (ret)
			dev_warn(&vgpu->dev, "channel %u: the host refused to end it (%d)\n",
				 channel->index, ret);
	}
	return vgpu_ctrl_news(vgpu, channel->index).state == VGPU_CHANNEL_FREE;
}

/* false: the device is not in use any more */
static bool vgpu_channel_look_after(struct vgpu_channel *channel)
{
	bool over = false;

	/* A process can end without closing its files: one that shares them may live on. */
	if (vgpu_channel_is_orphan(channel))
		vgpu_channel_end(channel);
	if (vgpu_enter(channel->vgpu))
		return false;
	if (READ_ONCE(channel->ending))
		over = vgpu_channel_is_over(channel);
	vgpu_leave(channel->vgpu);
	if (over)
		vgpu_channel_give_back(channel);
	return true;
}

/**
 * vgpu_channels_look_after() - in the janitor: end channels
 * @vgpu: the device
 *
 * Programs that only wait ask the host nothing, and a host that is gone does not interrupt: without
 * this they would wait for ever. It reads one register.
 */
void vgpu_channels_look_after(struct vgpu_dev *vgpu)
{
	bool silent;

	if (vgpu_enter(vgpu))
		return; /* all its channels are lost; the next one begins anew */
	silent = vgpu_ctrl_is_silent(vgpu);
	vgpu_leave(vgpu);
	if (!silent && vgpu_slots_each(vgpu, vgpu_channel_look_after))
		vgpu_look_soon(vgpu, VGPU_WATCH_EVERY);
}
