// SPDX-License-Identifier: GPL-2.0-only
/* Channels: how they begin, how they end, and what ends them from outside. */
#include <linux/capability.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "vgpu.h"

VGPU_LIMIT(user_channels, 16, "Channels that one user may have open on one VF");

/* Channels that only the administrator gets. */
#define VGPU_RESERVED_CHANNELS 2
/* How long a silent host, or a process that ended before its file was closed, may go unnoticed. */
#define VGPU_WATCH_EVERY (HZ / 2)
/* How long a reset, suspend or removal waits for the host to end all channels. */
#define VGPU_STOP_WAIT (5 * HZ)
/* When it is said that the host does not let go. */
#define VGPU_COMPLAIN (10 * HZ)

/* Inside vgpu_enter(). */
static bool vgpu_channel_open_on_host(struct vgpu_channel *channel)
{
	return channel->vgpu->epoch == channel->epoch &&
	       vgpu_ctrl_news(channel->vgpu, channel->index).state == VGPU_CHANNEL_OPEN;
}

/* vgpu_enter() for a channel; -EIO when the channel is lost. */
int vgpu_channel_enter(struct vgpu_channel *channel)
{
	int ret = vgpu_enter(channel->vgpu);

	if (ret)
		return ret == -EAGAIN ? -EIO : ret;
	if (vgpu_channel_open_on_host(channel))
		return 0;
	vgpu_leave(channel->vgpu);
	return -EIO;
}

/* Has the host, a reset or the end of the device ended it? */
bool vgpu_channel_lost(struct vgpu_channel *channel)
{
	if (vgpu_channel_enter(channel))
		return true;
	vgpu_leave(channel->vgpu);
	return false;
}

/* Its rings, referenced; NULL when the host has let go of it. */
struct vgpu_mem *vgpu_channel_area(struct vgpu_channel *channel)
{
	struct vgpu_mem *area;

	xa_lock(&channel->buffers);
	area = channel->area;
	if (area)
		kref_get(&area->ref);
	xa_unlock(&channel->buffers);
	return area;
}

static void vgpu_channel_free(struct kref *ref)
{
	struct vgpu_channel *channel = container_of(ref, struct vgpu_channel, ref);

	xa_destroy(&channel->buffers);
	mmdrop(channel->mm);
	vgpu_user_put(channel->user);
	put_device(&channel->vgpu->dev);
	kfree(channel);
}

static void vgpu_channel_put(struct vgpu_channel *channel)
{
	kref_put(&channel->ref, vgpu_channel_free);
}

/* ---- Slots ---- */

/* What the current user has of the VF's channels, and how many nobody has. */
static void vgpu_slots_count(struct vgpu_dev *vgpu, struct vgpu_user *user, unsigned int *own,
			     unsigned int *left)
{
	unsigned int i;

	lockdep_assert_held(&vgpu->slot_lock);
	for (i = 0; i < vgpu->max_channels; i++) {
		*left += !vgpu->slots[i].channel;
		*own += vgpu->slots[i].channel && vgpu->slots[i].channel->user == user;
	}
}

/* Nobody takes more than what he leaves to others; see vgpu_user_may_pin(). */
static int vgpu_channel_try_slot(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	unsigned int own = 0, left = 0, i;
	bool admin = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	int ret = 0;

	spin_lock_irq(&vgpu->slot_lock);
	vgpu_slots_count(vgpu, channel->user, &own, &left);
	if (!left || (!admin && left <= VGPU_RESERVED_CHANNELS))
		ret = -EBUSY;
	else if (!admin && (own >= READ_ONCE(user_channels) || own >= left))
		ret = -EMFILE;
	for (i = 0; !ret && vgpu->slots[i].channel; i++)
		;
	if (!ret) {
		channel->index = i;
		kref_get(&channel->ref);
		vgpu->slots[i].channel = channel;
	}
	spin_unlock_irq(&vgpu->slot_lock);
	return ret;
}

