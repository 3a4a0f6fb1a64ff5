/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vgpu: guest driver of a vgpud virtual function (VF).
 *
 * One opened /dev/vgpuN is one channel: memory that a user process shares with its executor on the
 * host. The driver never looks into the rings; it allocates the memory, tells the host where it
 * lies, rings doorbells, turns the interrupt into wake-ups, and takes the memory back only when the
 * host has let go of it.
 *
 * Locks, outermost first:
 *   vgpu_dev.life_lock      one change of state at a time: reset, suspend, removal, recovery
 *   vgpu_channel.free_lock  one BUFFER_FREE at a time
 *   vgpu_dev.ctrl_lock      one command at a time
 *   vgpu_dev.slot_lock      which slots are taken, and by whom
 *   vgpu_dev.mem_lock       the lists of memory
 *   vgpu_users_lock         what users have
 *   vgpu_dev.seen_lock      copies of what the host writes into the control page
 * vgpu_dev.srcu is held around every access to registers, control page and shared pages, see
 * vgpu_enter(). Nothing is held while user memory is touched. docs/guest-driver.md has more.
 */
#ifndef VGPU_H
#define VGPU_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/kref.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <uapi/vgpu_abi.h>
#include <uapi/vgpu_ioctl.h>
#include <uapi/vgpu_status.h>

/* Pinned pages that fail rather than take memory by force: no OOM killer, no hard reclaim. */
#define VGPU_GFP (GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NORETRY | __GFP_NOWARN)
/* The cookies for mmap() fit into a 32-bit offset. The host takes no more per channel either. */
#define VGPU_MAX_BUFFERS 4096
#define VGPU_BUFFER_MAX_BYTES SZ_4G

/**
 * enum vgpu_state - what may be done with the device
 * @VGPU_QUIET: nothing for now: probe, reset, suspend, recovery; every earlier channel is lost
 * @VGPU_RUNNING: everything
 * @VGPU_DEAD: the host has fallen silent: nothing until the function is reset
 * @VGPU_GONE: the driver is unbound: nothing ever
 */
enum vgpu_state { VGPU_QUIET, VGPU_RUNNING, VGPU_DEAD, VGPU_GONE };

/**
 * struct vgpu_slot - one of the VF's channels as the host numbers them
 * @wait: sleepers of the channel; lives as long as the device, so waking needs no reference
 * @wakes: counts up with each event of the channel
 * @state: checked copy of what the host says, under seen_lock like @acks and @events
 * @acks: BUFFER_REMOVEs that the host has completed
 * @events: the host's counter of events
 * @channel: who has it, under slot_lock
 */
struct vgpu_slot {
	wait_queue_head_t wait;
	atomic_t wakes;
	u32 state;
	u32 acks;
	u32 events;
	struct vgpu_channel *channel;
};

/**
 * struct vgpu_dev - one VF
 * @dev: the class device, whose references are this struct's: the PCI binding and each channel
 * @info: what VGPU_IOC_INFO answers, less the channel's part
 * @info_at: jiffies when the changing part of @info was read
 * @status_at: jiffies when the host last wrote @ctrl's status, under ctrl_lock
 * @direct: the device reaches pages as they are; no bounce buffers, no unencrypted memory
 * @features: VGPU_FEATURES_TRANSPORT that both sides know
 * @state: enum vgpu_state
 * @epoch: counts resets; a channel of an earlier epoch is lost. Written under life_lock
 * @ready: woken when the state leaves VGPU_QUIET
 * @watch: while there are channels: looks whether the host and their processes are there
 * @ctrl_seq: commands that the host has counted, under ctrl_lock
 * @used: slots that are taken; written under slot_lock
 * @mems: memory, under mem_lock
 * @parked: memory of closed channels that the host may still write, under mem_lock
 */
struct vgpu_dev {
	struct device dev;
	struct cdev cdev;
	struct pci_dev *pdev;
	void __iomem *bar;
	bool msi;
	bool direct;
	struct vgpu_ioc_info info;
	unsigned long info_at;
	unsigned long status_at;
	u64 features;
	u32 max_channels;

	struct srcu_struct srcu;
	int state;
	u32 epoch;
	wait_queue_head_t ready;
	struct mutex life_lock; /* one change of state at a time */
	struct work_struct recover;
	struct delayed_work watch;

	struct mutex ctrl_lock; /* one command at a time */
	struct vgpu_ctrl_page *ctrl;
	dma_addr_t ctrl_dma;
	u32 ctrl_seq;

	spinlock_t seen_lock; /* the copies in @slots */
	struct mutex slot_lock; /* who has which slot */
	DECLARE_BITMAP(used, VGPU_MAX_CHANNELS);
	struct vgpu_slot slots[VGPU_MAX_CHANNELS];

	struct mutex mem_lock; /* the lists of memory and their sums */
	struct list_head mems;
	struct list_head parked;
	u64 pinned_bytes;
	u64 parked_bytes;
};

/**
 * struct vgpu_mem - pages that the host may access: a channel area or a buffer
 * @ref: its channel or buffer until the host has let go, and every mapping into user space
 * @user: is charged for the pages until they are freed
 * @cookie: vm_pgoff of a mapping of its first page
 * @link: in vgpu_dev.mems or .parked
 * @pieces: DMA allocations, each contiguous for the device; NULL once they are freed
 * @pages: every page, for faults
 * @stand_in: what mappings show when the driver is unbound: the first page, and all others
 */
