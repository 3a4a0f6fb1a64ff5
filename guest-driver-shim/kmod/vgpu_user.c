// SPDX-License-Identifier: GPL-2.0-only
/* What one user may take, over all VFs of this guest: pages, buffers, commands, doorbells. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "vgpu.h"

static unsigned int pinned_percent = 50;
module_param(pinned_percent, uint, 0644);
MODULE_PARM_DESC(pinned_percent, "Part of RAM that may be pinned by all users together (50)");

static unsigned int user_buffers = 8192;
module_param(user_buffers, uint, 0644);
MODULE_PARM_DESC(user_buffers, "Channel areas and buffers that one user may have (8192)");

static unsigned int user_commands = 20000;
module_param(user_commands, uint, 0644);
MODULE_PARM_DESC(user_commands, "Opens, allocations and frees per second that one user may make (20000)");

static unsigned int user_doorbells = 20000;
module_param(user_doorbells, uint, 0644);
MODULE_PARM_DESC(user_doorbells, "Doorbells per second that one user may ring (20000)");

/* As much at once as in this time. */
#define VGPU_BURST_NS (50 * NSEC_PER_MSEC)
/* Part of RAM that stays available: the OOM killer does not see whose pinned pages are. */
#define VGPU_KEEP_FREE_SHARE 16
/* Part of what may be pinned that only the administrator gets. */
#define VGPU_RESERVE_SHARE 32
/* Threads of one user that allocate at once. */
#define VGPU_WORKERS 2

/* Woken when a closed channel has given back what it had. */
DECLARE_WAIT_QUEUE_HEAD(vgpu_users_wait);
static DEFINE_SPINLOCK(vgpu_users_lock);
/* A user may be many: of the numbers that his user namespaces have, say. */
static DEFINE_HASHTABLE(vgpu_users, 10);
static u64 vgpu_pinned;
/* The part of vgpu_pinned that is being allocated. The kernel may still count it as available. */
static u64 vgpu_filling;

/**
 * vgpu_user_get() - the current user
 *
 * Return: with a reference for vgpu_user_put(); NULL without memory.
 */
struct vgpu_user *vgpu_user_get(void)
{
	struct vgpu_user *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT), *user;

	if (!fresh)
		return NULL;
	fresh->uid = current_uid();
	sema_init(&fresh->workers, VGPU_WORKERS);
	spin_lock(&vgpu_users_lock);
	hash_for_each_possible(vgpu_users, user, link, __kuid_val(fresh->uid))
		if (uid_eq(user->uid, fresh->uid))
			goto found;
	user = fresh;
	fresh = NULL;
	hash_add(vgpu_users, &user->link, __kuid_val(user->uid));
found:
	user->refs++;
	spin_unlock(&vgpu_users_lock);
	kfree(fresh);
	return user;
}

/**
 * vgpu_user_put() - give up a reference of vgpu_user_get()
 * @user: whose
 */
void vgpu_user_put(struct vgpu_user *user)
{
	spin_lock(&vgpu_users_lock);
	if (--user->refs)
		user = NULL;
	else
		hash_del(&user->link);
	spin_unlock(&vgpu_users_lock);
	kfree(user);
}

/*
 * Who has nothing yet finds as much left as everybody else has: nobody takes more than what he
 * leaves to others. The administrator may take all, and something is kept for him.
 */
static bool vgpu_user_may_pin(struct vgpu_user *user, u64 bytes, u64 fresh, bool admin)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;
	u64 available = (u64)max(si_mem_available(), 0l) << PAGE_SHIFT;
	u64 all = ram / 100 * min(READ_ONCE(pinned_percent), 100u);
	u64 left = all > vgpu_pinned ? all - vgpu_pinned : 0;

	if (bytes > left || fresh + vgpu_filling + ram / VGPU_KEEP_FREE_SHARE > available)
		return false;
	return admin || (user->pinned + bytes + all / VGPU_RESERVE_SHARE <= left &&
			 user->mems < READ_ONCE(user_buffers));
}

static int vgpu_user_try_charge(struct vgpu_user *user, u64 bytes, u64 fresh, bool admin)
{
	bool may;

	spin_lock(&vgpu_users_lock);
	may = vgpu_user_may_pin(user, bytes, fresh, admin);
	if (may) {
		user->mems++;
		user->pinned += bytes;
		vgpu_pinned += bytes;
		vgpu_filling += fresh;
	}
	spin_unlock(&vgpu_users_lock);
	return may ? 0 : -ENOMEM;
}

/**
 * vgpu_user_charge() - count pages
 * @user: whose; waits for those of his closed channels
 * @bytes: page aligned
 * @fresh: of them, those that are yet to be allocated. vgpu_user_charged() follows when they are,
 *	or will not be
 *
 * Return: 0 until vgpu_user_uncharge(), or -ENOMEM (a limit would be passed), -ERESTARTSYS.
 */
int vgpu_user_charge(struct vgpu_user *user, u64 bytes, u64 fresh)
{
	bool admin = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);

	return vgpu_user_retry(user, vgpu_user_try_charge(user, bytes, fresh, admin));
}

/**
 * vgpu_user_charged() - what vgpu_user_charge() has counted is not available any more
 * @fresh: as for that
 */
void vgpu_user_charged(u64 fresh)
{
	spin_lock(&vgpu_users_lock);
	vgpu_filling -= fresh;
	spin_unlock(&vgpu_users_lock);
}

/**
 * vgpu_user_uncharge() - the pages are free again
 * @user: as for vgpu_user_charge()
 * @bytes: as for vgpu_user_charge()
 */
void vgpu_user_uncharge(struct vgpu_user *user, u64 bytes)
{
	spin_lock(&vgpu_users_lock);
	user->mems--;
	user->pinned -= bytes;
	vgpu_pinned -= bytes;
	spin_unlock(&vgpu_users_lock);
}

/* Takes the next place at so many per second, and sleeps until it is due. 0 or -ERESTARTSYS. */
static int vgpu_user_pace(atomic64_t *next_at, unsigned int per_second)
{
	s64 gap = NSEC_PER_SEC / max(per_second, 1u);
	s64 now = ktime_get_ns();
	s64 due = atomic64_read(next_at);

	while (!atomic64_try_cmpxchg(next_at, &due, max(due, now) + gap))
		;
	while (due - now > VGPU_BURST_NS) {
		if (signal_pending(current)) {
			atomic64_sub(gap, next_at); /* it comes again */
			return -ERESTARTSYS;
		}
		__set_current_state(TASK_INTERRUPTIBLE | TASK_FREEZABLE);
		schedule_timeout(max(nsecs_to_jiffies(due - now - VGPU_BURST_NS), 1ul));
		now = ktime_get_ns();
	}
	return 0;
}

/**
 * vgpu_user_pace_command() - before an open, an allocation or a free: sleep until it is due
 * @user: whose
 *
 * Return: 0 or -ERESTARTSYS.
 */
int vgpu_user_pace_command(struct vgpu_user *user)
{
	return vgpu_user_pace(&user->command_at, READ_ONCE(user_commands));
}

/**
 * vgpu_user_pace_doorbell() - before a doorbell: sleep until it is due
 * @user: whose; one thread of the host serves all that are trapped
 *
 * Return: 0 or -ERESTARTSYS.
 */
int vgpu_user_pace_doorbell(struct vgpu_user *user)
{
	return vgpu_user_pace(&user->ring_at, READ_ONCE(user_doorbells));
}
