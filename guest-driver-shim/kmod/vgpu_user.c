// SPDX-License-Identifier: GPL-2.0-only
/* What one user may take, over all VFs of this guest: channels, buffers, pages, doorbells. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "vgpu.h"

#define VGPU_LIMIT(name, value, what)			\
	static unsigned int name = (value);		\
	module_param(name, uint, 0644);			\
	MODULE_PARM_DESC(name, what " (" #value ")")

VGPU_LIMIT(pinned_percent, 50, "Part of RAM that may be pinned by all users together");
VGPU_LIMIT(user_pinned_percent, 25, "Part of RAM that one user may pin");
VGPU_LIMIT(user_channels, 16, "Channels that one user may have open");
VGPU_LIMIT(user_buffers, 8192, "Channel areas and buffers that one user may have");
VGPU_LIMIT(user_doorbells, 20000, "Doorbells per second that one user may ring at once");

/* As many doorbells at once as in this time. */
#define VGPU_RING_BURST_NS (10 * NSEC_PER_MSEC)
/* Part of RAM that stays available: the OOM killer does not see whose pinned pages are. */
#define VGPU_KEEP_FREE_SHARE 16
/* How long a user who has reached a limit waits for his closed channels to end. */
#define VGPU_CLOSING_WAIT (5 * HZ)

/**
 * struct vgpu_user - a user who has something; all but @ring_at under vgpu_users_lock
 * @link: in vgpu_users
 * @uid: who
 * @refs: channels and charges
 * @channels: open ones and those that still end
 * @closing: those of @channels that the host has to let go of, as nobody can use them any more
 * @mems: channel areas and buffers
 * @pinned: their bytes
 * @ring_at: when the next doorbell is due if they come at the allowed rate, in ns of ktime
 */
struct vgpu_user {
	struct list_head link;
	kuid_t uid;
	unsigned int refs;
	unsigned int channels;
	unsigned int closing;
	unsigned int mems;
	u64 pinned;
	atomic64_t ring_at;
};

static DEFINE_MUTEX(vgpu_users_lock);
static DECLARE_WAIT_QUEUE_HEAD(vgpu_users_wait);
static LIST_HEAD(vgpu_users);
/* Channels that have ended. */
static unsigned int vgpu_users_closed;
static u64 vgpu_pinned;

/* The current user with one reference more; NULL without memory. */
static struct vgpu_user *vgpu_user_get(void)
{
	struct vgpu_user *user;

	lockdep_assert_held(&vgpu_users_lock);
	list_for_each_entry(user, &vgpu_users, link) {
		if (uid_eq(user->uid, current_uid())) {
			user->refs++;
			return user;
		}
	}
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return NULL;
	user->uid = current_uid();
	user->refs = 1;
	list_add(&user->link, &vgpu_users);
	return user;
}

static void vgpu_user_put(struct vgpu_user *user)
{
	lockdep_assert_held(&vgpu_users_lock);
	if (--user->refs)
		return;
	list_del(&user->link);
	kfree(user);
}

/* -EAGAIN when closed channels will make room. */
static struct vgpu_user *vgpu_user_try_open(void)
{
	struct vgpu_user *user;
	int ret = 0;

	if (mutex_lock_killable(&vgpu_users_lock))
		return ERR_PTR(-EINTR);
	user = vgpu_user_get();
	if (!user) {
		ret = -ENOMEM;
	} else if (user->channels >= READ_ONCE(user_channels) && !capable(CAP_SYS_RESOURCE)) {
		ret = user->closing ? -EAGAIN : -EMFILE;
		vgpu_user_put(user);
	} else {
		user->channels++;
	}
	mutex_unlock(&vgpu_users_lock);
	return ret ? ERR_PTR(ret) : user;
}

/* Waits until a channel has ended that had not when @closed was read; -ETIME after @end. */
static int vgpu_user_wait(unsigned int closed, unsigned long end)
{
	if (time_after(jiffies, end))
		return -ETIME;
	return wait_event_killable_timeout(vgpu_users_wait,
					   READ_ONCE(vgpu_users_closed) != closed, HZ) < 0 ?
		       -EINTR : 0;
}

/**
 * vgpu_user_open() - count a channel of the current user
 * @may_wait: for closed ones that the host has not yet let go of
 *
 * Return: the user, until vgpu_user_close(), or -EMFILE (has as many as allowed), -ENOMEM, -EINTR.
 */
