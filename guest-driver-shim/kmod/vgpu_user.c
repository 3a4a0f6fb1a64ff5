// SPDX-License-Identifier: GPL-2.0-only
/* What one user may take, over all VFs of this guest: pages, buffers, commands, doorbells. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/freezer.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/semaphore.h>
#include <linux/slab.h>

#include "vgpu.h"

VGPU_LIMIT(pinned_percent, 50, "Part of RAM that may be pinned by all users together");
VGPU_LIMIT(user_buffers, 8192, "Channel areas and buffers that one user may have");
VGPU_LIMIT(user_commands, 20000, "Opens, allocations and frees per second that one user may make");
VGPU_LIMIT(user_doorbells, 20000, "Doorbells per second that one user may ring");

/* As much at once as in this time. */
#define VGPU_BURST_NS (50 * NSEC_PER_MSEC)
/* Part of RAM that stays available: the OOM killer does not see whose pinned pages are. */
#define VGPU_KEEP_FREE_SHARE 16
/* Part of what may be pinned that only the administrator gets. */
#define VGPU_RESERVE_SHARE 32
/* How long a user who has reached a limit waits for his closed channels to end. */
#define VGPU_CLOSING_WAIT (5 * HZ)
/* Threads of one user that allocate at once. */
#define VGPU_WORKERS 2

/**
 * struct vgpu_user - a user who has something
 * @link: in vgpu_users
 * @uid: who
 * @refs: channels and memory; under vgpu_users_lock as @link, @mems and @pinned
 * @closing: channels that the host has to let go of, as nobody can use them any more
 * @mems: channel areas and buffers
 * @pinned: their bytes
 * @workers: those who allocate now
 * @command_at: when the next command is due if they come at the allowed rate, in ns of ktime
 * @ring_at: the same for doorbells
 */
struct vgpu_user {
	struct list_head link;
	kuid_t uid;
	unsigned int refs;
	atomic_t closing;
	unsigned int mems;
	u64 pinned;
	struct semaphore workers;
	atomic64_t command_at;
	atomic64_t ring_at;
};

static DEFINE_SPINLOCK(vgpu_users_lock);
static DECLARE_WAIT_QUEUE_HEAD(vgpu_users_wait);
static LIST_HEAD(vgpu_users);
/* Counts what has been given back. */
static atomic_t vgpu_users_news;
static u64 vgpu_pinned;

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
	list_for_each_entry(user, &vgpu_users, link)
		if (uid_eq(user->uid, fresh->uid))
			goto found;
	user = fresh;
	fresh = NULL;
	list_add(&user->link, &vgpu_users);
found:
	user->refs++;
	spin_unlock(&vgpu_users_lock);
	kfree(fresh);
	return user;
}

void vgpu_user_put(struct vgpu_user *user)
{
	bool last;

	spin_lock(&vgpu_users_lock);
	last = !--user->refs;
	if (last)
		list_del(&user->link);
	spin_unlock(&vgpu_users_lock);
	if (last)
		kfree(user);
}

/* So many of the user's channels more end: what they have will be free soon. Any context. */
void vgpu_user_closing(struct vgpu_user *user, int more)
{
	atomic_add(more, &user->closing);
}

/* Something has been given back. */
void vgpu_users_have_news(void)
{
	atomic_inc(&vgpu_users_news);
	wake_up_all(&vgpu_users_wait);
}

/**
 * vgpu_user_wait() - let channels end that were closed a moment ago
 * @user: whose
 * @wait: where this wait stands, zero at first
 *
 * Return: 0 to try again, -ETIME when there is nothing to wait for, -ERESTARTSYS.
 */
int vgpu_user_wait(struct vgpu_user *user, struct vgpu_user_wait *wait)
{
	int news = wait->news;
	long ret;

	wait->news = atomic_read(&vgpu_users_news);
	if (!wait->end) {
		wait->end = jiffies + VGPU_CLOSING_WAIT;
		return 0;
	}
	if (!atomic_read(&user->closing) || time_after(jiffies, wait->end))
		return -ETIME;
	ret = wait_event_freezable_timeout(vgpu_users_wait, atomic_read(&vgpu_users_news) != news,
					   HZ);
	return ret < 0 ? ret : 0;
}

/*
 * Who has nothing yet finds as much left as everybody else has: nobody takes more than what he
 * leaves to others. The administrator may take all, and something is kept for him.
 */
static bool vgpu_user_may_pin(struct vgpu_user *user, u64 bytes, bool admin)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;
	u64 available = (u64)max(si_mem_available(), 0l) << PAGE_SHIFT;
	u64 all = ram / 100 * min(READ_ONCE(pinned_percent), 100u);
	u64 left = all > vgpu_pinned ? all - vgpu_pinned : 0;

	if (bytes > left || bytes + ram / VGPU_KEEP_FREE_SHARE > available)
		return false;
	if (user->pinned + bytes + all / VGPU_RESERVE_SHARE <= left &&
	    user->mems < READ_ONCE(user_buffers))
		return true;
	return admin;
}

/**
 * vgpu_user_charge() - count pages before they are allocated
 * @user: whose; waits for those of his closed channels
 * @bytes: page aligned
 *
 * Return: 0 until vgpu_user_uncharge(), or -ENOMEM (a limit would be passed), -ERESTARTSYS.
 */
int vgpu_user_charge(struct vgpu_user *user, u64 bytes)
{
	bool admin = ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
	struct vgpu_user_wait wait = {};
	int ret;

	do {
		bool may;

		spin_lock(&vgpu_users_lock);
		may = vgpu_user_may_pin(user, bytes, admin);
		if (may) {
			user->refs++;
			user->mems++;
			user->pinned += bytes;
			vgpu_pinned += bytes;
		}
		spin_unlock(&vgpu_users_lock);
		if (may)
			return 0;
		ret = vgpu_user_wait(user, &wait);
	} while (!ret);
	return ret == -ETIME ? -ENOMEM : ret;
}

/* The pages are free again. */
void vgpu_user_uncharge(struct vgpu_user *user, u64 bytes)
{
	spin_lock(&vgpu_users_lock);
	user->mems--;
	user->pinned -= bytes;
	vgpu_pinned -= bytes;
	spin_unlock(&vgpu_users_lock);
	vgpu_user_put(user);
}

/* Few threads of a user allocate at once, the others sleep: 0 until vgpu_user_end_work(). */
int vgpu_user_begin_work(struct vgpu_user *user)
{
	return down_killable(&user->workers) ? -EINTR : 0;
}

void vgpu_user_end_work(struct vgpu_user *user)
{
	up(&user->workers);
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
		if (signal_pending(current))
			return -ERESTARTSYS;
		__set_current_state(TASK_INTERRUPTIBLE | TASK_FREEZABLE);
		schedule_timeout(max(nsecs_to_jiffies(due - now - VGPU_BURST_NS), 1ul));
		now = ktime_get_ns();
	}
	return 0;
}

/* Before an open, an allocation or a free. */
int vgpu_user_pace_command(struct vgpu_user *user)
{
	return vgpu_user_pace(&user->command_at, READ_ONCE(user_commands));
}

/* Before a doorbell: one thread of the host serves all that are trapped. */
int vgpu_user_pace_doorbell(struct vgpu_user *user)
{
	return vgpu_user_pace(&user->ring_at, READ_ONCE(user_doorbells));
}
