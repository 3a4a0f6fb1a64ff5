// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/vgpuN: a file is a channel. User memory is touched here only, and with no lock held: a page
 * of it may take for ever to appear.
 *
 * A file belongs to the process that opened it. A forked child shares it, but not the mappings, and
 * it may neither ring its parent's doorbell nor swallow its events, nor keep what its parent had.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

#include "vgpu.h"

/* Entries of one channel's wait queue: bounds what one interrupt costs. */
#define VGPU_MAX_WAITERS 128

static int vgpu_file_open(struct inode *inode, struct file *file)
{
	struct vgpu_dev *vgpu = container_of(inode->i_cdev, struct vgpu_dev, cdev);
	struct vgpu_channel *channel;

	do {
		if (READ_ONCE(vgpu->state) == VGPU_QUIET && file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_killable(vgpu->ready, READ_ONCE(vgpu->state) != VGPU_QUIET))
			return -EINTR;
		/* Nothing is allocated for a device that can't be used. */
		if (READ_ONCE(vgpu->state) != VGPU_RUNNING)
			return -ENODEV;
		channel = vgpu_channel_open(vgpu, file);
	} while (channel == ERR_PTR(-EAGAIN));
	if (IS_ERR(channel))
		return PTR_ERR(channel);
	file->private_data = channel;
	return nonseekable_open(inode, file);
}

static int vgpu_file_flush(struct file *file, fl_owner_t id)
{
	vgpu_channel_flush(file->private_data);
	return 0;
}

static int vgpu_file_release(struct inode *inode, struct file *file)
{
	vgpu_channel_close(file->private_data);
	return 0;
}

/* ---- ioctl ---- */

/* Where the answer goes: the struct of the caller, which is not shorter than what is known. */
struct vgpu_answer {
	void __user *to;
	size_t room;
	size_t known;
};

static int vgpu_answer(const struct vgpu_answer *answer, const void *from)
{
	if (copy_to_user(answer->to, from, answer->known) ||
	    clear_user(answer->to + answer->known, answer->room - answer->known))
		return -EFAULT;
	return 0;
}

static int vgpu_ioctl_info(struct vgpu_channel *channel, void *arg,
			   const struct vgpu_answer *answer)
{
	struct vgpu_ioc_info *info = arg;
	int srcu, ret;

	ret = vgpu_channel_enter(channel, &srcu);
	if (ret)
		return ret;
	ret = vgpu_ctrl_info(channel->vgpu, info);
	vgpu_leave(channel->vgpu, srcu);
	info->channel = channel->index;
	info->channel_bytes = channel->area->bytes;
	return ret ? ret : vgpu_answer(answer, info);
}

static int vgpu_ioctl_kick(struct vgpu_channel *channel, void *arg,
			   const struct vgpu_answer *answer)
{
	int srcu, ret;

	ret = vgpu_channel_enter(channel, &srcu);
	if (ret)
		return ret;
	if (vgpu_user_may_ring(channel->user))
		vgpu_ctrl_doorbell(channel->vgpu, channel->index);
	else
		queue_delayed_work(vgpu_reaper, &channel->ring, 1);
	vgpu_leave(channel->vgpu, srcu);
	return 0;
}

static int vgpu_ioctl_buffer_alloc(struct vgpu_channel *channel, void *arg,
				   const struct vgpu_answer *answer)
{
	struct vgpu_ioc_buffer *request = arg;
	struct vgpu_buffer *buffer;

	if (!request->bytes || !PAGE_ALIGNED(request->bytes) ||
	    request->bytes > VGPU_BUFFER_MAX_BYTES || request->buffer || request->mbz)
		return -EINVAL;
	if (vgpu_channel_lost(channel))
		return READ_ONCE(channel->vgpu->state) == VGPU_RUNNING ? -EIO : -ENODEV;
	buffer = vgpu_buffer_prepare(channel, request->bytes);
	if (IS_ERR(buffer))
		return PTR_ERR(buffer);
	request->buffer = buffer->id;
	request->mmap_offset = (u64)buffer->id << PAGE_SHIFT;
	/* Before anybody can know the buffer: a fault leaves nothing behind. */
	if (vgpu_answer(answer, request)) {
		vgpu_buffer_discard(channel, buffer);
		return -EFAULT;
	}
	return vgpu_buffer_publish(channel, buffer);
}

static int vgpu_ioctl_buffer_free(struct vgpu_channel *channel, void *arg,
				  const struct vgpu_answer *answer)
{
	const struct vgpu_ioc_buffer *request = arg;

	if (!request->buffer || request->mbz)
		return -EINVAL;
	return vgpu_buffer_free(channel, request->buffer);
}

