// SPDX-License-Identifier: GPL-2.0-only
/* A device's channels: who has which, who hears of the host's news, what ends them together. */
#include <linux/delay.h>
#include <linux/highmem.h>
#include <linux/mm.h>

#include "vgpu.h"

static unsigned int user_channels = 16;
module_param(user_channels, uint, 0644);
MODULE_PARM_DESC(user_channels, "Channels that one user may have open on one VF (16)");

/* Channels that only the administrator gets. */
#define VGPU_RESERVED_CHANNELS 2
/* How long a reset, suspend or removal waits for the host to end all channels. */
#define VGPU_STOP_WAIT (5 * HZ)

/**
 * vgpu_slot_take() - find a free slot for a channel, which has a reference then
 * @channel: has none
 * @admin: may take the last ones
 *
 * Nobody takes more than what he leaves to others; see vgpu_user_may_pin().
 *
 * Return: 0, -EBUSY (no channel is left) or -EMFILE (the user has the most that one user may have).
 */
int vgpu_slot_take(struct vgpu_channel *channel, bool admin)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	unsigned int own = 0, left = 0, i;
	int ret = 0;

	spin_lock_irq(&vgpu->slot_lock);
	for (i = 0; i < vgpu->max_channels; i++) {
		if (vgpu->slots[i].channel)
			own += vgpu->slots[i].channel->user == channel->user;
		else if (!left++)
			channel->index = i;
	}
	if (!left || (!admin && left <= VGPU_RESERVED_CHANNELS)) {
		ret = -EBUSY;
	} else if (!admin && (own >= READ_ONCE(user_channels) || own >= left)) {
		ret = -EMFILE;
	} else {
		kref_get(&channel->ref);
		vgpu->slots[channel->index].channel = channel;
	}
	spin_unlock_irq(&vgpu->slot_lock);
	return ret;
}

/**
 * vgpu_slot_give() - give up a slot
 * @channel: the channel
 *
 * Return: true: it had one, whose reference is the caller's now.
 */
bool vgpu_slot_give(struct vgpu_channel *channel)
{
	struct vgpu_slot *slot = &channel->vgpu->slots[channel->index];
	bool had;

	spin_lock_irq(&channel->vgpu->slot_lock);
	had = slot->channel == channel;
	if (had)
		slot->channel = NULL;
	spin_unlock_irq(&channel->vgpu->slot_lock);
	return had;
}

/**
 * vgpu_slots_each() - call a function for each channel that is in a slot
 * @vgpu: the device
 * @visit: the channel is referenced meanwhile
 *
 * Return: how often @visit said yes.
 */
unsigned int vgpu_slots_each(struct vgpu_dev *vgpu, bool (*visit)(struct vgpu_channel *channel))
{
	struct vgpu_channel *channel;
	unsigned int i, count = 0;

	for (i = 0; i < VGPU_MAX_CHANNELS; i++) {
		spin_lock_irq(&vgpu->slot_lock);
		channel = vgpu->slots[i].channel;
		if (channel)
			kref_get(&channel->ref);
		spin_unlock_irq(&vgpu->slot_lock);
		if (channel) {
			count += visit(channel);
			vgpu_channel_put(channel);
		}
	}
	return count;
}

/**
 * vgpu_slots_used() - count channels
 * @vgpu: the device
 *
 * Return: how many are in a slot.
 */
unsigned int vgpu_slots_used(struct vgpu_dev *vgpu)
{
	unsigned int i, count = 0;

	spin_lock_irq(&vgpu->slot_lock);
	for (i = 0; i < VGPU_MAX_CHANNELS; i++)
		count += !!vgpu->slots[i].channel;
	spin_unlock_irq(&vgpu->slot_lock);
	return count;
}

/* ---- News from the host ---- */

/* Has the host written something new of who is in slot @i? */
static bool vgpu_slot_has_news(struct vgpu_dev *vgpu, unsigned int i)
{
	struct vgpu_news now = vgpu_ctrl_news(vgpu, i);

	/* Hosts that count no events don't say whom an interrupt is for. */
	return vgpu->slots[i].channel && (!(vgpu->features & VGPU_FEATURE_EVENT_COUNTS) ||
					  memcmp(&now, &vgpu->slots[i].seen, sizeof(now)));
}

