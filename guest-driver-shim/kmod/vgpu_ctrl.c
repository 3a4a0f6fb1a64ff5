// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registers and the control page: commands, one at a time, answered by the time the fence
 * register has been read; and what the host reports. Nothing outside of this file reads a register
 * or the page, and every value that comes from the host is checked here, once.
 */
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/jiffies.h>

#include "vgpu.h"

/* What reads of an absent device return. */
#define VGPU_NO_ANSWER (~0u)
/* What this driver makes use of. */
#define VGPU_FEATURES_DRIVER \
	(VGPU_FEATURE_BUFFERS | VGPU_FEATURE_EVENT_COUNTS | VGPU_FEATURE_CLIENT_PID | \
	 VGPU_FEATURE_STATUS | VGPU_FEATURE_BUSY | VGPU_FEATURE_BUSY_BUFFERS)
/* How old the host's figures may be that programs are told. */
#define VGPU_STATUS_AGE (HZ / 100)
#define VGPU_PIECES_BYTES (VGPU_MAX_PIECES * sizeof(struct vgpu_segment))
/* Largest errno that is known outside of the kernel. */
#define VGPU_MAX_ERRNO 133

static u32 vgpu_read(struct vgpu_dev *vgpu, u32 reg)
{
	return ioread32(vgpu->bar + reg);
}

/**
 * vgpu_state_error() - what calls say of the state
 * @vgpu: the device
 *
 * Return: 0, -EAGAIN (a reset or suspend is under way) or -ENODEV.
 */
int vgpu_state_error(struct vgpu_dev *vgpu)
{
	int state = READ_ONCE(vgpu->state);

	if (state == VGPU_RUNNING)
		return 0;
	return state == VGPU_QUIET ? -EAGAIN : -ENODEV;
}

/**
 * vgpu_enter() - begin to use the device
 * @vgpu: the device
 *
 * Until vgpu_leave() nobody is preempted or sleeps, and the state does not change but to VGPU_DEAD.
 *
 * Return: 0, or as vgpu_state_error().
 */
int vgpu_enter(struct vgpu_dev *vgpu)
{
	int ret;

	read_lock(&vgpu->access_lock);
	ret = vgpu_state_error(vgpu);
	if (!ret) {
		/* Sparse can't follow a lock that depends on a value. */
		__release(&vgpu->access_lock);
		return 0;
	}
	read_unlock(&vgpu->access_lock);
	return ret;
}

/**
 * vgpu_leave() - the end of what vgpu_enter() began
 * @vgpu: the device
 */
void vgpu_leave(struct vgpu_dev *vgpu)
{
	__acquire(&vgpu->access_lock);
	read_unlock(&vgpu->access_lock);
}

/* Has the device fallen silent? Then nobody uses it any more until it is reset. */
static bool vgpu_is_silent(struct vgpu_dev *vgpu, u32 answer)
{
	if (answer != VGPU_NO_ANSWER || vgpu_read(vgpu, VGPU_REG_MAGIC) == VGPU_MAGIC)
		return false;
	if (cmpxchg(&vgpu->state, VGPU_RUNNING, VGPU_DEAD) == VGPU_RUNNING) {
		dev_err(&vgpu->dev, "the host does not answer: unusable until it is reset\n");
		vgpu_slots_lose(vgpu);
	}
	return true;
}

/**
 * vgpu_ctrl_is_silent() - ask the host whether it is there
 * @vgpu: the device, inside vgpu_enter()
 *
 * Return: true: it is not, and nobody uses the device any more.
 */
bool vgpu_ctrl_is_silent(struct vgpu_dev *vgpu)
{
	return vgpu_is_silent(vgpu, vgpu_read(vgpu, VGPU_REG_MAGIC));
}

/* ---- Start ---- */

/**
 * vgpu_ctrl_alloc() - the memory that commands take
 * @vgpu: the device
 *
 * Not the binding's: it stays while the device may use it, as all memory does.
 *
 * Return: 0 or -ENOMEM; vgpu_ctrl_free() follows in either case.
 */
int vgpu_ctrl_alloc(struct vgpu_dev *vgpu)
{
	struct device *dev = &vgpu->pdev->dev;

	BUILD_BUG_ON(sizeof(*vgpu->ctrl) > PAGE_SIZE);
	vgpu->ctrl = dma_alloc_coherent(dev, PAGE_SIZE, &vgpu->ctrl_dma, GFP_KERNEL);
	vgpu->pieces = dma_alloc_coherent(dev, VGPU_PIECES_BYTES, &vgpu->pieces_dma, GFP_KERNEL);
	return vgpu->ctrl && vgpu->pieces ? 0 : -ENOMEM;
}