static const struct {
	unsigned int cmd;
	int (*run)(struct vgpu_channel *channel, void *arg, const struct vgpu_answer *answer);
} vgpu_ioctls[] = {
	[_IOC_NR(VGPU_IOC_INFO)] = { VGPU_IOC_INFO, vgpu_ioctl_info },
	[_IOC_NR(VGPU_IOC_KICK)] = { VGPU_IOC_KICK, vgpu_ioctl_kick },
	[_IOC_NR(VGPU_IOC_BUFFER_ALLOC)] = { VGPU_IOC_BUFFER_ALLOC, vgpu_ioctl_buffer_alloc },
	[_IOC_NR(VGPU_IOC_BUFFER_FREE)] = { VGPU_IOC_BUFFER_FREE, vgpu_ioctl_buffer_free },
};

/*
 * The size in the number of a command is that of the caller's struct. A newer one may be longer,
 * with zeroes behind what this driver knows; none is shorter than the first that was published.
 */
static long vgpu_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vgpu_channel *channel = file->private_data;
	struct vgpu_answer answer = { (void __user *)arg, _IOC_SIZE(cmd) };
	union {
		struct vgpu_ioc_info info;
		struct vgpu_ioc_buffer buffer;
	} known = {};
	unsigned int nr = _IOC_NR(cmd);
	int ret;

	if (_IOC_TYPE(cmd) != _IOC_TYPE(VGPU_IOC_INFO) || nr >= ARRAY_SIZE(vgpu_ioctls))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(vgpu_ioctls));
	answer.known = _IOC_SIZE(vgpu_ioctls[nr].cmd);
	if (!vgpu_ioctls[nr].run || _IOC_DIR(cmd) != _IOC_DIR(vgpu_ioctls[nr].cmd) ||
	    answer.room < answer.known)
		return -ENOTTY;
	if (current->mm != channel->mm)
		return -EBADF;
	if (_IOC_DIR(cmd) & _IOC_WRITE) {
		ret = copy_struct_from_user(&known, answer.known, answer.to, answer.room);
		if (ret)
			return ret;
	}
	ret = vgpu_ioctls[nr].run(channel, &known, &answer);
	/* A reset that begins now ends the channel as one a moment ago has done. */
	if (ret == -EAGAIN)
		return -EIO;
	return ret == -ENXIO ? -ENODEV : ret;
}

/* ---- mmap and poll ---- */

static int vgpu_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vgpu_channel *channel = file->private_data;
	struct vgpu_mem *mem;
	int ret;

	if (current->mm != channel->mm)
		return -EBADF;
	if (!vma->vm_pgoff)
		return vgpu_mem_mmap(channel->area, vma);
	mem = vgpu_buffer_mem(channel, vma->vm_pgoff);
	if (!mem)
		return -EINVAL;
	ret = vgpu_mem_mmap(mem, vma);
	vgpu_mem_put(mem);
	return ret;
}

/* Is there room for one more who waits? One interrupt wakes them all. */
static bool vgpu_file_may_wait(wait_queue_head_t *wait)
{
	unsigned int waiters = 0;
	struct list_head *at;
	unsigned long flags;

	spin_lock_irqsave(&wait->lock, flags);
	list_for_each(at, &wait->head)
		if (++waiters == VGPU_MAX_WAITERS)
			break;
	spin_unlock_irqrestore(&wait->lock, flags);
	return waiters < VGPU_MAX_WAITERS;
}

/* One waiter at a time: an event that one poll has reported is not reported to the next. */
static __poll_t vgpu_file_poll(struct file *file, poll_table *table)
{
	struct vgpu_channel *channel = file->private_data;
	struct vgpu_slot *slot = channel->slot;
	__poll_t events = 0;
	int now;

	if (current->mm != channel->mm ||
	    (table && table->_qproc && !vgpu_file_may_wait(&slot->wait)))
		return EPOLLERR;
	poll_wait(file, &slot->wait, table);
	now = atomic_read(&slot->wakes);
	if (atomic_xchg(&channel->seen_wakes, now) != now)
		events |= EPOLLIN | EPOLLRDNORM;
	if (vgpu_channel_lost(channel))
		events |= EPOLLHUP | EPOLLERR;
	return events;
}

const struct file_operations vgpu_fops = {
	.owner = THIS_MODULE,
	.open = vgpu_file_open,
	.flush = vgpu_file_flush,
	.release = vgpu_file_release,
	.unlocked_ioctl = vgpu_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = vgpu_file_mmap,
	.poll = vgpu_file_poll,
};