/* Waits for channels of the same user that end, if he may. */
static int vgpu_channel_take_slot(struct vgpu_channel *channel, bool may_wait)
{
	struct vgpu_user_wait wait = {};
	int ret, waited = 0;

	do {
		ret = vgpu_channel_try_slot(channel);
		if (!ret || !may_wait)
			return ret;
		waited = vgpu_user_wait(channel->user, &wait);
	} while (!waited);
	return waited == -ETIME ? ret : waited;
}

/* Gives up the slot and its reference, once. */
static bool vgpu_channel_give_slot(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	bool had;

	spin_lock_irq(&vgpu->slot_lock);
	had = vgpu->slots[channel->index].channel == channel;
	if (had)
		vgpu->slots[channel->index].channel = NULL;
	if (had && channel->ending)
		vgpu_user_closing(channel->user, -1);
	spin_unlock_irq(&vgpu->slot_lock);
	return had;
}

/* Who is in slot @i, referenced; NULL: nobody. */
static struct vgpu_channel *vgpu_slot_channel(struct vgpu_dev *vgpu, unsigned int i)
{
	struct vgpu_channel *channel;

	spin_lock_irq(&vgpu->slot_lock);
	channel = vgpu->slots[i].channel;
	if (channel)
		kref_get(&channel->ref);
	spin_unlock_irq(&vgpu->slot_lock);
	return channel;
}

#define vgpu_for_each_channel(vgpu, i, channel)						\
	for ((i) = 0; (i) < VGPU_MAX_CHANNELS; (i)++)					\
		if (((channel) = vgpu_slot_channel(vgpu, i)))

/* The host has let go of all its memory. */
static void vgpu_channel_give_memory(struct vgpu_channel *channel)
{
	struct vgpu_mem *area;

	xa_lock(&channel->buffers);
	area = channel->area;
	channel->area = NULL;
	xa_unlock(&channel->buffers);
	vgpu_buffers_give_back(channel);
	if (area)
		vgpu_mem_release(area);
}

static void vgpu_channel_give_back(struct vgpu_channel *channel)
{
	if (!vgpu_channel_give_slot(channel))
		return;
	vgpu_channel_give_memory(channel);
	vgpu_users_have_news();
	vgpu_channel_put(channel);
}

/* ---- Beginning ---- */

static void vgpu_channel_fill_header(struct vgpu_channel *channel)
{
	struct vgpu_channel_header *header = kmap_local_page(channel->area->pages[0]);

	BUILD_BUG_ON(sizeof(*header) > PAGE_SIZE);
	header->magic = cpu_to_le32(VGPU_MAGIC);
	header->abi_version = cpu_to_le32(channel->vgpu->info.abi_version);
	header->payload_bytes = cpu_to_le64(channel->area_bytes - VGPU_CHANNEL_PAYLOAD_OFFSET);
	kunmap_local(header);
}

/* As large as memory allows. */
static int vgpu_channel_make_area(struct vgpu_channel *channel)
{
	channel->area = vgpu_mem_alloc(channel->vgpu, channel->user, VGPU_CHANNEL_BYTES);
	if (channel->area == ERR_PTR(-ENOMEM))
		channel->area = vgpu_mem_alloc(channel->vgpu, channel->user,
					       VGPU_CHANNEL_MIN_BYTES);
	if (!IS_ERR(channel->area)) {
		channel->area_bytes = channel->area->bytes;
		vgpu_channel_fill_header(channel);
		return 0;
	}
	return PTR_ERR(xchg(&channel->area, NULL));
}

/* A host that has no time for it now says so: it is asked again, a little later each time. */
static int vgpu_channel_create(struct vgpu_channel *channel, bool may_wait)
{
	unsigned int ms = 10;
	int ret;

	for (;; ms *= 2) {
		ret = vgpu_ctrl_announce(channel, VGPU_CTRL_CHANNEL_CREATE, 0, channel->area);
		if (ret != -EBUSY || !may_wait || ms > 5000)
			return ret;
		if (msleep_interruptible(ms))
			return -ERESTARTSYS;
	}
}

