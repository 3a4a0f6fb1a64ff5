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
 *   vgpu_dev        the PCI binding, each channel; what it has left behind, see vgpu_park()
 *   vgpu_user       each channel
 *   vgpu_channel    its file, its memory; its slot in vgpu_dev until the host has let go of that
 *   vgpu_mem        its channel until the host has let go of it, each mapping into user space
 *
 * Locks, outermost first. Only the first three are held by somebody who sleeps, and user processes
 * take none of them for long: life_lock is the administrator's, free_lock each channel's own, and
 * binding is in use only where memory comes from the DMA API. vgpu_park.c has one more, inside
 * life_lock, which is the administrator's, too.
 *   vgpu_dev.life_lock      one change of state at a time: reset, suspend, removal, recovery
 *   vgpu_channel.free_lock  one BUFFER_FREE at a time
 *   vgpu_dev.binding        read: uses memory of the DMA API; write: takes it away
 *   vgpu_dev.access_lock    read: uses the device, see vgpu_enter(); write: changes its state
 *   vgpu_dev.ctrl_lock      one command at a time
 *   vgpu_dev.slot_lock      which slots are taken, and by whom
 *   vgpu_dev.mem_lock       the list of memory that the device has addresses of
 *   vgpu_users_lock         what users have
 * The last five are spinning locks: nobody is preempted who holds one, so a thread of low priority
 * can't keep others waiting. Nothing is allocated or freed, and no user memory touched, under them,
 * and one piece of memory at a time is mapped for the device or unmapped.
 */
#ifndef VGPU_H
#define VGPU_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/freezer.h>
#include <linux/kref.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/semaphore.h>
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
/* A piece is contiguous for the device. The host maps each one, and its mappings are limited. */
#define VGPU_MAX_PIECES 8192
/* The largest piece; so many pages are pinned, mapped or freed at once. */
#define VGPU_PIECE_ORDER 9

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
 * @cdev: what its files are opened through
 * @pdev: the function, referenced
 * @bar: its registers
 * @msi: the interrupt is the device's alone
 * @direct: the device reaches pages as they are; no bounce buffers, no unencrypted memory
 * @features: VGPU_FEATURES_TRANSPORT that both sides know
 * @max_channels: so many of @slots there are
 * @info: what the host said at the last start, for VGPU_IOC_INFO
 * @access_lock: see vgpu_enter()
 * @state: enum vgpu_state, written with @access_lock held for writing, but for RUNNING to DEAD
 * @epoch: counts stops; a channel of an earlier epoch is lost
 * @ready: woken when @state changes
 * @life_lock: one change of state at a time
 * @held: a reset, suspend or removal is under way, whose end starts it; under @life_lock
 * @forgotten: the host does not run commands: it has to be stopped and started
 * @janitor: ends channels, looks whether the host and processes are there, and starts it again
 * @binding: without @direct: read while memory of the DMA API is made, used or freed
 * @parked: in vgpu_parked
 * @parked_bytes: what was counted for it there
 * @told: the host has been told addresses of ours; @info is what it said then
 * @ctrl_lock: one command at a time
 * @ctrl: the page that is shared with the host
 * @ctrl_dma: its address
 * @pieces: where memory lies, for the host, of the command that runs
 * @pieces_dma: its address
 * @ctrl_seq: commands that the host has counted, under @ctrl_lock
 * @status_at: jiffies when the host's figures were asked for, under @ctrl_lock
 * @slot_lock: who has which slot
 * @slots: the channels
 * @mem_lock: @mems
 * @mems: memory that the device has addresses of. Whoever takes it off the list ends them
 * @bytes: of the memory that the host has not let go of
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

	rwlock_t access_lock;
	int state;
	u32 epoch;
	wait_queue_head_t ready;
	struct mutex life_lock; /* one change of state at a time */
	bool held;
	bool forgotten;
	struct delayed_work janitor;
	struct rw_semaphore binding;
	struct list_head parked;
	unsigned long parked_bytes;
	bool told;

	spinlock_t ctrl_lock; /* one command at a time */
	struct vgpu_ctrl_page *ctrl;
	dma_addr_t ctrl_dma;
	struct vgpu_segment *pieces;
	dma_addr_t pieces_dma;
	u32 ctrl_seq;
	unsigned long status_at;

	spinlock_t slot_lock; /* who has which slot */
	struct vgpu_slot slots[VGPU_MAX_CHANNELS];

	spinlock_t mem_lock; /* @mems */
	struct list_head mems;
	atomic64_t bytes;
};

/**
 * struct vgpu_user - a user who has something
 * @link: in the table of users
 * @uid: who
 * @refs: channels; under vgpu_users_lock as @link, @mems and @pinned
 * @closing: channels that the host has to let go of, as nobody can use them any more
 * @mems: channel areas and buffers
 * @pinned: their bytes
 * @workers: those who may still begin to allocate
 * @command_at: when the next command is due if they come at the allowed rate, in ns of ktime
 * @ring_at: the same for doorbells
 */
