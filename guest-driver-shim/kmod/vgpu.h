/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vgpu: guest driver of a vgpud virtual function (VF).
 *
 * A channel is memory that a user process shares with its executor on the host. The driver never
 * looks into the rings; it allocates the memory, tells the host where it lies, rings doorbells,
 * turns the interrupt into wake-ups, and takes the memory back only when the host has let go of it.
 *
 * Every object has one owner and a reference count; whoever keeps a pointer has a reference.
 *
 *   object          references
 *   vgpu_dev        the PCI binding, each open file, each channel
 *   vgpu_user       each channel, each piece of memory
 *   vgpu_channel    its file; its slot in vgpu_dev until the host has let go of its memory
 *   vgpu_mem        its channel until the host has let go of it, each mapping into user space
 *
 * Locks, outermost first. Only the first two are held by somebody who sleeps, and user processes
 * take neither for long: life_lock is the administrator's, free_lock each channel's own.
 *   vgpu_dev.life_lock      one change of state at a time: reset, suspend, removal, recovery
 *   vgpu_channel.free_lock  one BUFFER_FREE at a time
 *   vgpu_dev.access_lock    read: uses the device, see vgpu_enter(); write: changes its state
 *   vgpu_dev.ctrl_lock      one command at a time
 *   vgpu_dev.slot_lock      which slots are taken, and by whom
 *   vgpu_dev.mem_lock       the list of memory that the device has addresses of
 *   vgpu_users_lock         what users have
 * The last five are spinning locks: nobody is preempted who holds one, so a thread of low priority
 * can't keep others waiting. Nothing is allocated or freed, and no user memory touched, under them.
 */
#ifndef VGPU_H
#define VGPU_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/kref.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <uapi/vgpu_abi.h>
#include <uapi/vgpu_ioctl.h>
#include <uapi/vgpu_status.h>

/* Pages that fail rather than take memory by force: no OOM killer, no hard reclaim. */
#define VGPU_GFP (GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NORETRY | __GFP_NOWARN)
/* The cookies for mmap() fit into a 32-bit offset. The host takes no more per channel either. */
#define VGPU_MAX_BUFFERS 4096
#define VGPU_BUFFER_MAX_BYTES SZ_4G

/**
 * enum vgpu_state - what may be done with the device
 * @VGPU_QUIET: nothing for now: probe, reset, suspend, recovery, or the host goes on using memory
 *	that it was told to leave; every earlier channel is lost
 * @VGPU_RUNNING: everything
 * @VGPU_DEAD: the host has fallen silent, or errors of the bus have not been recovered from:
 *	nothing until the function is reset
 * @VGPU_GONE: the driver is unbound: nothing ever
 */
enum vgpu_state { VGPU_QUIET, VGPU_RUNNING, VGPU_DEAD, VGPU_GONE };

/**
 * struct vgpu_slot - one of the VF's channels as the host numbers them
 * @channel: who has it, with a reference, under slot_lock
 * @seen: what the host had written when it was last looked, under slot_lock
 */
struct vgpu_slot {
	struct vgpu_channel *channel;
	struct vgpu_news {
		u32 state;
		u32 acks;
		u32 events;
	} seen;
};

/**
 * struct vgpu_dev - one VF
 * @dev: the class device, whose references are this struct's
 * @msi: the interrupt is the device's alone
 * @direct: the device reaches pages as they are; no bounce buffers, no unencrypted memory
 * @features: VGPU_FEATURES_TRANSPORT that both sides know
 * @info: what VGPU_IOC_INFO answers
 * @info_at: jiffies when the changing part of @info was read
 * @state: enum vgpu_state, written with access_lock held for writing, but for RUNNING to DEAD
 * @epoch: counts stops; a channel of an earlier epoch is lost
 * @ready: woken when @state changes
 * @held: a reset, suspend or recovery is under way, whose end starts it; under life_lock
 * @recover: stops and starts it, or starts it as soon as the host has let go of memory
 * @janitor: ends channels, and looks whether the host and their processes are there
 * @binding: without @direct: read while memory of the DMA API is made, used or freed
 * @ctrl_seq: commands that the host has counted, under ctrl_lock
 * @status: the host's figures when they were asked for, at jiffies @status_at, under ctrl_lock
 * @mems: memory that the device has addresses of, under mem_lock
 */