static void vgpu_slot_take_news(struct vgpu_dev *vgpu, unsigned int i)
{
	struct vgpu_channel *channel = vgpu->slots[i].channel;

	vgpu->slots[i].seen = vgpu_ctrl_news(vgpu, i);
	atomic_inc(&channel->wakes);
	if (READ_ONCE(channel->ending))
		mod_delayed_work(system_highpri_wq, &vgpu->janitor, 0);
}

static bool vgpu_has_many_sleepers(struct wait_queue_head *wait)
{
	/* Sleepers that come or go now change how many are woken, not that they are. */
	return data_race(!list_empty(&wait->head) && !list_is_singular(&wait->head));
}

/**
 * vgpu_slots_wake() - wake those of whom the host has news
 * @vgpu: the device
 * @all: false: in the interrupt itself, which leaves channels with many sleepers to its thread
 *
 * Return: are there such?
 */
bool vgpu_slots_wake(struct vgpu_dev *vgpu, bool all)
{
	struct vgpu_channel *channel;
	bool many, left = false;
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < vgpu->max_channels; i++) {
		spin_lock_irqsave(&vgpu->slot_lock, flags);
		channel = vgpu_slot_has_news(vgpu, i) ? vgpu->slots[i].channel : NULL;
		many = channel && vgpu_has_many_sleepers(&channel->wait);
		if (many && !all) {
			left = true;
			channel = NULL;
		}
		if (channel)
			vgpu_slot_take_news(vgpu, i);
		if (channel && many)
			kref_get(&channel->ref);
		else if (channel)
			wake_up_all(&channel->wait);
		spin_unlock_irqrestore(&vgpu->slot_lock, flags);
		if (channel && many) {
			wake_up_all(&channel->wait);
			vgpu_channel_put(channel);
		}
	}
	return left;
}

/* ---- From outside ---- */

static bool vgpu_slot_is_free(struct vgpu_dev *vgpu, unsigned int i)
{
	return vgpu_ctrl_news(vgpu, i).state == VGPU_CHANNEL_FREE;
}

/**
 * vgpu_slots_end() - ask the host to end every channel, and wait for it for a while
 * @vgpu: nobody else uses it
 */
void vgpu_slots_end(struct vgpu_dev *vgpu)
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

/**
 * vgpu_slots_lose() - the state or the epoch has changed: mark the rings, wake who sleeps
 * @vgpu: the device
 */
void vgpu_slots_lose(struct vgpu_dev *vgpu)
{
	struct vgpu_channel_header *header;
	struct vgpu_channel *channel;
	struct vgpu_mem *area;
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < VGPU_MAX_CHANNELS; i++) {
		spin_lock_irqsave(&vgpu->slot_lock, flags);
		channel = vgpu->slots[i].channel;
		if (channel) {
			kref_get(&channel->ref);
			area = xa_load(&channel->buffers, 0);
			header = kmap_local_page(area->pages[0]);
			WRITE_ONCE(header->state, cpu_to_le32(VGPU_CHANNEL_LOST));
			kunmap_local(header);
			atomic_inc(&channel->wakes);
		}
		spin_unlock_irqrestore(&vgpu->slot_lock, flags);
		if (channel) {
			wake_up_all(&channel->wait);
			vgpu_channel_put(channel);
		}
	}
}

static bool vgpu_slot_give_back(struct vgpu_channel *channel)
{
	if (READ_ONCE(channel->announced) && channel->epoch != channel->vgpu->epoch)
		vgpu_channel_give_back(channel);
	return true;
}

/**
 * vgpu_slots_give_back() - give back the memory of all channels of earlier epochs
 * @vgpu: says that it uses no memory any more
 */
void vgpu_slots_give_back(struct vgpu_dev *vgpu)
{
	vgpu_slots_each(vgpu, vgpu_slot_give_back);
}