struct vgpu_user {
	struct hlist_node link;
	kuid_t uid;
	unsigned int refs;
	atomic_t closing;
	unsigned int mems;
	u64 pinned;
	struct semaphore workers;
	atomic64_t command_at;
	atomic64_t ring_at;
};

/**
 * struct vgpu_mem - pages that the host may access: a channel area or a buffer
 * @ref: references
 * @channel: whose it is, referenced; its user is charged for the pages until they are freed
 * @bytes: length
 * @rest: of huge pages of which @pages has a part; its user is charged for both
 * @cookie: vm_pgoff of a mapping of its first page
 * @link: in vgpu_dev.mems as long as the device has addresses of it
 * @sgt: pieces: each is contiguous for the device, and has an address of its own
 * @mapped: with vgpu_dev.direct: so many pieces have an address, from @first_mapped on; written by
 *	vgpu_mem_map(), then under mem_lock
 * @first_mapped: see there
 * @page_count: so many of @pages are there
 * @pages: every page. They are ordinary pages with a reference of this struct; mappings into user
 *	space have references of their own
 * @owner: @pages are this process's own and pinned
 */
struct vgpu_mem {
	struct kref ref;
	struct vgpu_channel *channel;
	u64 bytes;
	u64 rest;
	pgoff_t cookie;
	struct list_head link;
	struct sg_table sgt;
	unsigned int mapped;
	struct scatterlist *first_mapped;
	unsigned long page_count;
	struct page **pages;
	struct mm_struct *owner;
};

/**
 * struct vgpu_channel - an open file, and the memory that its process and an executor share
 * @ref: references
 * @vgpu: referenced
 * @user: who opened the file
 * @mm: the process that opened it; nobody else may use it
 * @file_mapping: of the file, to take its mappings away; NULL once it is closed; under @binding
 * @asked: VGPU_IOC_CHANNEL is running or has been answered
 * @made: it has been answered: commands and mappings are possible
 * @index: its slot
 * @epoch: vgpu_dev.epoch when it was announced
 * @announced: the host may have its memory; written inside vgpu_enter()
 * @area_bytes: length of its rings
 * @buffers: struct vgpu_mem by number, NULL while they are made; VGPU_REMOVING: the host was told.
 *	0 is the rings, until the host has let go of all its memory
 * @free_lock: one BUFFER_FREE at a time
 * @removes: BUFFER_REMOVE commands accepted, under @free_lock
 * @wait: who sleeps
 * @wakes: counts events
 * @waited: of them, those that VGPU_IOC_WAIT has answered
 * @ending: the file is closed or its process is gone: the janitor ends it; under slot_lock
 * @destroy_sent: by the janitor
 */
struct vgpu_channel {
	struct kref ref;
	struct vgpu_dev *vgpu;
	struct vgpu_user *user;
	struct mm_struct *mm;
	struct address_space *file_mapping;
	bool asked;
	bool made;
	u32 index;
	u32 epoch;
	bool announced;
	u64 area_bytes;
	struct xarray buffers;
	struct mutex free_lock; /* one BUFFER_FREE at a time */
	u32 removes;
	wait_queue_head_t wait;
	atomic_t wakes;
	atomic_t waited;
	bool ending;
	bool destroy_sent;
};

#define VGPU_REMOVING XA_MARK_1

/* vgpu_user.c */
extern struct wait_queue_head vgpu_users_wait;
struct vgpu_user *vgpu_user_get(void);
void vgpu_user_put(struct vgpu_user *user);
int vgpu_user_charge(struct vgpu_user *user, u64 bytes, u64 fresh);
void vgpu_user_charged(u64 fresh);
void vgpu_user_uncharge(struct vgpu_user *user, u64 bytes);
int vgpu_user_pace_command(struct vgpu_user *user);
int vgpu_user_pace_doorbell(struct vgpu_user *user);

/* How long a user who has reached a limit waits for his closed channels to end. */
#define VGPU_CLOSING_WAIT (5 * HZ)

/*
 * Evaluates @try, which must not sleep, until it is 0 or there is nothing to wait for: none of the
 * @user's channels ends. Its last value, or -ERESTARTSYS.
 */
#define vgpu_user_retry(user, try) ({							\
	int ret_;									\
	long left_ = wait_event_freezable_timeout(vgpu_users_wait,			\
		!(ret_ = (try)) || !atomic_read(&(user)->closing), VGPU_CLOSING_WAIT);	\
	left_ < 0 ? (int)left_ : ret_; })