struct vgpu_dev {
	struct device dev;
	struct cdev cdev;
	struct pci_dev *pdev;
	void __iomem *bar;
	bool msi;
	bool direct;
	u64 features;
	u32 max_channels;
	struct vgpu_ioc_info info;
	unsigned long info_at;

	rwlock_t access_lock;
	int state;
	u32 epoch;
	wait_queue_head_t ready;
	struct mutex life_lock; /* one change of state at a time */
	bool held;
	struct delayed_work recover;
	struct delayed_work janitor;
	struct rw_semaphore binding;

	spinlock_t ctrl_lock; /* one command at a time */
	struct vgpu_ctrl_page *ctrl;
	dma_addr_t ctrl_dma;
	u32 ctrl_seq;
	unsigned long status_at;

	spinlock_t slot_lock; /* who has which slot */
	struct vgpu_slot slots[VGPU_MAX_CHANNELS];

	spinlock_t mem_lock; /* @mems */
	struct list_head mems;
};

/**
 * struct vgpu_mem - pages that the host may access: a channel area or a buffer
 * @user: is charged for the pages until they are freed
 * @cookie: vm_pgoff of a mapping of its first page
 * @link: in vgpu_dev.mems as long as the device has addresses of it
 * @pieces: what is contiguous for the device
 * @mapped: so many of @pieces have addresses for the device; written inside vgpu_enter(), and by
 *	removal when nobody enters any more
 * @pages: every page. They are ordinary pages with a reference of this struct; mappings into user
 *	space have references of their own
 * @owner: @pages are this process's own and pinned
 */
struct vgpu_mem {
	struct kref ref;
	struct vgpu_dev *vgpu;
	struct vgpu_user *user;
	u64 bytes;
	pgoff_t cookie;
	struct list_head link;
	unsigned int piece_count;
	unsigned int mapped;
	struct vgpu_piece {
		struct sg_table *sgt; /* without vgpu_dev.direct */
		struct page *page;
		dma_addr_t dma;
		size_t bytes;
	} *pieces;
	unsigned long page_count;
	struct page **pages;
	struct mm_struct *owner;
};

/**
 * struct vgpu_channel - memory that a process and its executor share
 * @vgpu: referenced
 * @user: of the file
 * @mm: the process that opened the file; nobody else may use it
 * @file_mapping: of the file, to take its mappings away; NULL once it is closed; under map_lock
 * @epoch: vgpu_dev.epoch when it was made
 * @announced: the host may have its memory; written inside vgpu_enter()
 * @area_bytes: length of @area
 * @area: its rings; NULL once the host has let go of all its memory; under the lock of @buffers
 * @buffers: struct vgpu_mem by number, NULL while they are made; VGPU_REMOVING: the host was told
 * @removes: BUFFER_REMOVE commands accepted, under free_lock
 * @wakes: counts events
 * @waited: of them, those that VGPU_IOC_WAIT has answered
 * @ending: the file is closed or its process is gone: the janitor ends it; under slot_lock
 * @destroy_sent: by the janitor, who alone has this and @complain_at
 * @parked: in vgpu_parked
 */
struct vgpu_channel {
	struct kref ref;
	struct vgpu_dev *vgpu;
	struct vgpu_user *user;
	struct mm_struct *mm;
	struct mutex map_lock; /* @file_mapping */
	struct address_space *file_mapping;
	u32 index;
	u32 epoch;
	bool announced;
	u64 area_bytes;
	struct vgpu_mem *area;
	struct xarray buffers;
	struct mutex free_lock; /* one BUFFER_FREE at a time */
	u32 removes;
	wait_queue_head_t wait;
	atomic_t wakes;
	atomic_t waited;
	bool ending;
	bool destroy_sent;
	unsigned long complain_at;
	struct list_head parked;
};

#define VGPU_REMOVING XA_MARK_1