/**
 * vgpu_ctrl_free() - the device does not use it any more
 * @vgpu: the device
 */
void vgpu_ctrl_free(struct vgpu_dev *vgpu)
{
	struct device *dev = &vgpu->pdev->dev;

	dma_free_coherent(dev, PAGE_SIZE, vgpu->ctrl, vgpu->ctrl_dma);
	dma_free_coherent(dev, VGPU_PIECES_BYTES, vgpu->pieces, vgpu->pieces_dma);
}

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

/* Once, so that a program that asks in a loop costs the other users of the VF nothing. */
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
}

/**
 * vgpu_ctrl_is_same() - is this the VF that was started last?
 * @vgpu: the device. In its sleep it may have become another one, of which nobody knows what the
 *	first one does
 *
 * Return: true: yes, or there was none.
 */
bool vgpu_ctrl_is_same(struct vgpu_dev *vgpu)
{
	u8 uuid[sizeof(vgpu->info.uuid)];

	memcpy_fromio(uuid, vgpu->bar + VGPU_REG_UUID, sizeof(uuid));
	return !vgpu->told || !memcmp(uuid, vgpu->info.uuid, sizeof(uuid));
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
	vgpu->told = true;
	vgpu->status_at = jiffies - HZ;
	memset(vgpu->ctrl, 0, sizeof(*vgpu->ctrl));
	dma_wmb(); /* before the host looks at it */
	lo_hi_writeq(vgpu->ctrl_dma, vgpu->bar + VGPU_REG_CTRL_ADDR_LO);
	vgpu->ctrl_seq = vgpu_read(vgpu, VGPU_REG_CTRL_SEQ);
	return vgpu_is_silent(vgpu, vgpu->ctrl_seq) ? -ENODEV : 0;
}

/**
 * vgpu_ctrl_stop() - take the control page from the host
 * @vgpu: nobody else uses it
 */
void vgpu_ctrl_stop(struct vgpu_dev *vgpu)
{
	lo_hi_writeq(0, vgpu->bar + VGPU_REG_CTRL_ADDR_LO);
	vgpu_read(vgpu, VGPU_REG_CTRL_SEQ); /* fence */
}

/* ---- Commands ---- */

/* 0 or an errno that user space knows. -ENODEV and -EAGAIN are ours. */
static int vgpu_ctrl_answer(struct vgpu_dev *vgpu, __le32 raw)
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
		return vgpu_ctrl_answer(vgpu, READ_ONCE(vgpu->ctrl->cmd.status));
	}
	if (vgpu_is_silent(vgpu, seq))
		return -ENODEV;
	/*
	 * It could not read the page, or has forgotten it in a reset of its own: tell it again. Or
	 * it was slow, and nobody waited for the count: then it has run the command.
	 */
	dev_warn_ratelimited(&vgpu->dev, "the host did not answer command %u\n",
			     le32_to_cpu(cmd->op));
	WRITE_ONCE(vgpu->forgotten, true);
	mod_delayed_work(system_highpri_wq, &vgpu->janitor, 0);
	return -ENODEV;
}

/**
 * vgpu_ctrl_command() - run a command that announces no memory
 * @vgpu: the device, inside vgpu_enter() or with life_lock held and nobody inside
 * @op: VGPU_CTRL_*
 * @channel: its channel
 * @buffer: its buffer or 0
 *
 * Return: 0 or a negative errno; -ENODEV: no answer, it may have run or not.
 */
int vgpu_ctrl_command(struct vgpu_dev *vgpu, u32 op, u32 channel, u32 buffer)
{
	const struct vgpu_ctrl_cmd cmd = {
		.op = cpu_to_le32(op),
		.channel = cpu_to_le32(channel),
		.buffer = cpu_to_le32(buffer),
	};
	int ret;

	spin_lock(&vgpu->ctrl_lock);
	ret = vgpu_ctrl_run(vgpu, &cmd);
	spin_unlock(&vgpu->ctrl_lock);
	return ret;
}

static int vgpu_ctrl_run_with(struct vgpu_dev *vgpu, struct vgpu_ctrl_cmd *cmd,
			      struct vgpu_mem *mem)
{
	struct scatterlist *sg;
	unsigned int i;
	int ret;

	cmd->seg_count = cpu_to_le32(mem->sgt.orig_nents);
	cmd->seg_list = cpu_to_le64(vgpu->pieces_dma);
	spin_lock(&vgpu->ctrl_lock);
	for_each_sgtable_sg(&mem->sgt, sg, i) {
		vgpu->pieces[i].addr = cpu_to_le64(sg_dma_address(sg));
		vgpu->pieces[i].bytes = cpu_to_le64(sg_dma_len(sg));
	}
	ret = vgpu_ctrl_run(vgpu, cmd);
	spin_unlock(&vgpu->ctrl_lock);
	return ret;
}