static void vgpu_channels_look_soon(struct vgpu_dev *vgpu, unsigned long delay)
{
	/* Not on its way out any more: removal waits for those inside before it ends the work. */
	if (vgpu_enter(vgpu))
		return;
	if (delay)
		queue_delayed_work(system_highpri_wq, &vgpu->janitor, delay);
	else
		mod_delayed_work(system_highpri_wq, &vgpu->janitor, 0);
	vgpu_leave(vgpu);
}

static struct vgpu_channel *vgpu_channel_new(struct vgpu_dev *vgpu)
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
	channel->vgpu = vgpu;
	get_device(&vgpu->dev);
	channel->mm = current->mm;
	mmgrab(channel->mm);
	mutex_init(&channel->free_lock);
	mutex_init(&channel->map_lock);
	xa_init_flags(&channel->buffers, XA_FLAGS_ALLOC1);
	init_waitqueue_head(&channel->wait);
	INIT_LIST_HEAD(&channel->parked);
	return channel;
}

/**
 * vgpu_channel_open() - a new channel for the current process
 * @vgpu: the device, referenced by the caller
 * @file: stands for the channel
 *
 * Return: the channel with the file's reference, or an ERR_PTR(): -EBUSY (the VF has none left),
 * -EMFILE (the user has as many as allowed), -ENOMEM, -EINTR, -ERESTARTSYS, -EAGAIN and -ENODEV as
 * vgpu_enter(), or what the host says.
 */
struct vgpu_channel *vgpu_channel_open(struct vgpu_dev *vgpu, struct file *file)
{
	struct vgpu_channel *channel = vgpu_channel_new(vgpu);
	bool may_wait = !(file->f_flags & O_NONBLOCK);
	int ret;

	if (!channel)
		return ERR_PTR(-ENOMEM);
	ret = vgpu_user_pace_command(channel->user);
	if (!ret)
		ret = vgpu_channel_make_area(channel);
	if (!ret)
		ret = vgpu_channel_take_slot(channel, may_wait);
	if (!ret) {
		ret = vgpu_channel_create(channel, may_wait);
		if (ret && ret != -ENODEV && ret != -EAGAIN && ret != -ERESTARTSYS)
			dev_warn_ratelimited(&vgpu->dev, "channel %u: refused by the host (%d)\n",
					     channel->index, ret);
		/* What the host may have stays in its slot. */
		if (ret && !channel->announced && vgpu_channel_give_slot(channel))
			vgpu_channel_put(channel);
	}
	if (!ret) {
		channel->file_mapping = file->f_mapping;
		vgpu_channels_look_soon(vgpu, VGPU_WATCH_EVERY);
		return channel;
	}
	if (!channel->announced)
		vgpu_channel_give_memory(channel);
	vgpu_channel_put(channel);
	return ERR_PTR(ret == -ENXIO ? -ENODEV : ret);
}

/* ---- Ending ---- */

/* Nobody can use it any more: its memory goes as soon as the host has let go of it. */
void vgpu_channel_end(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	bool begins;

	spin_lock_irq(&vgpu->slot_lock);
	begins = !channel->ending && vgpu->slots[channel->index].channel == channel;
	if (begins)
		vgpu_user_closing(channel->user, 1);
	WRITE_ONCE(channel->ending, true);
	spin_unlock_irq(&vgpu->slot_lock);
	if (begins)
		vgpu_channels_look_soon(vgpu, 0);
}

/* The file is closed: by close(), the last munmap() or the end of the process. */
void vgpu_channel_close(struct vgpu_channel *channel)
{
	mutex_lock(&channel->map_lock);
	channel->file_mapping = NULL;
	mutex_unlock(&channel->map_lock);
	vgpu_channel_end(channel);
	vgpu_channel_put(channel);
}

