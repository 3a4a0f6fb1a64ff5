// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registers and the control page: commands, one at a time, answered by the time the fence
 * register has been read; and what the host reports. Nothing outside of this file reads a register
 * or the page, and every value that comes from the host is checked here, once.
 */
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "vgpu.h"

/* What reads of an absent device return. */
#define VGPU_NO_ANSWER (~0u)
/* What this driver makes use of. */
#define VGPU_FEATURES_DRIVER \
	(VGPU_FEATURE_BUFFERS | VGPU_FEATURE_SEGMENT_PAGES | VGPU_FEATURE_EVENT_COUNTS | \
	 VGPU_FEATURE_CLIENT_PID | VGPU_FEATURE_STATUS)
/* How old the host's figures may be that programs are told. */
#define VGPU_STATUS_AGE (HZ / 100)
/* Largest errno that is known outside of the kernel. */
#define VGPU_MAX_ERRNO 133

static u32 vgpu_read(struct vgpu_dev *vgpu, u32 reg)
{
	return ioread32(vgpu->bar + reg);
}

/**
 * vgpu_enter() - begin to use the device
 * @vgpu: the device
 * @srcu: for vgpu_leave()
 *
 * Return: 0, or -EAGAIN (a reset or suspend is under way), -ENODEV (silent or unbound).
 */
int vgpu_enter(struct vgpu_dev *vgpu, int *srcu)
{
	int state;

	*srcu = srcu_read_lock(&vgpu->srcu);
	state = READ_ONCE(vgpu->state);
	if (state == VGPU_RUNNING) {
		__release(&vgpu->srcu); /* sparse can't follow a lock that depends on a value */
		return 0;
	}
	srcu_read_unlock(&vgpu->srcu, *srcu);
	return state == VGPU_QUIET ? -EAGAIN : -ENODEV;
}

void vgpu_leave(struct vgpu_dev *vgpu, int srcu)
{
	__acquire(&vgpu->srcu);
	srcu_read_unlock(&vgpu->srcu, srcu);
}

/* Has the device fallen silent? Then nobody uses it any more until it is reset. */
static bool vgpu_is_silent(struct vgpu_dev *vgpu, u32 answer)
{
	if (answer != VGPU_NO_ANSWER || vgpu_read(vgpu, VGPU_REG_MAGIC) == VGPU_MAGIC)
		return false;
	if (cmpxchg(&vgpu->state, VGPU_RUNNING, VGPU_DEAD) == VGPU_RUNNING) {
		dev_err(&vgpu->dev, "the host does not answer: unusable until it is reset\n");
		vgpu_channels_lose(vgpu);
	}
	return true;
}

/* Asks the host whether it is there; inside vgpu_enter(). */
bool vgpu_ctrl_is_silent(struct vgpu_dev *vgpu)
{
	return vgpu_is_silent(vgpu, vgpu_read(vgpu, VGPU_REG_MAGIC));
}

/* ---- Start ---- */

static int vgpu_ctrl_negotiate(struct vgpu_dev *vgpu)
{
	struct device *dev = &vgpu->pdev->dev;
	u32 oldest = vgpu_read(vgpu, VGPU_REG_ABI_VERSION);
	u32 newest = max(vgpu_read(vgpu, VGPU_REG_ABI_NEWEST), oldest);

	if (vgpu_read(vgpu, VGPU_REG_MAGIC) != VGPU_MAGIC)
		return dev_err_probe(dev, -ENODEV, "no vgpud VF, or its host does not answer\n");
	if (oldest > VGPU_ABI_VERSION || newest < VGPU_ABI_OLDEST)
		return dev_err_probe(dev, -EPROTO, "ABI versions: host %u to %u, driver %u to %u\n",
				     oldest, newest, VGPU_ABI_OLDEST, VGPU_ABI_VERSION);
	vgpu->info.abi_version = min(newest, VGPU_ABI_VERSION);
	vgpu->info.features = lo_hi_readq(vgpu->bar + VGPU_REG_FEATURES_LO) &
			      (VGPU_FEATURES_DRIVER | ~VGPU_FEATURES_TRANSPORT);
	vgpu->features = vgpu->info.features & VGPU_FEATURES_DRIVER;
	/* A host that does not know these registers ignores them. */
	iowrite32(vgpu->info.abi_version, vgpu->bar + VGPU_REG_DRIVER_VERSION);
	lo_hi_writeq(vgpu->features, vgpu->bar + VGPU_REG_DRIVER_FEATURES_LO);
	vgpu->max_channels = min(vgpu_read(vgpu, VGPU_REG_MAX_CHANNELS), VGPU_MAX_CHANNELS);
	if (!vgpu->max_channels)
		return dev_err_probe(dev, -EPROTO, "the host offers no channels\n");
	return 0;
}