struct vgpu_user *vgpu_user_open(bool may_wait)
{
	unsigned long end = jiffies + VGPU_CLOSING_WAIT;
	struct vgpu_user *user;
	unsigned int closed;
	int ret = 0;

	do {
		closed = READ_ONCE(vgpu_users_closed);
		user = vgpu_user_try_open();
		if (user != ERR_PTR(-EAGAIN))
			return user;
		if (may_wait)
			ret = vgpu_user_wait(closed, end);
	} while (may_wait && !ret);
	return ERR_PTR(ret == -EINTR ? ret : -EMFILE);
}

void vgpu_user_closing(struct vgpu_user *user)
{
	mutex_lock(&vgpu_users_lock);
	user->closing++;
	mutex_unlock(&vgpu_users_lock);
}

/**
 * vgpu_user_close() - a channel has ended, or a part of its end is over
 * @user: whose
 * @was_closing: what vgpu_user_closing() has begun is over: the host has let go
 * @channel: it is not counted any more; @user may be freed
 */
void vgpu_user_close(struct vgpu_user *user, bool was_closing, bool channel)
{
	mutex_lock(&vgpu_users_lock);
	user->closing -= was_closing;
	WRITE_ONCE(vgpu_users_closed, vgpu_users_closed + 1);
	if (channel) {
		user->channels--;
		vgpu_user_put(user);
	}
	mutex_unlock(&vgpu_users_lock);
	wake_up_all(&vgpu_users_wait);
}

static bool vgpu_user_may_pin(struct vgpu_user *user, u64 bytes)
{
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT;
	u64 available = (u64)max(si_mem_available(), 0l) << PAGE_SHIFT;

	if (vgpu_pinned + bytes > ram / 100 * min(READ_ONCE(pinned_percent), 100u) ||
	    bytes + ram / VGPU_KEEP_FREE_SHARE > available)
		return false;
	if (user->pinned + bytes <= ram / 100 * min(READ_ONCE(user_pinned_percent), 100u) &&
	    user->mems < READ_ONCE(user_buffers))
		return true;
	return capable(CAP_SYS_RESOURCE);
}

static int vgpu_user_try_charge(struct vgpu_user *user, u64 bytes)
{
	int ret = 0;

	if (mutex_lock_killable(&vgpu_users_lock))
		return -EINTR;
	if (vgpu_user_may_pin(user, bytes)) {
		user->refs++;
		user->mems++;
		user->pinned += bytes;
		vgpu_pinned += bytes;
	} else {
		ret = user->closing ? -EAGAIN : -ENOMEM;
	}
	mutex_unlock(&vgpu_users_lock);
	return ret;
}

/**
 * vgpu_user_charge() - count pages before they are allocated
 * @user: whose; waits for those of his closed channels
 * @bytes: page aligned
 *
 * Return: 0 until vgpu_user_uncharge(), or -ENOMEM (a limit would be passed), -EINTR.
 */
int vgpu_user_charge(struct vgpu_user *user, u64 bytes)
{
	unsigned long end = jiffies + VGPU_CLOSING_WAIT;
	unsigned int closed;
	int ret;

	do {
		closed = READ_ONCE(vgpu_users_closed);
		ret = vgpu_user_try_charge(user, bytes);
		if (ret != -EAGAIN)
			return ret;
		ret = vgpu_user_wait(closed, end);
	} while (!ret);
	return ret == -EINTR ? ret : -ENOMEM;
}

/* The pages are free again. */
void vgpu_user_uncharge(struct vgpu_user *user, u64 bytes)
{
	mutex_lock(&vgpu_users_lock);
	user->mems--;
	user->pinned -= bytes;
	vgpu_pinned -= bytes;
	vgpu_user_put(user);
	mutex_unlock(&vgpu_users_lock);
}

/* Counts a doorbell; false: not now. One thread of the host serves all that are trapped. */
bool vgpu_user_may_ring(struct vgpu_user *user)
{
	s64 gap = NSEC_PER_SEC / max(READ_ONCE(user_doorbells), 1u);
	s64 now = ktime_get_ns();
	s64 due = atomic64_read(&user->ring_at);

	do {
		if (due - now > VGPU_RING_BURST_NS)
			return false;
	} while (!atomic64_try_cmpxchg(&user->ring_at, &due, max(due, now) + gap));
	return true;
}