/* vgpu_mem.c */
bool vgpu_mem_is_direct(struct device *dev);
struct vgpu_mem *vgpu_mem_make(struct vgpu_channel *channel, u64 address, u64 bytes);
int vgpu_mem_map(struct vgpu_mem *mem);
void vgpu_mem_put(struct vgpu_mem *mem);
void vgpu_mem_release(struct vgpu_mem *mem);
void vgpu_mems_detach(struct vgpu_dev *vgpu);
int vgpu_mem_interrupted(struct vgpu_mem *mem);

/* vgpu_pin.c */
int vgpu_mem_pin(struct vgpu_mem *mem, u64 address);
void vgpu_mem_unpin(struct vgpu_mem *mem);

/* vgpu_vm.c */
int vgpu_mem_mmap(struct vgpu_mem *mem, struct vm_area_struct *vma);

/* vgpu_ctrl.c */
int vgpu_state_error(struct vgpu_dev *vgpu);
int vgpu_enter(struct vgpu_dev *vgpu);
void vgpu_leave(struct vgpu_dev *vgpu);
int vgpu_ctrl_alloc(struct vgpu_dev *vgpu);
void vgpu_ctrl_free(struct vgpu_dev *vgpu);
bool vgpu_ctrl_is_same(struct vgpu_dev *vgpu);
int vgpu_ctrl_start(struct vgpu_dev *vgpu);
void vgpu_ctrl_stop(struct vgpu_dev *vgpu);
int vgpu_ctrl_command(struct vgpu_dev *vgpu, u32 op, u32 channel, u32 buffer);
int vgpu_ctrl_announce(struct vgpu_channel *channel, u32 op, u32 buffer, struct vgpu_mem *mem);
void vgpu_ctrl_doorbell(struct vgpu_dev *vgpu, u32 channel);
int vgpu_ctrl_status(struct vgpu_dev *vgpu, struct vgpu_status *status);
bool vgpu_ctrl_is_silent(struct vgpu_dev *vgpu);
bool vgpu_ctrl_take_line(struct vgpu_dev *vgpu);
struct vgpu_news vgpu_ctrl_news(struct vgpu_dev *vgpu, u32 channel);

/* vgpu_park.c */
extern struct notifier_block vgpu_before_reboot;
bool vgpu_is_present(struct vgpu_dev *vgpu);
bool vgpu_is_quiet(struct vgpu_dev *vgpu);
void vgpu_wait_quiet(struct vgpu_dev *vgpu);
void vgpu_park(struct vgpu_dev *vgpu);
void vgpu_unpark(struct pci_dev *pdev);

/* vgpu_channel.c */
struct vgpu_channel *vgpu_channel_new(struct vgpu_dev *vgpu);
int vgpu_channel_prepare(struct vgpu_channel *channel);
int vgpu_channel_announce(struct vgpu_channel *channel, u32 op, u32 buffer, struct vgpu_mem *mem);
int vgpu_channel_create(struct vgpu_channel *channel);
int vgpu_channel_enter(struct vgpu_channel *channel);
int vgpu_channel_error(struct vgpu_channel *channel);
bool vgpu_channel_is_orphan(struct vgpu_channel *channel);
void vgpu_channel_end(struct vgpu_channel *channel);
void vgpu_channel_give_back(struct vgpu_channel *channel);
void vgpu_channel_put(struct vgpu_channel *channel);
void vgpu_channels_look_after(struct vgpu_dev *vgpu);

/* vgpu_slot.c */
int vgpu_slot_take(struct vgpu_channel *channel, bool admin);
bool vgpu_slot_give(struct vgpu_channel *channel);
unsigned int vgpu_slots_each(struct vgpu_dev *vgpu, bool (*visit)(struct vgpu_channel *channel));
unsigned int vgpu_slots_used(struct vgpu_dev *vgpu);
bool vgpu_slots_wake(struct vgpu_dev *vgpu, bool all);
void vgpu_slots_end(struct vgpu_dev *vgpu);
void vgpu_slots_lose(struct vgpu_dev *vgpu);
void vgpu_slots_give_back(struct vgpu_dev *vgpu);

/* vgpu_buffer.c */
int vgpu_buffer_number(struct vgpu_channel *channel, u32 *id);
void vgpu_buffer_forget(struct vgpu_channel *channel, u32 id, struct vgpu_mem *mem);
int vgpu_buffer_put(struct vgpu_channel *channel, struct vgpu_mem *mem, u32 id);
int vgpu_buffer_add(struct vgpu_channel *channel, struct vgpu_mem *mem, u32 id);
int vgpu_buffer_free(struct vgpu_channel *channel, u32 id);
struct vgpu_mem *vgpu_buffer_mem(struct vgpu_channel *channel, unsigned long id);
void vgpu_buffers_give_back(struct vgpu_channel *channel);

/* vgpu_file.c */
extern const struct file_operations vgpu_fops;

#endif
