// SPDX-License-Identifier: GPL-2.0-only
/* All channels of a device: who hears of the host's news, and what ends them together. */
#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "vgpu.h"

/* How long a reset, suspend or removal waits for the host to end all channels. */
#define VGPU_STOP_WAIT (5 * HZ)

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
