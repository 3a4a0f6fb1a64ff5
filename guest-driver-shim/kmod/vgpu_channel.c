// SPDX-License-Identifier: GPL-2.0
/* Channels as files: open, mmap, poll, ioctl, release. */
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vgpu.h"

struct workqueue_struct *vgpu_reaper;

/* ---- Opening ---- */

static int vgpu_channel_reserve(struct vgpu_dev *vgpu, struct vgpu_channel *channel)
{
	u32 i;
	int ret = -EBUSY;

	mutex_lock(&vgpu->channels_lock);
	for (i = 0; i < vgpu->max_channels; i++) {
		if (vgpu->channels[i])
			continue;
		channel->index = i;
		vgpu->channels[i] = channel;
		ret = 0;
		break;
	}
	mutex_unlock(&vgpu->channels_lock);
	return ret;
}

static void vgpu_channel_unreserve(struct vgpu_channel *channel)
{
	mutex_lock(&channel->vgpu->channels_lock);
	channel->vgpu->channels[channel->index] = NULL;
	mutex_unlock(&channel->vgpu->channels_lock);
}

static void vgpu_channel_fill_header(struct vgpu_channel *channel)
{
	struct vgpu_channel_header *header = vgpu_mem_start(channel->area);

	BUILD_BUG_ON(sizeof(*header) > PAGE_SIZE);
	header->magic = VGPU_MAGIC;
	header->abi_version = VGPU_ABI_VERSION;
	header->payload_bytes = channel->area->bytes - VGPU_CHANNEL_PAYLOAD_OFFSET;
	header->guest_pid = task_tgid_nr(current);
}

/* The area, as large as memory allows. */
static struct vgpu_mem *vgpu_channel_area(struct vgpu_dev *vgpu)
{
	struct vgpu_mem *area = vgpu_mem_alloc(&vgpu->pdev->dev, VGPU_CHANNEL_BYTES);

	if (IS_ERR(area) && PTR_ERR(area) == -ENOMEM)
		area = vgpu_mem_alloc(&vgpu->pdev->dev, VGPU_CHANNEL_MIN_BYTES);
	return area;
}

static void vgpu_channel_reap(struct work_struct *work);

static int vgpu_channel_create(struct vgpu_dev *vgpu, struct vgpu_channel *channel)
{
	int ret;

	channel->area = vgpu_channel_area(vgpu);
	if (IS_ERR(channel->area))
		return PTR_ERR(channel->area);
	vgpu_channel_fill_header(channel);
	atomic_set(&channel->seen_interrupts, atomic_read(&vgpu->interrupts));
	ret = vgpu_ctrl_command(vgpu, VGPU_CTRL_CHANNEL_CREATE, channel->index, 0, channel->area);
	if (!ret)
		return 0;
	dev_warn_ratelimited(&vgpu->pdev->dev, "channel %u for pid %d: the host refused it (%d)\n", channel->index,
			     task_tgid_nr(current), ret);
	if (ret != -ENODEV)
		vgpu_mem_dma_unmap(channel->area);
	else
		vgpu_mem_get(channel->area); /* the device may have seen it before it fell silent */
	vgpu_mem_put(channel->area);
	return ret;
}

static int vgpu_channel_open(struct inode *inode, struct file *file)
{
	struct vgpu_dev *vgpu = container_of(file->private_data, struct vgpu_dev, misc);
	struct vgpu_channel *channel;
	int ret = vgpu_enter(vgpu);

	if (ret)
		return ret;
	channel = kzalloc(sizeof(*channel), GFP_KERNEL_ACCOUNT);
	if (!channel) {
		ret = -ENOMEM;
		goto leave;
	}
	channel->vgpu = vgpu;
	mutex_init(&channel->buffer_lock);
	xa_init_flags(&channel->buffers, XA_FLAGS_ALLOC1);
	INIT_WORK(&channel->reap, vgpu_channel_reap);
	ret = vgpu_channel_reserve(vgpu, channel);
	if (ret)
		goto free;
	ret = vgpu_channel_create(vgpu, channel);
	if (ret)
		goto unreserve;
	vgpu_dev_get(vgpu);
	file->private_data = channel;
	nonseekable_open(inode, file);
	goto leave;
unreserve:
	vgpu_channel_unreserve(channel);
free:
	kfree(channel);
leave:
	vgpu_leave(vgpu);
	return ret;
}

/* ---- Closing ---- */