#define VGPU_LIMIT(name, value, what)			\
	static unsigned int name = (value);		\
	module_param(name, uint, 0644);			\
	MODULE_PARM_DESC(name, what " (" #value ")")

/**
 * struct vgpu_user_wait - where a wait for closed channels stands; zero at first
 * @end: of all waiting
 * @news: what had been given back when it was last looked
 */
struct vgpu_user_wait {
	unsigned long end;
	int news;
};

/* vgpu_user.c */
struct vgpu_user *vgpu_user_get(void);
void vgpu_user_put(struct vgpu_user *user);
void vgpu_user_closing(struct vgpu_user *user, int more);
void vgpu_users_have_news(void);
int vgpu_user_wait(struct vgpu_user *user, struct vgpu_user_wait *wait);
int vgpu_user_charge(struct vgpu_user *user, u64 bytes);
void vgpu_user_uncharge(struct vgpu_user *user, u64 bytes);
int vgpu_user_begin_work(struct vgpu_user *user);
void vgpu_user_end_work(struct vgpu_user *user);
int vgpu_user_pace_command(struct vgpu_user *user);
int vgpu_user_pace_doorbell(struct vgpu_user *user);

/* vgpu_mem.c */
bool vgpu_mem_is_direct(struct device *dev);
struct vgpu_mem *vgpu_mem_alloc(struct vgpu_dev *vgpu, struct vgpu_user *user, u64 bytes);
struct vgpu_mem *vgpu_mem_pin(struct vgpu_dev *vgpu, struct vgpu_user *user, u64 address, u64 bytes);
void vgpu_mem_put(struct vgpu_mem *mem);
void vgpu_mem_release(struct vgpu_mem *mem);
int vgpu_mem_mmap(struct vgpu_mem *mem, struct vm_area_struct *vma);
void vgpu_mems_detach(struct vgpu_dev *vgpu);

/* vgpu_ctrl.c */
int vgpu_enter(struct vgpu_dev *vgpu);
void vgpu_leave(struct vgpu_dev *vgpu);
int vgpu_ctrl_start(struct vgpu_dev *vgpu);
void vgpu_ctrl_stop(struct vgpu_dev *vgpu);
int vgpu_ctrl_command(struct vgpu_dev *vgpu, u32 op, u32 channel, u32 buffer);
int vgpu_ctrl_announce(struct vgpu_channel *channel, u32 op, u32 buffer, struct vgpu_mem *mem);
void vgpu_ctrl_doorbell(struct vgpu_dev *vgpu, u32 channel);
int vgpu_ctrl_info(struct vgpu_dev *vgpu, struct vgpu_ioc_info *info);
int vgpu_ctrl_status(struct vgpu_dev *vgpu, struct vgpu_status *status);
bool vgpu_ctrl_is_silent(struct vgpu_dev *vgpu);
bool vgpu_ctrl_take_line(struct vgpu_dev *vgpu);
struct vgpu_news vgpu_ctrl_news(struct vgpu_dev *vgpu, u32 channel);

/* vgpu_channel.c */
struct vgpu_channel *vgpu_channel_open(struct vgpu_dev *vgpu, struct file *file);
void vgpu_channel_close(struct vgpu_channel *channel);
void vgpu_channel_end(struct vgpu_channel *channel);
bool vgpu_channel_is_orphan(struct vgpu_channel *channel);
int vgpu_channel_enter(struct vgpu_channel *channel);
bool vgpu_channel_lost(struct vgpu_channel *channel);
struct vgpu_mem *vgpu_channel_area(struct vgpu_channel *channel);
void vgpu_channels_janitor(struct work_struct *work);
bool vgpu_channels_wake_one(struct vgpu_dev *vgpu);
void vgpu_channels_wake(struct vgpu_dev *vgpu);
void vgpu_channels_end(struct vgpu_dev *vgpu);
void vgpu_channels_lose(struct vgpu_dev *vgpu);
void vgpu_channels_give_back(struct vgpu_dev *vgpu);
void vgpu_channels_unmap(struct vgpu_dev *vgpu);
unsigned int vgpu_channels_count(struct vgpu_dev *vgpu);
u64 vgpu_channels_bytes(struct vgpu_dev *vgpu, bool parked);
void vgpu_channels_park(struct vgpu_dev *vgpu);
void vgpu_channels_unpark(struct pci_dev *pdev);

/* vgpu_buffer.c */
int vgpu_buffer_number(struct vgpu_channel *channel, u32 *id);
void vgpu_buffer_forget(struct vgpu_channel *channel, u32 id);
int vgpu_buffer_add(struct vgpu_channel *channel, struct vgpu_mem *mem, u32 id);
int vgpu_buffer_free(struct vgpu_channel *channel, u32 id);
struct vgpu_mem *vgpu_buffer_mem(struct vgpu_channel *channel, unsigned long id);
void vgpu_buffers_give_back(struct vgpu_channel *channel);

/* vgpu_file.c */
extern const struct file_operations vgpu_fops;

#endif