/* Kept, so that a program that asks in a loop costs the other users of the VF nothing. */
static void vgpu_ctrl_read_info(struct vgpu_dev *vgpu)
{
	struct vgpu_ioc_info *info = &vgpu->info;

	info->vram_bytes = lo_hi_readq(vgpu->bar + VGPU_REG_VRAM_LO);
	info->slice_us = vgpu_read(vgpu, VGPU_REG_SLICE_US);
	info->weight = vgpu_read(vgpu, VGPU_REG_WEIGHT);
	info->pci_domain = pci_domain_nr(vgpu->pdev->bus);
	info->pci_bus = vgpu->pdev->bus->number;
	info->pci_device = PCI_SLOT(vgpu->pdev->devfn);
	memcpy_fromio(info->uuid, vgpu->bar + VGPU_REG_UUID, sizeof(info->uuid));
	memcpy_fromio(info->name, vgpu->bar + VGPU_REG_NAME, sizeof(info->name));
	info->name[sizeof(info->name) - 1] = 0;
	vgpu->info_at = jiffies;
}

/**
 * vgpu_ctrl_start() - agree with the host on what is spoken, and give it the control page
 * @vgpu: nobody else uses it
 *
 * Return: 0 or -ENODEV, -EPROTO.
 */
int vgpu_ctrl_start(struct vgpu_dev *vgpu)
{
	int ret = vgpu_ctrl_negotiate(vgpu);

	if (ret)
		return ret;
	vgpu_ctrl_read_info(vgpu);
	vgpu->status_at = jiffies - HZ;
	memset(vgpu->ctrl, 0, sizeof(*vgpu->ctrl));
	dma_wmb(); /* before the host looks at it */
	lo_hi_writeq(vgpu->ctrl_dma, vgpu->bar + VGPU_REG_CTRL_ADDR_LO);
	vgpu->ctrl_seq = vgpu_read(vgpu, VGPU_REG_CTRL_SEQ);
	return vgpu_is_silent(vgpu, vgpu->ctrl_seq) ? -ENODEV : 0;
}

/* Takes the control page from the host. */
void vgpu_ctrl_stop(struct vgpu_dev *vgpu)
{
	lo_hi_writeq(0, vgpu->bar + VGPU_REG_CTRL_ADDR_LO);
	vgpu_read(vgpu, VGPU_REG_CTRL_SEQ); /* fence */
}

/* What the host says about the VF; inside vgpu_enter(). 0 or -ENODEV. */
int vgpu_ctrl_info(struct vgpu_dev *vgpu, struct vgpu_ioc_info *info)
{
	/* The host's administrator may change these two at any time. */
	if (time_after(jiffies, READ_ONCE(vgpu->info_at) + HZ)) {
		u32 slice_us = vgpu_read(vgpu, VGPU_REG_SLICE_US);

		if (vgpu_is_silent(vgpu, slice_us))
			return -ENODEV;
		WRITE_ONCE(vgpu->info.slice_us, slice_us);
		WRITE_ONCE(vgpu->info.weight, vgpu_read(vgpu, VGPU_REG_WEIGHT));
		WRITE_ONCE(vgpu->info_at, jiffies);
	}
	*info = vgpu->info;
	return 0;
}