/* Has the host let go of everything of this channel? */
static bool vgpu_channel_is_free(struct vgpu_channel *channel)
{
	return vgpu_ctrl_channel_state(channel->vgpu, channel->index) == VGPU_CHANNEL_FREE;
}

static void vgpu_channel_for_each_mem(struct vgpu_channel *channel, void (*visit)(struct vgpu_mem *mem))
{
	struct vgpu_buffer *buffer;
	unsigned long id;

	xa_for_each(&channel->buffers, id, buffer)
		visit(buffer->mem);
	visit(channel->area);
}

/* Waits, however long it takes, until the host or the device is gone from the channel's memory. */
static void vgpu_channel_wait_free(struct vgpu_channel *channel)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	bool warned = false;

	while (!wait_event_idle_timeout(vgpu->wait, READ_ONCE(vgpu->abandoned) || vgpu_channel_is_free(channel),
					msecs_to_jiffies(VGPU_RELEASE_WARN_MS))) {
		if (warned)
			continue;
		warned = true;
		dev_warn(&vgpu->pdev->dev, "channel %u: the host still holds its memory %u s after the end; waiting\n",
			 channel->index, VGPU_RELEASE_WARN_MS / 1000);
	}
}

static void vgpu_channel_reap(struct work_struct *work)
{
	struct vgpu_channel *channel = container_of(work, struct vgpu_channel, reap);
	struct vgpu_dev *vgpu = channel->vgpu;
	struct vgpu_buffer *buffer;
	unsigned long id;
	int ret = vgpu_enter(vgpu);

	if (!ret) {
		ret = vgpu_ctrl_command(vgpu, VGPU_CTRL_CHANNEL_DESTROY, channel->index, 0, NULL);
		if (ret && ret != -ENODEV && !channel->lost)
			dev_warn(&vgpu->pdev->dev, "channel %u: the host refused to end it (%d)\n", channel->index, ret);
		vgpu_leave(vgpu);
	}
	vgpu_channel_wait_free(channel);

	mutex_lock(&vgpu->channels_lock);
	/* Else vgpu_channels_abandon() has decided about the memory. */
	if (!vgpu->abandoned)
		vgpu_channel_for_each_mem(channel, vgpu_mem_dma_unmap);
	vgpu->channels[channel->index] = NULL;
	mutex_unlock(&vgpu->channels_lock);

	xa_for_each(&channel->buffers, id, buffer) {
		atomic64_sub(buffer->mem->bytes, &vgpu->pinned_bytes);
		vgpu_mem_put(buffer->mem);
		kfree(buffer);
	}
	xa_destroy(&channel->buffers);
	vgpu_mem_put(channel->area);
	kfree(channel);
	vgpu_dev_put(vgpu);
}

/* Runs when the last reference is gone: every close, every mapping, also by kill -9. */
static int vgpu_channel_release(struct inode *inode, struct file *file)
{
	struct vgpu_channel *channel = file->private_data;

	queue_work(vgpu_reaper, &channel->reap);
	return 0;
}

void vgpu_channels_abandon(struct vgpu_dev *vgpu)
{
	u32 i;

	mutex_lock(&vgpu->channels_lock);
	for (i = 0; i < vgpu->max_channels; i++) {
		struct vgpu_channel *channel = vgpu->channels[i];

		if (!channel)
			continue;
		if (!vgpu_channel_is_free(channel) && !pci_dev_is_disconnected(vgpu->pdev)) {
			dev_warn(&vgpu->pdev->dev, "channel %u: the host never let go; its memory is lost\n", i);
			vgpu_channel_for_each_mem(channel, vgpu_mem_get);
		}
		vgpu_channel_for_each_mem(channel, vgpu_mem_dma_unmap);
	}
	WRITE_ONCE(vgpu->abandoned, true);
	mutex_unlock(&vgpu->channels_lock);
	wake_up_all(&vgpu->wait);
}

/* ---- ioctl, mmap, poll ---- */

