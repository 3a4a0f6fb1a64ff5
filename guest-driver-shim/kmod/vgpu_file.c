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
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "vgpu.h"

/* How long a command waits for a reset or suspend that is under way. */
#define VGPU_READY_WAIT (10 * HZ)
#define VGPU_BUFFER_MAX_BYTES SZ_4G

static int vgpu_file_open(struct inode *inode, struct file *file)
{
	struct vgpu_dev *vgpu = container_of(inode->i_cdev, struct vgpu_dev, cdev);
	struct vgpu_channel *channel;

	if (!current->mm || READ_ONCE(vgpu->state) == VGPU_GONE)
		return -ENODEV;
	channel = vgpu_channel_new(vgpu);
	if (!channel)
		return -ENOMEM;
	channel->file_mapping = file->f_mapping;
	file->private_data = channel;
	return nonseekable_open(inode, file);
}

/* A descriptor of the file is closed, perhaps by the end of the process. */
static int vgpu_file_flush(struct file *file, fl_owner_t id)
{
	struct vgpu_channel *channel = file->private_data;

	if (vgpu_channel_is_orphan(channel))
		vgpu_channel_end(channel);
	return 0;
}

/* By close(), the last munmap() or the end of the process. */
static int vgpu_file_release(struct inode *inode, struct file *file)
{
	struct vgpu_channel *channel = file->private_data;
	struct vgpu_dev *vgpu = channel->vgpu;

	/* With it nobody asks, and nobody is to wait for a thread that is preempted in between. */
	if (!vgpu->direct) {
		down_read(&vgpu->binding);
		channel->file_mapping = NULL;
		up_read(&vgpu->binding);
	}
	vgpu_channel_end(channel);
	vgpu_channel_put(channel);
	return 0;
}

/* ---- ioctl ---- */

/**
 * struct vgpu_call - a command of a program
 * @channel: of its file
 * @to: where the answer goes: the struct of the caller
 * @room: its size
 * @known: of it, what this driver knows
 */