/* Its process is gone, and with it all mappings. Others have the file: a forked child, say. */
bool vgpu_channel_is_orphan(struct vgpu_channel *channel)
{
	return !atomic_read(&channel->mm->mm_users);
}

/* Tells the host, once. Inside vgpu_enter(). Is there nothing more to wait for? */
static bool vgpu_channel_is_over(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	int ret;

	if (!channel->announced || channel->epoch != vgpu->epoch)
		return false; /* by its opener, or by who has changed the epoch */
	if (!channel->destroy_sent) {
		channel->destroy_sent = true;
		channel->complain_at = jiffies + VGPU_COMPLAIN;
		ret = vgpu_ctrl_command(vgpu, VGPU_CTRL_CHANNEL_DESTROY, channel->index, 0);
		if (ret && ret != -ENODEV)
			dev_warn(&vgpu->dev, "channel %u: the host refused to end it (%d)\n",
				 channel->index, ret);
	}
	if (vgpu_ctrl_news(vgpu, channel->index).state == VGPU_CHANNEL_FREE)
		return true;
	if (time_after(jiffies, channel->complain_at)) {
		dev_warn_ratelimited(&vgpu->dev, "channel %u: the host still holds its memory\n",
				     channel->index);
		channel->complain_at = jiffies + MAX_JIFFY_OFFSET;
	}
	return false;
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

/*
 * Ends channels. Programs that only wait ask the host nothing, and a host that is gone raises no
 * interrupt: without this they would wait for ever. It reads one register.
 */
void vgpu_channels_janitor(struct work_struct *work)
{
	struct vgpu_dev *vgpu = container_of(to_delayed_work(work), struct vgpu_dev, janitor);
	struct vgpu_channel *channel;
	unsigned int i, left = 0;
	bool silent;

	if (vgpu_enter(vgpu))
		return; /* all its channels are lost; the next one begins anew */
	silent = vgpu_ctrl_is_silent(vgpu);
	vgpu_leave(vgpu);
	if (silent)
		return;
	vgpu_for_each_channel(vgpu, i, channel) {
		left += vgpu_channel_look_after(channel);
		vgpu_channel_put(channel);
	}
	if (left)
		vgpu_channels_look_soon(vgpu, VGPU_WATCH_EVERY);
}

/* ---- News from the host ---- */

/* Has the host written something new of who is in slot @i? */
static bool vgpu_slot_has_news(struct vgpu_dev *vgpu, unsigned int i)
{
	struct vgpu_slot *slot = &vgpu->slots[i];
	struct vgpu_news now;

	if (!slot->channel)
		return false;
	now = vgpu_ctrl_news(vgpu, i);
	/* Hosts that count no events don't say whom an interrupt is for. */
	return !(vgpu->features & VGPU_FEATURE_EVENT_COUNTS) || now.state != slot->seen.state ||
	       now.acks != slot->seen.acks || now.events != slot->seen.events;
}

static void vgpu_slot_take_news(struct vgpu_dev *vgpu, unsigned int i)
{
	struct vgpu_channel *channel = vgpu->slots[i].channel;

	vgpu->slots[i].seen = vgpu_ctrl_news(vgpu, i);
	atomic_inc(&channel->wakes);
	if (READ_ONCE(channel->ending))
		mod_delayed_work(system_highpri_wq, &vgpu->janitor, 0);
}

/**
 * vgpu_channels_wake_one() - in the interrupt itself: wake one channel's sleeper, if it has one
 * @vgpu: the device
 *
 * Return: false when more is to be done: vgpu_channels_wake() does it.
 */
bool vgpu_channels_wake_one(struct vgpu_dev *vgpu)
{
	unsigned int i, count = 0, one = 0;

	spin_lock(&vgpu->slot_lock);
	for (i = 0; i < vgpu->max_channels; i++)
		if (vgpu_slot_has_news(vgpu, i) && !count++)
			one = i;
	if (count == 1) {
		struct wait_queue_head *wait = &vgpu->slots[one].channel->wait;

		/* Sleepers that come or go now change how many are woken, not that they are. */
		if (data_race(!list_empty(&wait->head) && !list_is_singular(&wait->head))) {
			count = 2;
		} else {
			vgpu_slot_take_news(vgpu, one);
			wake_up_all(wait);
		}
	}
	spin_unlock(&vgpu->slot_lock);
	return count < 2;
}

/* In the interrupt's thread: wakes all who have news. */
void vgpu_channels_wake(struct vgpu_dev *vgpu)
{
	struct vgpu_channel *channel;
	unsigned int i;

	for (i = 0; i < vgpu->max_channels; i++) {
		spin_lock_irq(&vgpu->slot_lock);
		channel = vgpu_slot_has_news(vgpu, i) ? vgpu->slots[i].channel : NULL;
		if (channel) {
			kref_get(&channel->ref);
			vgpu_slot_take_news(vgpu, i);
		}
		spin_unlock_irq(&vgpu->slot_lock);
		if (!channel)
			continue;
		wake_up_all(&channel->wait);
		vgpu_channel_put(channel);
	}
}

/* ---- From outside ---- */

static bool vgpu_slot_is_free(struct vgpu_dev *vgpu, unsigned int i)
{
	return vgpu_ctrl_news(vgpu, i).state == VGPU_CHANNEL_FREE;
}

/* Asks the host to end every channel and waits for it, for a while. Nobody else uses the device. */
void vgpu_channels_end(struct vgpu_dev *vgpu)
{
	unsigned long end = jiffies + VGPU_STOP_WAIT;
	unsigned int i;

	for (i = 0; i < vgpu->max_channels; i++)
		if (!vgpu_slot_is_free(vgpu, i) &&
		    vgpu_ctrl_command(vgpu, VGPU_CTRL_CHANNEL_DESTROY, i, 0) == -ENODEV)
			return;
	for (i = 0; i < vgpu->max_channels; i++) {
		while (!vgpu_slot_is_free(vgpu, i) && time_before(jiffies, end))
			usleep_range(500, 2000);
		if (!vgpu_slot_is_free(vgpu, i))
			dev_warn(&vgpu->dev, "channel %u: the host does not let go\n", i);
	}
}

/* The state or the epoch has changed: writes that into the rings, and wakes who sleeps. */
void vgpu_channels_lose(struct vgpu_dev *vgpu)
{
	struct vgpu_channel_header *header;
	struct vgpu_channel *channel;
	unsigned long flags;
	unsigned int i;

	spin_lock_irqsave(&vgpu->slot_lock, flags);
	for (i = 0; i < VGPU_MAX_CHANNELS; i++) {
		channel = vgpu->slots[i].channel;
		if (!channel)
			continue;
		header = kmap_local_page(channel->area->pages[0]);
		WRITE_ONCE(header->state, cpu_to_le32(VGPU_CHANNEL_LOST));
		kunmap_local(header);
		atomic_inc(&channel->wakes);
		wake_up_all(&channel->wait);
	}
	spin_unlock_irqrestore(&vgpu->slot_lock, flags);
}

/* The device does not use memory any more: gives back that of all channels of earlier epochs. */
void vgpu_channels_give_back(struct vgpu_dev *vgpu)
{
	struct vgpu_channel *channel;
	unsigned int i;

	vgpu_for_each_channel(vgpu, i, channel) {
		if (channel->announced && channel->epoch != vgpu->epoch)
			vgpu_channel_give_back(channel);
		vgpu_channel_put(channel);
	}
}

/* Takes away all mappings: what is touched next is what vgpu_mems_detach() has put there. */
void vgpu_channels_unmap(struct vgpu_dev *vgpu)
{
	struct vgpu_channel *channel;
	unsigned int i;

	vgpu_for_each_channel(vgpu, i, channel) {
		mutex_lock(&channel->map_lock);
		if (channel->file_mapping)
			unmap_mapping_range(channel->file_mapping, 0, 0, 1);
		mutex_unlock(&channel->map_lock);
		vgpu_channel_put(channel);
	}
}

unsigned int vgpu_channels_count(struct vgpu_dev *vgpu)
{
	unsigned int i, count = 0;

	spin_lock_irq(&vgpu->slot_lock);
	for (i = 0; i < VGPU_MAX_CHANNELS; i++)
		count += !!vgpu->slots[i].channel;
	spin_unlock_irq(&vgpu->slot_lock);
	return count;
}

static u64 vgpu_channel_bytes(struct vgpu_channel *channel)
{
	struct vgpu_mem *mem = vgpu_channel_area(channel);
	unsigned long id;
	u64 bytes;

	if (!mem)
		return 0;
	bytes = mem->bytes;
	vgpu_mem_put(mem);
	xa_lock(&channel->buffers);
	xa_for_each(&channel->buffers, id, mem)
		bytes += mem->bytes;
	xa_unlock(&channel->buffers);
	return bytes;
}

/* Memory that the host holds; with @parked, only what it should not hold any more. */
u64 vgpu_channels_bytes(struct vgpu_dev *vgpu, bool parked)
{
	struct vgpu_channel *channel;
	unsigned int i;
	u64 bytes = 0;

	vgpu_for_each_channel(vgpu, i, channel) {
		if (!parked || (channel->announced && (channel->epoch != READ_ONCE(vgpu->epoch) ||
						       vgpu->state != VGPU_RUNNING)))
			bytes += vgpu_channel_bytes(channel);
		vgpu_channel_put(channel);
	}
	return bytes;
}

/* ---- Memory that a device uses beyond the binding ---- */

/* Channels whose memory a device goes on using; each holds the module. */
static LIST_HEAD(vgpu_parked);
static DEFINE_SPINLOCK(vgpu_parked_lock);

/* The device goes on using memory, and nobody will be there to ask whether it still does. */
void vgpu_channels_park(struct vgpu_dev *vgpu)
{
	struct vgpu_channel *channel;
	unsigned int i;

	vgpu_for_each_channel(vgpu, i, channel) {
		if (channel->announced && vgpu_channel_give_slot(channel)) {
			/* The slot's reference is the list's from now on. */
			__module_get(THIS_MODULE);
			spin_lock(&vgpu_parked_lock);
			list_add(&channel->parked, &vgpu_parked);
			spin_unlock(&vgpu_parked_lock);
		}
		vgpu_channel_put(channel);
	}
}

/* The device says that it uses no memory any more. */
void vgpu_channels_unpark(struct pci_dev *pdev)
{
	struct vgpu_channel *channel, *next;
	LIST_HEAD(over);

	spin_lock(&vgpu_parked_lock);
	list_for_each_entry_safe(channel, next, &vgpu_parked, parked)
		if (channel->vgpu->pdev == pdev)
			list_move(&channel->parked, &over);
	spin_unlock(&vgpu_parked_lock);
	list_for_each_entry_safe(channel, next, &over, parked) {
		list_del(&channel->parked);
		vgpu_channel_give_memory(channel);
		vgpu_channel_put(channel);
		module_put(THIS_MODULE);
	}
}

static int vgpu_parked_get(char *buffer, const struct kernel_param *param)
{
	struct vgpu_channel *channel;
	u64 bytes = 0;

	spin_lock(&vgpu_parked_lock);
	list_for_each_entry(channel, &vgpu_parked, parked)
		bytes += vgpu_channel_bytes(channel);
	spin_unlock(&vgpu_parked_lock);
	return sysfs_emit(buffer, "%llu\n", bytes);
}

static const struct kernel_param_ops vgpu_parked_ops = { .get = vgpu_parked_get };
module_param_cb(parked_bytes, &vgpu_parked_ops, NULL, 0444);
MODULE_PARM_DESC(parked_bytes, "Memory that unbound devices have not let go of (read only)");