/* ---- Commands ---- */

/* The list of a memory's pieces as the host reads it. */
struct vgpu_segment_list {
	struct device *dev;
	size_t page_bytes;
	unsigned int page_count;
	struct vgpu_segment_page {
		struct vgpu_segment *at;
		dma_addr_t dma;
	} page[];
};

static void vgpu_segment_list_free(struct vgpu_segment_list *list)
{
	while (list->page_count--)
		dma_free_coherent(list->dev, list->page_bytes, list->page[list->page_count].at,
				  list->page[list->page_count].dma);
	kvfree(list);
}

static struct vgpu_segment_list *vgpu_segment_list_new(struct device *dev, unsigned int pages,
						       size_t page_bytes)
{
	struct vgpu_segment_list *list = kvzalloc(struct_size(list, page, pages),
						  GFP_KERNEL_ACCOUNT);

	if (!list)
		return NULL;
	list->dev = dev;
	list->page_bytes = page_bytes;
	for (; list->page_count < pages; list->page_count++) {
		struct vgpu_segment_page *page = &list->page[list->page_count];

		page->at = dma_alloc_coherent(dev, page_bytes, &page->dma, VGPU_GFP);
		if (!page->at) {
			vgpu_segment_list_free(list);
			return NULL;
		}
	}
	return list;
}

/* Older hosts want it contiguous. */
static struct vgpu_segment_list *vgpu_segment_list(struct vgpu_dev *vgpu, struct vgpu_mem *mem,
						   struct vgpu_ctrl_cmd *cmd)
{
	bool paged = vgpu->features & VGPU_FEATURE_SEGMENT_PAGES;
	unsigned int per_page = paged ? VGPU_SEGMENTS_PER_PAGE : mem->piece_count;
	size_t bytes = paged ? PAGE_SIZE : PAGE_ALIGN(per_page * sizeof(struct vgpu_segment));
	struct vgpu_segment_list *list;
	unsigned int i;

	list = vgpu_segment_list_new(&vgpu->pdev->dev, DIV_ROUND_UP(mem->piece_count, per_page),
				     bytes);
	if (!list)
		return NULL;
	for (i = 0; i < mem->piece_count; i++) {
		struct vgpu_segment *segment = &list->page[i / per_page].at[i % per_page];

		segment->addr = cpu_to_le64(mem->pieces[i].dma);
		segment->bytes = cpu_to_le64(mem->pieces[i].bytes);
	}
	/* Behind the segments of a page: where the next one is. */
	for (i = 0; i + 1 < list->page_count; i++)
		list->page[i].at[per_page].addr = cpu_to_le64(list->page[i + 1].dma);
	cmd->flags = cpu_to_le32(paged ? VGPU_CTRL_SEGMENT_PAGES : 0);
	cmd->seg_count = cpu_to_le32(mem->piece_count);
	cmd->seg_list = cpu_to_le64(list->page[0].dma);
	return list;
}

/* 0 or an errno that user space knows. -ENODEV and -EAGAIN are ours. */
static int vgpu_ctrl_status(struct vgpu_dev *vgpu, __le32 raw)
{
	s32 status = le32_to_cpu(raw);

	if (status > 0 || status < -VGPU_MAX_ERRNO) {
		dev_warn_ratelimited(&vgpu->dev, "the host answers with status %d\n", status);
		return -EPROTO;
	}
	if (status == -ENODEV)
		return -ENXIO;
	return status == -EAGAIN ? -EBUSY : status;
}