struct vgpu_call {
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
static int vgpu_wait_ready(const struct vgpu_call *call)
{
	struct vgpu_dev *vgpu = call->channel->vgpu;
	long left = wait_event_freezable_timeout(vgpu->ready,
						 READ_ONCE(vgpu->state) != VGPU_QUIET,
						 VGPU_READY_WAIT);

	return left < 0 ? left : vgpu_state_error(vgpu);
}

static bool vgpu_is_made(struct vgpu_channel *channel)
{
	return smp_load_acquire(&channel->made); /* pairs with vgpu_ioctl_channel() */
}

static int vgpu_read_info(struct vgpu_channel *channel, struct vgpu_ioc_info *info)
{
	int ret = vgpu_is_made(channel) ? vgpu_channel_enter(channel) : vgpu_enter(channel->vgpu);

	if (ret)
		return ret;
	*info = channel->vgpu->info;
	info->channel = channel->index;
	info->channel_bytes = channel->area_bytes;
	vgpu_leave(channel->vgpu);
	return 0;
}

static int vgpu_ioctl_info(const struct vgpu_call *call, void *arg)
{
	int ret = vgpu_is_made(call->channel) ? 0 : vgpu_wait_ready(call);

	if (!ret)
		ret = vgpu_read_info(call->channel, arg);
	return ret ? ret : vgpu_answer(call, arg);
}

static int vgpu_ioctl_status(const struct vgpu_call *call, void *arg)
{
	struct vgpu_dev *vgpu = call->channel->vgpu;
	int ret = vgpu_wait_ready(call);

	if (!ret)
		ret = vgpu_enter(vgpu);
	if (ret)
		return ret;
	ret = vgpu_ctrl_status(vgpu, arg);
	vgpu_leave(vgpu);
	return ret ? ret : vgpu_answer(call, arg);
}

/* The answer is written before the host knows the channel: a fault leaves nothing behind. */
static int vgpu_make_channel(const struct vgpu_call *call, void *arg)
{
	struct vgpu_channel *channel = call->channel;
	/* Nothing is allocated for a device that can't be used. */
	int ret = vgpu_wait_ready(call);

	if (ret)
		return ret;
	ret = vgpu_channel_prepare(channel);
	if (!ret)
		ret = vgpu_read_info(channel, arg);
	if (!ret)
		ret = vgpu_answer(call, arg);
	if (!ret)
		ret = vgpu_channel_create(channel);
	if (ret && !channel->announced)
		vgpu_channel_give_back(channel);
	return ret;
}

static int vgpu_ioctl_channel(const struct vgpu_call *call, void *arg)
{
	struct vgpu_channel *channel = call->channel;
	int ret;

	if (xchg(&channel->asked, true))
		return -EEXIST;
	do {
		ret = vgpu_make_channel(call, arg);
	} while (ret == -EAGAIN && !vgpu_state_error(channel->vgpu));
	if (!ret)
		smp_store_release(&channel->made, true); /* pairs with vgpu_is_made() */
	else if (!channel->announced)
		WRITE_ONCE(channel->asked, false);
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
	int ret = 0;
	long left;

	/* One tick more: the present one has begun. */
	left = wait_event_freezable_timeout(channel->wait,
					    atomic_read(&channel->wakes) != wait->events ||
					    (ret = vgpu_channel_error(channel)),
					    msecs_to_jiffies(wait->timeout_ms) + 1);
	if (left < 0 || ret)
		return left < 0 ? left : ret;
	if (!left)
		return -ETIMEDOUT;
	wait->events = atomic_read(&channel->wakes);
	atomic_set(&channel->waited, wait->events);
	return vgpu_answer(call, wait);
}

static int vgpu_add_buffer(const struct vgpu_call *call, struct vgpu_ioc_buffer *request)
{
	struct vgpu_channel *channel = call->channel;
	struct vgpu_mem *mem;
	int ret;

	if (!request->bytes || !PAGE_ALIGNED(request->bytes | request->address) ||
	    request->bytes > VGPU_BUFFER_MAX_BYTES || request->mmap_offset || request->buffer ||
	    request->mbz || request->address + request->bytes < request->address)
		return -EINVAL;
	ret = vgpu_channel_error(channel);
	if (!ret)
		ret = vgpu_user_pace_command(channel->user);
	if (ret)
		return ret;
	mem = vgpu_mem_make(channel, request->address, request->bytes);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	ret = vgpu_buffer_number(channel, &request->buffer);
	if (ret) {
		vgpu_mem_release(mem);
		return ret;
	}
	if (!request->address)
		request->mmap_offset = (u64)request->buffer << PAGE_SHIFT;
	/* Before anybody can know the buffer: a fault leaves nothing behind. */
	if (!vgpu_answer(call, request))
		return vgpu_buffer_add(channel, mem, request->buffer);
	vgpu_buffer_forget(channel, request->buffer, mem);
	return -EFAULT;
}

static int vgpu_ioctl_buffer_alloc(const struct vgpu_call *call, void *arg)
{
	struct vgpu_ioc_buffer *request = arg;

	return request->address ? -EINVAL : vgpu_add_buffer(call, request);
}

static int vgpu_ioctl_buffer_pin(const struct vgpu_call *call, void *arg)
{
	struct vgpu_ioc_buffer *request = arg;

	return request->address ? vgpu_add_buffer(call, request) : -EFAULT;
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
		.channel = file->private_data,
		.to = (void __user *)arg,
		.room = _IOC_SIZE(cmd),
	};
	unsigned int nr = _IOC_NR(cmd);
	bool made = vgpu_is_made(call.channel);
	int ret;

	if (_IOC_TYPE(cmd) != VGPU_IOC_TYPE || nr >= ARRAY_SIZE(vgpu_ioctls))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(vgpu_ioctls));
	call.known = _IOC_SIZE(vgpu_ioctls[nr].cmd);
	if (!vgpu_ioctls[nr].run || _IOC_DIR(cmd) != _IOC_DIR(vgpu_ioctls[nr].cmd) ||
	    call.room < call.known)
		return -ENOTTY;
	if (current->mm != call.channel->mm)
		return -EBADF;
	if (!made && !vgpu_ioctls[nr].without_channel)
		return -ENOTCONN;
	ret = vgpu_run_ioctl(&call, nr);
	/* A reset that begins now ends the channel as one a moment ago has done. */
	if (ret == -EAGAIN && made)
		return -EIO;
	/* A host that is there but has not answered loses all channels. */
	if (ret == -ENODEV && vgpu_state_error(call.channel->vgpu) != -ENODEV)
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
	if (!vgpu_is_made(channel))
		return -ENOTCONN;
	mem = vgpu_buffer_mem(channel, vma->vm_pgoff);
	if (!mem)
		return vma->vm_pgoff ? -EINVAL : -EIO;
	ret = vgpu_mem_mmap(mem, vma);
	vgpu_mem_put(mem);
	return ret;
}

static __poll_t vgpu_file_poll(struct file *file, poll_table *table)
{
	struct vgpu_channel *channel = file->private_data;
	__poll_t events = 0;

	if (current->mm != channel->mm || !vgpu_is_made(channel))
		return EPOLLERR;
	poll_wait(file, &channel->wait, table);
	if (atomic_read(&channel->wakes) != atomic_read(&channel->waited))
		events |= EPOLLIN | EPOLLRDNORM;
	if (vgpu_channel_error(channel))
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