/**
 * vgpu_ctrl_announce() - tell the host of memory
 * @channel: its channel, which a CHANNEL_CREATE makes one of the present epoch
 * @op: VGPU_CTRL_CHANNEL_CREATE or VGPU_CTRL_BUFFER_ADD
 * @buffer: its buffer or 0
 * @mem: the memory
 *
 * Return: 0 or a negative errno. After 0 and -ENODEV (no answer to this command) the host may hold
 * @mem, after any other error it does not.
 */
int vgpu_ctrl_announce(struct vgpu_channel *channel, u32 op, u32 buffer, struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = channel->vgpu;
	bool create = op == VGPU_CTRL_CHANNEL_CREATE;
	struct vgpu_ctrl_cmd cmd = {
		.op = cpu_to_le32(op),
		.channel = cpu_to_le32(channel->index),
		.buffer = cpu_to_le32(buffer),
	};
	int ret = vgpu_mem_map(mem);

	if (!ret)
		ret = create ? vgpu_enter(vgpu) : vgpu_channel_enter(channel);
	if (ret)
		return ret == -ENODEV ? -ENXIO : ret;
	if (create && vgpu->features & VGPU_FEATURE_CLIENT_PID)
		cmd.client_pid = cpu_to_le32(task_tgid_nr(current));
	if (create)
		channel->epoch = vgpu->epoch;
	ret = vgpu_ctrl_run_with(vgpu, &cmd, mem);
	if (create)
		WRITE_ONCE(channel->announced, !ret || ret == -ENODEV);
	vgpu_leave(vgpu);
	return ret;
}

/**
 * vgpu_ctrl_status() - what the host says of the VF and its channels
 * @vgpu: the device, inside vgpu_enter()
 * @status: where to
 *
 * Who asks in a loop is told the same for a while, so that it costs the other users nothing.
 *
 * Return: 0, or -EOPNOTSUPP (an older host) or another negative errno.
 */
int vgpu_ctrl_status(struct vgpu_dev *vgpu, struct vgpu_status *status)
{
	const struct vgpu_ctrl_cmd cmd = { .op = cpu_to_le32(VGPU_CTRL_STATUS) };
	int ret = 0;

	if (!(vgpu->features & VGPU_FEATURE_STATUS))
		return -EOPNOTSUPP;
	spin_lock(&vgpu->ctrl_lock);
	if (time_after(jiffies, vgpu->status_at + VGPU_STATUS_AGE)) {
		ret = vgpu_ctrl_run(vgpu, &cmd);
		if (!ret)
			vgpu->status_at = jiffies;
	}
	if (!ret)
		memcpy(status, (void *)vgpu->ctrl + VGPU_CTRL_PAGE_STATUS, sizeof(*status));
	spin_unlock(&vgpu->ctrl_lock);
	return ret;
}

/**
 * vgpu_ctrl_doorbell() - ring a channel's doorbell
 * @vgpu: the device, inside vgpu_enter()
 * @channel: its channel
 */
void vgpu_ctrl_doorbell(struct vgpu_dev *vgpu, u32 channel)
{
	iowrite32(1, vgpu->bar + VGPU_REG_DOORBELL(channel));
}

/* ---- What the host reports; as vgpu_ctrl_command(), or in the interrupt ---- */

/**
 * vgpu_ctrl_take_line() - lower the interrupt line
 * @vgpu: the device; in D3 or without a host it answers all ones
 *
 * Return: was it up?
 */
bool vgpu_ctrl_take_line(struct vgpu_dev *vgpu)
{
	return vgpu_read(vgpu, VGPU_REG_IRQ_STATUS) == VGPU_IRQ_PENDING;
}

/**
 * vgpu_ctrl_news() - what the control page says of a channel now
 * @vgpu: the device
 * @channel: its channel
 *
 * Return: the news; a state that there is not is as good as none.
 */
struct vgpu_news vgpu_ctrl_news(struct vgpu_dev *vgpu, u32 channel)
{
	const struct vgpu_ctrl_page *page = vgpu->ctrl;
	struct vgpu_news news = {
		.state = le32_to_cpu(READ_ONCE(page->channel_state[channel])),
		.acks = le32_to_cpu(READ_ONCE(page->buffer_ack[channel])),
		.events = le32_to_cpu(READ_ONCE(page->events[channel])),
	};

	if (news.state > VGPU_CHANNEL_CLOSING)
		news.state = VGPU_CHANNEL_LOST;
	return news;
}
