// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/vgpuN. User memory is touched here only, and with no lock held: a page of it may take for
 * ever to appear.
 *
 * A file belongs to the process that opened it. A forked child shares it, but not the mappings, and
 * it may neither ring its parent's doorbell nor swallow its events, nor keep what its parent had.
 */
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vgpu.h"

/* How long a command waits for a reset or suspend that is under way. */
#define VGPU_READY_WAIT (10 * HZ)

/**
 * struct vgpu_file - an open file
 * @vgpu: referenced
 * @mm: the process that opened it
 * @channel: referenced; NULL until VGPU_IOC_CHANNEL, then never changed
 */
struct vgpu_file {
	struct vgpu_dev *vgpu;
	struct mm_struct *mm;
	struct vgpu_channel *channel;
};

static int vgpu_file_open(struct inode *inode, struct file *file)
{
	struct vgpu_dev *vgpu = container_of(inode->i_cdev, struct vgpu_dev, cdev);
	struct vgpu_file *opened = kzalloc(sizeof(*opened), GFP_KERNEL_ACCOUNT);

	if (!opened)
		return -ENOMEM;
	if (!current->mm || READ_ONCE(vgpu->state) == VGPU_GONE) {
		kfree(opened);
		return -ENODEV;
	}
	opened->vgpu = vgpu;
	get_device(&vgpu->dev);
	opened->mm = current->mm;
	mmgrab(opened->mm);
	file->private_data = opened;
	return nonseekable_open(inode, file);
}

/* NULL: there is none yet. */
static struct vgpu_channel *vgpu_file_channel(struct vgpu_file *opened)
{
	/* Pairs with vgpu_ioctl_channel(). */
	return smp_load_acquire(&opened->channel);
}

/* A descriptor of the file is closed, perhaps by the end of the process. */
static int vgpu_file_flush(struct file *file, fl_owner_t id)
{
	struct vgpu_channel *channel = vgpu_file_channel(file->private_data);

	if (channel && vgpu_channel_is_orphan(channel))
		vgpu_channel_end(channel);
	return 0;
}

static int vgpu_file_release(struct inode *inode, struct file *file)
{
	struct vgpu_file *opened = file->private_data;

	if (opened->channel)
		vgpu_channel_close(opened->channel);
	mmdrop(opened->mm);
	put_device(&opened->vgpu->dev);
	kfree(opened);
	return 0;
}

/* ---- ioctl ---- */

/**
 * struct vgpu_call - a command of a program
 * @file: whose
 * @opened: of it
 * @channel: of it; NULL for commands that need none
 * @to: where the answer goes: the struct of the caller
 * @room: its size
 * @known: of it, what this driver knows
 */
struct vgpu_call {
	struct file *file;
	struct vgpu_file *opened;
	struct vgpu_channel *channel;
	void __user *to;
	size_t room;
	size_t known;
};

static int vgpu_answer(const struct vgpu_call *call, const void *from)
{
	if (copy_to_user(call->to, from, call->known) ||
	    clear_user(call->to + call->known, call->room - call->known))
		return -EFAULT;
	return 0;
}

/* 0 as soon as the device can be used, or -EAGAIN, -ENODEV, -ERESTARTSYS. */
static int vgpu_file_wait_ready(const struct vgpu_call *call)
{
	struct vgpu_dev *vgpu = call->opened->vgpu;
	long left = 1;

	if (!(call->file->f_flags & O_NONBLOCK))
		left = wait_event_freezable_timeout(vgpu->ready,
						    READ_ONCE(vgpu->state) != VGPU_QUIET,
						    VGPU_READY_WAIT);
	if (left < 0)
		return left;
	switch (READ_ONCE(vgpu->state)) {
	case VGPU_RUNNING:
		return 0;
	case VGPU_QUIET:
		return -EAGAIN;
	default:
		return -ENODEV;
	}
}

static int vgpu_file_info(struct vgpu_dev *vgpu, struct vgpu_channel *channel,
			  struct vgpu_ioc_info *info)
{
	int ret = channel ? vgpu_channel_enter(channel) : vgpu_enter(vgpu);

	if (ret)
		return ret;
	ret = vgpu_ctrl_info(vgpu, info);
	vgpu_leave(vgpu);
	if (channel) {
		info->channel = channel->index;
		info->channel_bytes = channel->area_bytes;
	}
	return ret;
}

static int vgpu_ioctl_info(const struct vgpu_call *call, void *arg)
{
	struct vgpu_channel *channel = vgpu_file_channel(call->opened);
	int ret = channel ? 0 : vgpu_file_wait_ready(call);

	if (!ret)
		ret = vgpu_file_info(call->opened->vgpu, channel, arg);
	return ret ? ret : vgpu_answer(call, arg);
}

static int vgpu_ioctl_status(const struct vgpu_call *call, void *arg)
{
	int ret = vgpu_file_wait_ready(call);

	if (!ret)
		ret = vgpu_enter(call->opened->vgpu);
	if (ret)
		return ret;
	ret = vgpu_ctrl_status(call->opened->vgpu, arg);
	vgpu_leave(call->opened->vgpu);
	return ret ? ret : vgpu_answer(call, arg);
}