static int vgpu_ctrl_run(struct vgpu_dev *vgpu, const struct vgpu_ctrl_cmd *cmd)
{
	u32 seq;

	lockdep_assert_held(&vgpu->ctrl_lock);
	if (READ_ONCE(vgpu->state) == VGPU_DEAD)
		return -ENXIO;
	vgpu->ctrl->cmd = *cmd;
	dma_wmb(); /* before the host looks at it */
	iowrite32(1, vgpu->bar + VGPU_REG_CTRL_KICK);
	seq = vgpu_read(vgpu, VGPU_REG_CTRL_SEQ);
	if (seq == vgpu->ctrl_seq + 1) {
		vgpu->ctrl_seq = seq;
		dma_rmb(); /* the answer after the count */
		return vgpu_ctrl_status(vgpu, READ_ONCE(vgpu->ctrl->cmd.status));
	}
	if (vgpu_is_silent(vgpu, seq))
		return -ENODEV;
	/* It could not read the page, or has forgotten it in a reset of its own: tell it again. */
	dev_warn_ratelimited(&vgpu->dev, "the host did not run command %u\n",
			     le32_to_cpu(cmd->op));
	queue_work(system_long_wq, &vgpu->recover);
	return -EIO;
}

/**
 * vgpu_ctrl_command() - run one command
 * @vgpu: the device, inside vgpu_enter() or with life_lock held
 * @op: VGPU_CTRL_*
 * @channel: its channel
 * @buffer: its buffer or 0
 * @mem: the memory that the command announces, or NULL
 *
 * Return: 0 or a negative errno. After -ENODEV (fell silent in this command) the host may hold
 * @mem, after any other error it does not.
 */
int vgpu_ctrl_command(struct vgpu_dev *vgpu, u32 op, u32 channel, u32 buffer, struct vgpu_mem *mem)
{
	struct vgpu_ctrl_cmd cmd = {
		.op = cpu_to_le32(op),
		.channel = cpu_to_le32(channel),
		.buffer = cpu_to_le32(buffer),
	};
	struct vgpu_segment_list *list = NULL;
	int ret;

	if (mem) {
		list = vgpu_segment_list(vgpu, mem, &cmd);
		if (!list)
			return -ENOMEM;
	}
	if (op == VGPU_CTRL_CHANNEL_CREATE && vgpu->features & VGPU_FEATURE_CLIENT_PID)
		cmd.client_pid = cpu_to_le32(task_tgid_nr(current));
	ret = mutex_lock_killable(&vgpu->ctrl_lock);
	if (!ret) {
		ret = vgpu_ctrl_run(vgpu, &cmd);
		mutex_unlock(&vgpu->ctrl_lock);
	}
	if (list)
		vgpu_segment_list_free(list);
	vgpu_ctrl_refresh(vgpu, false);
	return ret;
}

/**
 * vgpu_ctrl_read_status() - a part of struct vgpu_status as the host says it
 * @vgpu: the device, inside vgpu_enter()
 * @buf: where to
 * @off: from where
 * @count: at most so many bytes
 *
 * Who asks in a loop is told the same for a while, so that it costs the other users nothing.
 *
 * Return: bytes, or -EOPNOTSUPP (an older host) or another negative errno.
 */
ssize_t vgpu_ctrl_read_status(struct vgpu_dev *vgpu, char *buf, loff_t off, size_t count)
{
	const struct vgpu_ctrl_cmd cmd = { .op = cpu_to_le32(VGPU_CTRL_STATUS) };
	const struct vgpu_status *status = (void *)vgpu->ctrl + VGPU_CTRL_PAGE_STATUS;
	ssize_t ret = 0;

	if (!(vgpu->features & VGPU_FEATURE_STATUS))
		return -EOPNOTSUPP;
	if (mutex_lock_killable(&vgpu->ctrl_lock))
		return -EINTR;
	if (time_after(jiffies, vgpu->status_at + VGPU_STATUS_AGE)) {
		ret = vgpu_ctrl_run(vgpu, &cmd);
		if (!ret)
			vgpu->status_at = jiffies;
	}
	if (!ret)
		ret = memory_read_from_buffer(buf, count, &off, status, sizeof(*status));
	mutex_unlock(&vgpu->ctrl_lock);
	return ret;
}