struct vgpu_mem {
	struct kref ref;
	struct vgpu_dev *vgpu;
	struct vgpu_user *user;
	u64 bytes;
	pgoff_t cookie;
	struct list_head link;
	unsigned int piece_count;
	struct vgpu_piece {
		struct sg_table *sgt; /* or, with vgpu_dev.direct, @page */
		struct page *page;
		dma_addr_t dma;
		size_t bytes;
	} *pieces;
	struct page **pages;
	struct page *stand_in;
};

/* An entry of vgpu_channel.buffers. Once the host was told to remove it, it has to answer. */
struct vgpu_buffer {
	struct vgpu_mem *mem;
	u32 id;
	bool removing;
};

/**
 * struct vgpu_channel - an open file
 * @mm: the process that opened it; nobody else may use it
 * @mapping: of the file, to take its mappings away; NULL once closed; under slot_lock
 * @ending: the file is closed or its process is gone; under slot_lock
 * @epoch: vgpu_dev.epoch when it was made
 * @area: its rings; NULL once the host has let go of all its memory
 * @seen_wakes: vgpu_slot.wakes that poll() has reported
 * @removes: BUFFER_REMOVE commands accepted, under free_lock
 * @ring: rings the doorbell later
 * @reap: ends the channel, and frees it once the file is closed
 */
struct vgpu_channel {
	struct vgpu_dev *vgpu;
	struct vgpu_slot *slot;
	struct vgpu_user *user;
	struct mm_struct *mm;
	struct address_space *mapping;
	bool ending;
	u32 index;
	u32 epoch;
	struct vgpu_mem *area;
	atomic_t seen_wakes;
	struct xarray buffers;
	struct mutex free_lock; /* one BUFFER_FREE at a time */
	u32 removes;
	struct delayed_work ring;
	struct delayed_work reap;
	unsigned long complain_at;
	bool destroy_sent;
};

/* vgpu_user.c */
struct vgpu_user *vgpu_user_open(bool may_wait);
void vgpu_user_closing(struct vgpu_user *user);
void vgpu_user_close(struct vgpu_user *user, bool was_closing, bool channel);
int vgpu_user_charge(struct vgpu_user *user, u64 bytes);
void vgpu_user_uncharge(struct vgpu_user *user, u64 bytes);
bool vgpu_user_may_ring(struct vgpu_user *user);

/* vgpu_mem.c */
bool vgpu_mem_is_direct(struct device *dev);
struct vgpu_mem *vgpu_mem_alloc(struct vgpu_dev *vgpu, struct vgpu_user *user, u64 bytes);
void vgpu_mem_put(struct vgpu_mem *mem);
void vgpu_mem_release(struct vgpu_mem *mem);
int vgpu_mem_mmap(struct vgpu_mem *mem, struct vm_area_struct *vma);
void vgpu_mems_unpark(struct vgpu_dev *vgpu);
void vgpu_mems_make_stand_ins(struct vgpu_dev *vgpu);
void vgpu_mems_detach(struct vgpu_dev *vgpu);

/* vgpu_ctrl.c */
int vgpu_enter(struct vgpu_dev *vgpu, int *srcu);
void vgpu_leave(struct vgpu_dev *vgpu, int srcu);
int vgpu_ctrl_start(struct vgpu_dev *vgpu);
void vgpu_ctrl_stop(struct vgpu_dev *vgpu);
int vgpu_ctrl_command(struct vgpu_dev *vgpu, u32 op, u32 channel, u32 buffer, struct vgpu_mem *mem);
void vgpu_ctrl_doorbell(struct vgpu_dev *vgpu, u32 channel);
void vgpu_ctrl_refresh(struct vgpu_dev *vgpu, bool wake_all);
bool vgpu_ctrl_refresh_one(struct vgpu_dev *vgpu);
int vgpu_ctrl_info(struct vgpu_dev *vgpu, struct vgpu_ioc_info *info);
bool vgpu_ctrl_is_silent(struct vgpu_dev *vgpu);
ssize_t vgpu_ctrl_read_status(struct vgpu_dev *vgpu, char *buf, loff_t off, size_t count);
bool vgpu_ctrl_take_line(struct vgpu_dev *vgpu);

/* vgpu_buffer.c */
struct vgpu_buffer *vgpu_buffer_prepare(struct vgpu_channel *channel, u64 bytes);
int vgpu_buffer_publish(struct vgpu_channel *channel, struct vgpu_buffer *buffer);
void vgpu_buffer_discard(struct vgpu_channel *channel, struct vgpu_buffer *buffer);
int vgpu_buffer_free(struct vgpu_channel *channel, u32 id);
struct vgpu_mem *vgpu_buffer_mem(struct vgpu_channel *channel, unsigned long id);

/* vgpu_channel.c */
extern struct workqueue_struct *vgpu_reaper;
struct vgpu_channel *vgpu_channel_open(struct vgpu_dev *vgpu, struct file *file);
void vgpu_channel_close(struct vgpu_channel *channel);
void vgpu_channel_flush(struct vgpu_channel *channel);
bool vgpu_channel_lost(struct vgpu_channel *channel);
int vgpu_channel_enter(struct vgpu_channel *channel, int *srcu);
void vgpu_channels_end(struct vgpu_dev *vgpu);
void vgpu_channels_lose(struct vgpu_dev *vgpu);
void vgpu_channels_detach(struct vgpu_dev *vgpu);
void vgpu_channels_watch(struct work_struct *work);

/* vgpu_file.c */
extern const struct file_operations vgpu_fops;

#endif