static int vgpu_ioctl_channel(const struct vgpu_call *call, void *arg)
{
	struct vgpu_channel *channel;
	int ret;

	if (vgpu_file_channel(call->opened))
		return -EEXIST;
	do {
		/* Nothing is allocated for a device that can't be used. */
		ret = vgpu_file_wait_ready(call);
		if (ret)
			return ret;
		channel = vgpu_channel_open(call->opened->vgpu, call->file);
	} while (channel == ERR_PTR(-EAGAIN));
	if (IS_ERR(channel))
		return PTR_ERR(channel);
	ret = vgpu_file_info(call->opened->vgpu, channel, arg);
	if (!ret)
		ret = vgpu_answer(call, arg);
	/* Pairs with vgpu_file_channel(). */
	if (!ret && cmpxchg_release(&call->opened->channel, NULL, channel))
		ret = -EEXIST;
	if (ret)
		vgpu_channel_close(channel);
	return ret;
}

static int vgpu_ioctl_kick(const struct vgpu_call *call, void *arg)
{
	struct vgpu_channel *channel = call->channel;
	int ret = vgpu_user_pace_doorbell(channel->user);

	if (!ret)
		ret = vgpu_channel_enter(channel);
	if (ret)
		return ret;
	vgpu_ctrl_doorbell(channel->vgpu, channel->index);
	vgpu_leave(channel->vgpu);
	return 0;
}

static int vgpu_ioctl_wait(const struct vgpu_call *call, void *arg)
{
	struct vgpu_channel *channel = call->channel;
	struct vgpu_ioc_wait *wait = arg;
	unsigned long jiffies_left = msecs_to_jiffies(wait->timeout_ms);
	bool lost = false;
	long left;

	/* One tick more: the present one has begun. */
	left = wait_event_freezable_timeout(channel->wait,
					    atomic_read(&channel->wakes) != wait->events ||
					    (lost = vgpu_channel_lost(channel)),
					    jiffies_left + 1);
	if (left < 0)
		return left;
	if (lost)
		return READ_ONCE(channel->vgpu->state) == VGPU_RUNNING ? -EIO : -ENODEV;
	wait->events = atomic_read(&channel->wakes);
	atomic_set(&channel->waited, wait->events);
	return left ? vgpu_answer(call, wait) : -ETIMEDOUT;
}

/* The caller's reference of @mem is gone afterwards. */
static int vgpu_add_buffer(const struct vgpu_call *call, struct vgpu_ioc_buffer *request,
			   struct vgpu_mem *mem)
{
	struct vgpu_channel *channel = call->channel;
	int ret;

	if (IS_ERR(mem))
		return PTR_ERR(mem);
	ret = vgpu_buffer_number(channel, &request->buffer);
	if (ret) {
		vgpu_mem_release(mem);
		return ret;
	}
	if (!mem->owner)
		request->mmap_offset = (u64)request->buffer << PAGE_SHIFT;
	/* Before anybody can know the buffer: a fault leaves nothing behind. */
	if (vgpu_answer(call, request)) {
		vgpu_buffer_forget(channel, request->buffer);
		vgpu_mem_release(mem);
		return -EFAULT;
	}
	return vgpu_buffer_add(channel, mem, request->buffer);
}

static int vgpu_may_add_buffer(const struct vgpu_call *call, const struct vgpu_ioc_buffer *request)
{
	if (!request->bytes || !PAGE_ALIGNED(request->bytes) ||
	    request->bytes > VGPU_BUFFER_MAX_BYTES || request->mmap_offset || request->buffer ||
	    request->mbz)
		return -EINVAL;
	if (vgpu_channel_lost(call->channel))
		return READ_ONCE(call->channel->vgpu->state) == VGPU_RUNNING ? -EIO : -ENODEV;
	return vgpu_user_pace_command(call->channel->user);
}

static int vgpu_ioctl_buffer_alloc(const struct vgpu_call *call, void *arg)
{
	struct vgpu_ioc_buffer *request = arg;
	int ret = request->address ? -EINVAL : vgpu_may_add_buffer(call, request);

	if (ret)
		return ret;
	return vgpu_add_buffer(call, request, vgpu_mem_alloc(call->channel->vgpu,
							     call->channel->user, request->bytes));
}

static int vgpu_ioctl_buffer_pin(const struct vgpu_call *call, void *arg)
{
	struct vgpu_ioc_buffer *request = arg;
	int ret;

	if (!PAGE_ALIGNED(request->address) || request->address + request->bytes < request->address)
		return -EINVAL;
	ret = vgpu_may_add_buffer(call, request);
	if (ret)
		return ret;
	return vgpu_add_buffer(call, request,
			       vgpu_mem_pin(call->channel->vgpu, call->channel->user,
					    request->address, request->bytes));
}