/* Inside vgpu_enter(). */
void vgpu_ctrl_doorbell(struct vgpu_dev *vgpu, u32 channel)
{
	iowrite32(1, vgpu->bar + VGPU_REG_DOORBELL(channel));
}

/* ---- What the host reports ---- */

/* Is the interrupt line up? Not any more. A device in D3 or without a host answers all ones. */
bool vgpu_ctrl_take_line(struct vgpu_dev *vgpu)
{
	return vgpu_read(vgpu, VGPU_REG_IRQ_STATUS) == VGPU_IRQ_PENDING;
}

/* Does the host say something new of channel @i? It is taken over if @take. Under seen_lock. */
static bool vgpu_slot_news(struct vgpu_dev *vgpu, unsigned int i, bool take)
{
	const struct vgpu_ctrl_page *page = vgpu->ctrl;
	struct vgpu_slot *slot = &vgpu->slots[i];
	u32 state = le32_to_cpu(READ_ONCE(page->channel_state[i]));
	u32 acks = le32_to_cpu(READ_ONCE(page->buffer_ack[i]));
	u32 events = le32_to_cpu(READ_ONCE(page->events[i]));

	/* A state that there is not: as good as none. */
	if (state > VGPU_CHANNEL_CLOSING)
		state = VGPU_CHANNEL_LOST;
	if (slot->state == state && slot->acks == acks && slot->events == events)
		return false;
	if (take) {
		WRITE_ONCE(slot->state, state);
		WRITE_ONCE(slot->acks, acks);
		slot->events = events;
	}
	return true;
}

static void vgpu_slot_wake(struct vgpu_slot *slot)
{
	atomic_inc(&slot->wakes);
	wake_up_all(&slot->wait);
}

/**
 * vgpu_ctrl_refresh() - look at what the host has written, and wake who waits for it
 * @vgpu: the device, inside vgpu_enter(), with life_lock held, or in its interrupt's thread
 * @wake_all: wake all channels; the host may be too old to say which one is meant
 */
void vgpu_ctrl_refresh(struct vgpu_dev *vgpu, bool wake_all)
{
	DECLARE_BITMAP(changed, VGPU_MAX_CHANNELS) = {};
	unsigned int i;

	spin_lock_irq(&vgpu->seen_lock);
	for_each_set_bit(i, vgpu->used, VGPU_MAX_CHANNELS)
		if (vgpu_slot_news(vgpu, i, true) || wake_all)
			__set_bit(i, changed);
	spin_unlock_irq(&vgpu->seen_lock);
	for_each_set_bit(i, changed, VGPU_MAX_CHANNELS)
		vgpu_slot_wake(&vgpu->slots[i]);
}

/**
 * vgpu_ctrl_refresh_one() - the same in the interrupt itself: one channel, at most one sleeper
 * @vgpu: the device
 *
 * Return: false when more is to be done: vgpu_ctrl_refresh() does it.
 */
bool vgpu_ctrl_refresh_one(struct vgpu_dev *vgpu)
{
	unsigned int i, count = 0, one = 0;
	const struct list_head *sleepers;

	spin_lock(&vgpu->seen_lock);
	for_each_set_bit(i, vgpu->used, VGPU_MAX_CHANNELS)
		if (vgpu_slot_news(vgpu, i, false) && !count++)
			one = i;
	/* Sleepers that come or go now change how many are woken, not that they are. */
	sleepers = &vgpu->slots[one].wait.head;
	if (count == 1 && (list_empty(sleepers) || list_is_singular(sleepers)))
		vgpu_slot_news(vgpu, one, true);
	else
		count = 0;
	spin_unlock(&vgpu->seen_lock);
	if (count)
		vgpu_slot_wake(&vgpu->slots[one]);
	return count;
}
