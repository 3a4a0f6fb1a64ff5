/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vgpu: guest driver of a vgpud virtual function.
 *
 * One opened /dev/vgpuN is one channel: memory that a user process shares with its executor on the host. The
 * driver never looks into the rings; it allocates the memory, tells the host where it lies, rings doorbells,
 * turns the interrupt into wake-ups, and takes the memory back only when the host has let go of it.
 */
#ifndef VGPU_H
#define VGPU_H

#include <linux/build_bug.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <uapi/vgpu_abi.h>
#include <uapi/vgpu_ioctl.h>

/* How long the host may take to let go of memory before the driver complains (it keeps waiting) or gives up. */
#define VGPU_RELEASE_WARN_MS 10000
#define VGPU_BUFFER_FREE_MS 10000
#define VGPU_REMOVE_MS 5000
#define VGPU_MAX_BUFFERS 4096

struct vgpu_dev {
	struct kref ref; /* the PCI binding and every open file */
	struct pci_dev *pdev;
	void __iomem *bar;
	int id;
	char name[16];
	struct miscdevice misc;
	u32 max_channels;

	struct rw_semaphore alive_sem; /* read-held around every access to the device: vgpu_enter() */
	bool dead;                     /* no access any more; written under alive_sem */

	struct mutex ctrl_lock; /* one command at a time */
	struct vgpu_mem *ctrl_mem;
	struct vgpu_ctrl_page *ctrl;
	u32 ctrl_seq;

	struct mutex channels_lock;
	struct vgpu_channel *channels[VGPU_MAX_CHANNELS];
	bool abandoned; /* vgpu_channels_abandon() has run; written under channels_lock */

	wait_queue_head_t wait; /* woken by every interrupt, reset and removal */
	atomic_t interrupts;
	bool use_msi;
	u64 max_pinned_bytes;
	atomic64_t pinned_bytes;
};

/* Pages in a few physically contiguous pieces that the device may access until vgpu_mem_dma_unmap(). */
struct vgpu_chunk {
	struct page *page;
	unsigned int order;
	dma_addr_t dma;
};

struct vgpu_mem {
	struct kref ref; /* the channel and every mapping into user space */
	u64 bytes;
	struct device *dma_dev; /* NULL once unmapped from the device */
	unsigned int chunk_count;
	struct vgpu_chunk *chunks;
};

struct vgpu_buffer {
	struct vgpu_mem *mem;
	u32 id;
	bool removing; /* the host was told; never free before it answers */
};

struct vgpu_channel {
	struct vgpu_dev *vgpu;
	u32 index;
	struct vgpu_mem *area;
	bool lost; /* a reset of the VF ended it; under alive_sem */
	atomic_t seen_interrupts;
	struct mutex buffer_lock; /* one BUFFER_FREE at a time: acknowledgements are counted, not named */
	struct xarray buffers;
	atomic_t buffer_count;
	u32 removes; /* BUFFER_REMOVE commands accepted; under buffer_lock */
	struct work_struct reap;
};

/* vgpu_mem.c */
struct vgpu_mem *vgpu_mem_alloc(struct device *dev, u64 bytes);
void vgpu_mem_get(struct vgpu_mem *mem);
void vgpu_mem_put(struct vgpu_mem *mem);
/* Only after the host has let go of the memory. */
void vgpu_mem_dma_unmap(struct vgpu_mem *mem);
int vgpu_mem_mmap(struct vgpu_mem *mem, struct vm_area_struct *vma);
/* Kernel address of the first chunk. */
void *vgpu_mem_start(struct vgpu_mem *mem);

/* Address of the first chunk as the device sees it. */
dma_addr_t vgpu_mem_dma(struct vgpu_mem *mem);

/* vgpu_ctrl.c: all three inside vgpu_enter(). */
int vgpu_ctrl_set_page(struct vgpu_dev *vgpu);
int vgpu_ctrl_command(struct vgpu_dev *vgpu, u32 op, u32 channel, u32 buffer, struct vgpu_mem *mem);
void vgpu_ctrl_doorbell(struct vgpu_dev *vgpu, u32 channel);
/* These two at any time. */
u32 vgpu_ctrl_channel_state(struct vgpu_dev *vgpu, u32 channel);
u32 vgpu_ctrl_buffer_ack(struct vgpu_dev *vgpu, u32 channel);

/* vgpu_buffer.c */
/* mmap offset of buffer b: b << VGPU_BUFFER_SHIFT; the channel area lies at 0. */
#define VGPU_BUFFER_SHIFT 32
#define VGPU_BUFFER_MAX_BYTES (1ull << VGPU_BUFFER_SHIFT)
/* Both inside vgpu_enter(). */
int vgpu_buffer_alloc(struct vgpu_channel *channel, struct vgpu_ioc_buffer *arg);
int vgpu_buffer_free(struct vgpu_channel *channel, const struct vgpu_ioc_buffer *arg);
/* A referenced buffer's memory, NULL when there is no such buffer. */
struct vgpu_mem *vgpu_buffer_mem(struct vgpu_channel *channel, u64 id);

/* vgpu_channel.c */
extern const struct file_operations vgpu_channel_fops;
extern struct workqueue_struct *vgpu_reaper;
/* The device is going: unmaps the memory of every channel that the host has let go of, keeps the rest forever. */
void vgpu_channels_abandon(struct vgpu_dev *vgpu);

/* vgpu_drv.c */
void vgpu_dev_get(struct vgpu_dev *vgpu);
void vgpu_dev_put(struct vgpu_dev *vgpu);
/* 0 = the device may be used until vgpu_leave(); -ENODEV = it is gone. */
int vgpu_enter(struct vgpu_dev *vgpu);
void vgpu_leave(struct vgpu_dev *vgpu);
u64 vgpu_read64(struct vgpu_dev *vgpu, u32 reg);
/* `bytes` (a multiple of 4) of the registers from `reg` on. */
void vgpu_read_bytes(struct vgpu_dev *vgpu, u32 reg, void *to, size_t bytes);

#endif