static void vgpu_channel_info(struct vgpu_channel *channel, struct vgpu_ioc_info *info)
{
	struct vgpu_dev *vgpu = channel->vgpu;

	info->abi_version = VGPU_ABI_VERSION;
	info->channel = channel->index;
	info->channel_bytes = channel->area->bytes;
	info->vram_bytes = vgpu_read64(vgpu, VGPU_REG_VRAM_LO);
	info->features = vgpu_read64(vgpu, VGPU_REG_FEATURES_LO);
	info->slice_us = ioread32(vgpu->bar + VGPU_REG_SLICE_US);
	info->weight = ioread32(vgpu->bar + VGPU_REG_WEIGHT);
	info->pci_domain = pci_domain_nr(vgpu->pdev->bus);
	info->pci_bus = vgpu->pdev->bus->number;
	info->pci_device = PCI_SLOT(vgpu->pdev->devfn);
	vgpu_read_bytes(vgpu, VGPU_REG_UUID, info->uuid, sizeof(info->uuid));
	vgpu_read_bytes(vgpu, VGPU_REG_NAME, info->name, sizeof(info->name));
	info->name[sizeof(info->name) - 1] = 0;
}

static long vgpu_ioctl_info(struct vgpu_channel *channel, void __user *user)
{
	struct vgpu_ioc_info info = {};

	vgpu_channel_info(channel, &info);
	return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

static long vgpu_ioctl_kick(struct vgpu_channel *channel, void __user *user)
{
	vgpu_ctrl_doorbell(channel->vgpu, channel->index);
	return 0;
}

static long vgpu_ioctl_buffer_alloc(struct vgpu_channel *channel, void __user *user)
{
	struct vgpu_ioc_buffer arg;
	int ret;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	ret = vgpu_buffer_alloc(channel, &arg);
	if (ret)
		return ret;
	/* On a fault the buffer stays until the file is closed, like any other that was never freed. */
	return copy_to_user(user, &arg, sizeof(arg)) ? -EFAULT : 0;
}

static long vgpu_ioctl_buffer_free(struct vgpu_channel *channel, void __user *user)
{
	struct vgpu_ioc_buffer arg;

	if (copy_from_user(&arg, user, sizeof(arg)))
		return -EFAULT;
	return vgpu_buffer_free(channel, &arg);
}

static const struct {
	unsigned int cmd;
	long (*run)(struct vgpu_channel *channel, void __user *user);
} vgpu_ioctls[] = {
	{ VGPU_IOC_INFO, vgpu_ioctl_info },
	{ VGPU_IOC_KICK, vgpu_ioctl_kick },
	{ VGPU_IOC_BUFFER_ALLOC, vgpu_ioctl_buffer_alloc },
	{ VGPU_IOC_BUFFER_FREE, vgpu_ioctl_buffer_free },
};

static long vgpu_channel_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vgpu_channel *channel = file->private_data;
	long ret;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(vgpu_ioctls); i++) {
		if (vgpu_ioctls[i].cmd != cmd)
			continue;
		ret = vgpu_enter(channel->vgpu);
		if (ret)
			return ret;
		ret = channel->lost ? -EIO : vgpu_ioctls[i].run(channel, (void __user *)arg);
		vgpu_leave(channel->vgpu);
		return ret;
	}
	return -ENOTTY;
}

static int vgpu_channel_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vgpu_channel *channel = file->private_data;
	u64 offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	struct vgpu_mem *mem;
	int ret;

	if (!offset)
		return vgpu_mem_mmap(channel->area, vma);
	if (offset & (VGPU_BUFFER_MAX_BYTES - 1))
		return -EINVAL;
	mem = vgpu_buffer_mem(channel, offset >> VGPU_BUFFER_SHIFT);
	if (!mem)
		return -EINVAL;
	ret = vgpu_mem_mmap(mem, vma);
	vgpu_mem_put(mem);
	return ret;
}

/* One waiter at a time per file: an interrupt that one poll has reported is not reported to the next. */
static __poll_t vgpu_channel_poll(struct file *file, poll_table *table)
{
	struct vgpu_channel *channel = file->private_data;
	struct vgpu_dev *vgpu = channel->vgpu;
	__poll_t events = 0;
	int now;

	poll_wait(file, &vgpu->wait, table);
	now = atomic_read(&vgpu->interrupts);
	if (atomic_xchg(&channel->seen_interrupts, now) != now)
		events |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(vgpu->dead) || READ_ONCE(channel->lost) ||
	    vgpu_ctrl_channel_state(vgpu, channel->index) == VGPU_CHANNEL_LOST)
		events |= EPOLLHUP | EPOLLERR;
	return events;
}

const struct file_operations vgpu_channel_fops = {
	.owner = THIS_MODULE,
	.open = vgpu_channel_open,
	.release = vgpu_channel_release,
	.unlocked_ioctl = vgpu_channel_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = vgpu_channel_mmap,
	.poll = vgpu_channel_poll,
};