static int vgpu_ioctl_buffer_free(const struct vgpu_call *call, void *arg)
{
	const struct vgpu_ioc_buffer *request = arg;
	int ret;

	if (!request->buffer || request->address || request->mmap_offset || request->mbz)
		return -EINVAL;
	ret = vgpu_user_pace_command(call->channel->user);
	return ret ? ret : vgpu_buffer_free(call->channel, request->buffer);
}

static const struct {
	unsigned int cmd;
	int (*run)(const struct vgpu_call *call, void *arg);
	bool without_channel;
} vgpu_ioctls[] = {
	[_IOC_NR(VGPU_IOC_INFO)] = { VGPU_IOC_INFO, vgpu_ioctl_info, true },
	[_IOC_NR(VGPU_IOC_STATUS)] = { VGPU_IOC_STATUS, vgpu_ioctl_status, true },
	[_IOC_NR(VGPU_IOC_CHANNEL)] = { VGPU_IOC_CHANNEL, vgpu_ioctl_channel, true },
	[_IOC_NR(VGPU_IOC_KICK)] = { VGPU_IOC_KICK, vgpu_ioctl_kick },
	[_IOC_NR(VGPU_IOC_WAIT)] = { VGPU_IOC_WAIT, vgpu_ioctl_wait },
	[_IOC_NR(VGPU_IOC_BUFFER_ALLOC)] = { VGPU_IOC_BUFFER_ALLOC, vgpu_ioctl_buffer_alloc },
	[_IOC_NR(VGPU_IOC_BUFFER_PIN)] = { VGPU_IOC_BUFFER_PIN, vgpu_ioctl_buffer_pin },
	[_IOC_NR(VGPU_IOC_BUFFER_FREE)] = { VGPU_IOC_BUFFER_FREE, vgpu_ioctl_buffer_free },
};

/* What a command brings and is answered. The largest one does not belong on the stack. */
static int vgpu_run_ioctl(const struct vgpu_call *call, unsigned int nr)
{
	void *known = kzalloc(max(call->known, 1ul), GFP_KERNEL_ACCOUNT);
	int ret = 0;

	if (!known)
		return -ENOMEM;
	if (_IOC_DIR(vgpu_ioctls[nr].cmd) & _IOC_WRITE)
		ret = copy_struct_from_user(known, call->known, call->to, call->room);
	if (!ret)
		ret = vgpu_ioctls[nr].run(call, known);
	kfree(known);
	return ret;
}

/*
 * The size in the number of a command is that of the caller's struct. A newer one may be longer,
 * with zeroes behind what this driver knows; none is shorter than the first that was published.
 */
static long vgpu_file_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct vgpu_call call = {
		.file = file,
		.opened = file->private_data,
		.to = (void __user *)arg,
		.room = _IOC_SIZE(cmd),
	};
	unsigned int nr = _IOC_NR(cmd);
	int ret;

	if (_IOC_TYPE(cmd) != VGPU_IOC_TYPE || nr >= ARRAY_SIZE(vgpu_ioctls))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(vgpu_ioctls));
	call.known = _IOC_SIZE(vgpu_ioctls[nr].cmd);
	if (!vgpu_ioctls[nr].run || _IOC_DIR(cmd) != _IOC_DIR(vgpu_ioctls[nr].cmd) ||
	    call.room < call.known)
		return -ENOTTY;
	if (current->mm != call.opened->mm)
		return -EBADF;
	call.channel = vgpu_file_channel(call.opened);
	if (!call.channel && !vgpu_ioctls[nr].without_channel)
		return -ENOTCONN;
	ret = vgpu_run_ioctl(&call, nr);
	/* A reset that begins now ends the channel as one a moment ago has done. */
	if (ret == -EAGAIN && call.channel)
		return -EIO;
	return ret == -ENXIO ? -ENODEV : ret;
}

/* ---- mmap and poll ---- */

static int vgpu_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct vgpu_file *opened = file->private_data;
	struct vgpu_channel *channel = vgpu_file_channel(opened);
	struct vgpu_mem *mem;
	int ret;

	if (current->mm != opened->mm)
		return -EBADF;
	if (!channel)
		return -ENOTCONN;
	mem = vma->vm_pgoff ? vgpu_buffer_mem(channel, vma->vm_pgoff) : vgpu_channel_area(channel);
	if (!mem)
		return vma->vm_pgoff ? -EINVAL : -EIO;
	ret = vgpu_mem_mmap(mem, vma);
	vgpu_mem_put(mem);
	return ret;
}

static __poll_t vgpu_file_poll(struct file *file, poll_table *table)
{
	struct vgpu_file *opened = file->private_data;
	struct vgpu_channel *channel = vgpu_file_channel(opened);
	__poll_t events = 0;

	if (current->mm != opened->mm || !channel)
		return EPOLLERR;
	poll_wait(file, &channel->wait, table);
	if (atomic_read(&channel->wakes) != atomic_read(&channel->waited))
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
