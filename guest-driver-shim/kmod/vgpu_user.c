// SPDX-License-Identifier: GPL-2.0-only
/* What one user may take: channels, buffers, pinned pages, doorbells. Over all VFs of this guest. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "vgpu.h"

static unsigned int pinned_percent = 50;
module_param(pinned_percent, uint, 0644);
MODULE_PARM_DESC(pinned_percent, "Part of RAM that may be pinned by all users together (50)");

static unsigned int user_pinned_percent = 25;
module_param(user_pinned_percent, uint, 0644);
MODULE_PARM_DESC(user_pinned_percent, "Part of RAM that one user may pin (25)");

static unsigned int user_channels = 16;
module_param(user_channels, uint, 0644);
MODULE_PARM_DESC(user_channels, "Channels that one user may have open (16)");

static unsigned int user_buffers = 8192;
module_param(user_buffers, uint, 0644);
MODULE_PARM_DESC(user_buffers, "Channel areas and buffers that one user may have (8192)");

static unsigned int user_doorbells = 20000;
module_param(user_doorbells, uint, 0644);
MODULE_PARM_DESC(user_doorbells, "Doorbells per second that one user may ring; later ones are put off (20000)");

/* A user may ring as often at once as in this time. */
#define VGPU_RING_BURST_NS (10 * NSEC_PER_MSEC)
/* This part of RAM stays available: pinned pages can't be reclaimed, and the OOM killer does not see whose they are. */
#define VGPU_KEEP_FREE_SHARE 16

/**
 * struct vgpu_user - a user who has something; all but @ring_at under vgpu_users_lock
 * @refs: channels and charges
 * @pinned: bytes
 * @ring_at: when the next doorbell is due if they come at the allowed rate, in ns of ktime
 */
struct vgpu_user {
	struct list_head link;
	kuid_t uid;
	unsigned int refs;
	unsigned int channels;
	unsigned int mems;
	u64 pinned;
	atomic64_t ring_at;
};

static DEFINE_MUTEX(vgpu_users_lock);
static LIST_HEAD(vgpu_users);
static u64 vgpu_pinned;

static u64 vgpu_ram_part(unsigned int percent)
{
	return ((u64)totalram_pages() << PAGE_SHIFT) / 100 * min(READ_ONCE(percent), 100u);
}

/* The current user, with one reference more; NULL without memory. */
static struct vgpu_user *vgpu_user_find(void)
{
	kuid_t uid = current_uid();
	struct vgpu_user *user;

	lockdep_assert_held(&vgpu_users_lock);
	list_for_each_entry(user, &vgpu_users, link) {
		if (uid_eq(user->uid, uid)) {
			user->refs++;
			return user;
		}
	}
	user = kzalloc(sizeof(*user), GFP_KERNEL_ACCOUNT);
	if (!user)
		return NULL;
	user->uid = uid;
	user->refs = 1;
	list_add(&user->link, &vgpu_users);
	return user;
}

static void vgpu_user_drop(struct vgpu_user *user)
{
	lockdep_assert_held(&vgpu_users_lock);
	if (--user->refs)
		return;
	list_del(&user->link);
	kfree(user);
}

/**
 * vgpu_user_open() - count a channel of the current user
 *
 * Return: the user, until vgpu_user_close(), or -EMFILE (has as many as are allowed), -ENOMEM, -EINTR.
 */
struct vgpu_user *vgpu_user_open(void)
{
	struct vgpu_user *user;

	if (mutex_lock_killable(&vgpu_users_lock))
		return ERR_PTR(-EINTR);
	user = vgpu_user_find();
	if (!user) {
		user = ERR_PTR(-ENOMEM);
	} else if (user->channels >= READ_ONCE(user_channels) && !capable(CAP_SYS_RESOURCE)) {
		vgpu_user_drop(user);
		user = ERR_PTR(-EMFILE);
	} else {
		user->channels++;
	}
	mutex_unlock(&vgpu_users_lock);
	return user;
}

void vgpu_user_close(struct vgpu_user *user)
{
	mutex_lock(&vgpu_users_lock);
	user->channels--;
	vgpu_user_drop(user);
	mutex_unlock(&vgpu_users_lock);
}

static bool vgpu_user_may_pin(struct vgpu_user *user, u64 bytes)
{
	u64 available = (u64)max(si_mem_available(), 0l) << PAGE_SHIFT;
	u64 keep = ((u64)totalram_pages() << PAGE_SHIFT) / VGPU_KEEP_FREE_SHARE;

	if (vgpu_pinned + bytes > vgpu_ram_part(pinned_percent) || bytes + keep > available)
		return false;
	if (user->pinned + bytes <= vgpu_ram_part(user_pinned_percent) && user->mems < READ_ONCE(user_buffers))
		return true;
	return capable(CAP_SYS_RESOURCE);
}

/**
 * vgpu_user_charge() - count @bytes of pages before they are allocated
 * @user: whose
 * @bytes: page aligned
 *
 * Return: 0, or -ENOMEM when a limit would be passed. Undone by vgpu_user_uncharge() when the pages are free again.
 */
int vgpu_user_charge(struct vgpu_user *user, u64 bytes)
{
	int ret = -ENOMEM;

	if (mutex_lock_killable(&vgpu_users_lock))
		return -EINTR;
	if (vgpu_user_may_pin(user, bytes)) {
		user->refs++;
		user->mems++;
		user->pinned += bytes;
		vgpu_pinned += bytes;
		ret = 0;
	}
	mutex_unlock(&vgpu_users_lock);
	return ret;
}

void vgpu_user_uncharge(struct vgpu_user *user, u64 bytes)
{
	mutex_lock(&vgpu_users_lock);
	user->mems--;
	user->pinned -= bytes;
	vgpu_pinned -= bytes;
	vgpu_user_drop(user);
	mutex_unlock(&vgpu_users_lock);
}

/**
 * vgpu_user_may_ring() - count a doorbell
 * @user: who rings
 *
 * A trapped write is served by the one thread that serves all of the VF, so a loop of them would hold up the others.
 *
 * Return: true when it may be rung now.
 */
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
