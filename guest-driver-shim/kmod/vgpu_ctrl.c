// SPDX-License-Identifier: GPL-2.0
/* The control page: one command at a time, answered by the time the fence register has been read. */
#include <linux/dma-mapping.h>

#include "vgpu.h"

#define VGPU_REG_GONE 0xffffffffu /* what reads of an absent device return */

/* Tells the host where the control page lies, and starts it anew. */
int vgpu_ctrl_set_page(struct vgpu_dev *vgpu)
{
	dma_addr_t dma = vgpu_mem_dma(vgpu->ctrl_mem);

	mutex_lock(&vgpu->ctrl_lock);
	memset(vgpu->ctrl, 0, sizeof(*vgpu->ctrl));
	iowrite32(lower_32_bits(dma), vgpu->bar + VGPU_REG_CTRL_ADDR_LO);
	iowrite32(upper_32_bits(dma), vgpu->bar + VGPU_REG_CTRL_ADDR_HI);
	vgpu->ctrl_seq = ioread32(vgpu->bar + VGPU_REG_CTRL_SEQ);
	mutex_unlock(&vgpu->ctrl_lock);
	return vgpu->ctrl_seq == VGPU_REG_GONE ? -ENODEV : 0;
}

static int vgpu_ctrl_run(struct vgpu_dev *vgpu, const struct vgpu_ctrl_cmd *cmd)
{
	s32 status;
	u32 seq;

	vgpu->ctrl->cmd = *cmd;
	vgpu->ctrl->cmd.status = -EIO;
	dma_wmb();
	iowrite32(1, vgpu->bar + VGPU_REG_CTRL_KICK);
	seq = ioread32(vgpu->bar + VGPU_REG_CTRL_SEQ);
	if (seq == VGPU_REG_GONE)
		return -ENODEV;
	if (seq == vgpu->ctrl_seq) {
		dev_warn_ratelimited(&vgpu->pdev->dev, "the host did not run command %u\n", cmd->op);
		return -EIO;
	}
	vgpu->ctrl_seq = seq;
	dma_rmb();
	status = min(READ_ONCE(vgpu->ctrl->cmd.status), 0);
	/* -ENODEV is ours: the device has fallen silent and may still hold the memory it was told of. */
	return status == -ENODEV ? -ENXIO : status;
}

/* The list of `mem`'s pieces as the host reads it: physically contiguous. */
static struct vgpu_segment *vgpu_segment_list(struct vgpu_dev *vgpu, struct vgpu_mem *mem, dma_addr_t *dma)
{
	struct vgpu_segment *list;
	unsigned int i;

	list = dma_alloc_coherent(&vgpu->pdev->dev, mem->chunk_count * sizeof(*list), dma, GFP_KERNEL | __GFP_NOWARN);
	if (!list)
		return NULL;
	for (i = 0; i < mem->chunk_count; i++) {
		list[i].addr = mem->chunks[i].dma;
		list[i].bytes = PAGE_SIZE << mem->chunks[i].order;
	}
	return list;
}

/* Runs one command and returns its status: 0 or a negative errno. `mem` is NULL for commands without memory. */
int vgpu_ctrl_command(struct vgpu_dev *vgpu, u32 op, u32 channel, u32 buffer, struct vgpu_mem *mem)
{
	struct vgpu_ctrl_cmd cmd = { .op = op, .channel = channel, .buffer = buffer };
	struct vgpu_segment *list = NULL;
	dma_addr_t list_dma;
	int ret;

	if (mem) {
		list = vgpu_segment_list(vgpu, mem, &list_dma);
		if (!list)
			return -ENOMEM;
		cmd.seg_count = mem->chunk_count;
		cmd.seg_list = list_dma;
	}
	mutex_lock(&vgpu->ctrl_lock);
	ret = vgpu_ctrl_run(vgpu, &cmd);
	mutex_unlock(&vgpu->ctrl_lock);
	if (list)
		dma_free_coherent(&vgpu->pdev->dev, mem->chunk_count * sizeof(*list), list, list_dma);
	return ret;
}

void vgpu_ctrl_doorbell(struct vgpu_dev *vgpu, u32 channel)
{
	iowrite32(1, vgpu->bar + VGPU_REG_DOORBELL(channel));
}

u32 vgpu_ctrl_channel_state(struct vgpu_dev *vgpu, u32 channel)
{
	return READ_ONCE(vgpu->ctrl->channel_state[channel]);
}

u32 vgpu_ctrl_buffer_ack(struct vgpu_dev *vgpu, u32 channel)
{
	return READ_ONCE(vgpu->ctrl->buffer_ack[channel]);
}
