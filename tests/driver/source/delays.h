/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For a test build of vgpu.ko, which has this included before each of its files (delayed_module): a random wait at each operation on a lock, a
 * list, a reference, an array or a work item. What is right only because it is fast fails then.
 */
#ifndef VGPU_DELAYS_H
#define VGPU_DELAYS_H

/* All that the module includes: what is redefined below is for the module alone. */
#include <linux/capability.h>
#include <linux/cdev.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/freezer.h>
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/pm.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/semaphore.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

/* Every eighth time some microseconds; where that is allowed, now and then a tick or more. */
static inline void vgpu_delay(void)
{
	u32 dice = get_random_u32();

	if (dice % 8)
		return;
	if (preemptible() && READ_ONCE(current->__state) == TASK_RUNNING && !(dice / 8 % 16))
		schedule_timeout_uninterruptible(1 + (dice >> 24) % 3);
	else
		udelay((dice >> 24) % 20);
}

#define VGPU_DELAYED(call) do { vgpu_delay(); call; vgpu_delay(); } while (0)
#define VGPU_DELAYED_VALUE(call) ({		\
	typeof(call) value_;			\
						\
	vgpu_delay();				\
	value_ = call;				\
	vgpu_delay();				\
	value_; })

/* Functions: a macro does not expand itself. */
#define spin_lock(lock) VGPU_DELAYED(spin_lock(lock))
#define spin_unlock(lock) VGPU_DELAYED(spin_unlock(lock))
#define spin_lock_irq(lock) VGPU_DELAYED(spin_lock_irq(lock))
#define spin_unlock_irq(lock) VGPU_DELAYED(spin_unlock_irq(lock))
#define spin_unlock_irqrestore(lock, flags) VGPU_DELAYED(spin_unlock_irqrestore(lock, flags))
#define down_read(lock) VGPU_DELAYED(down_read(lock))
#define up_read(lock) VGPU_DELAYED(up_read(lock))
#define down_write(lock) VGPU_DELAYED(down_write(lock))
#define up_write(lock) VGPU_DELAYED(up_write(lock))
#define mutex_unlock(lock) VGPU_DELAYED(mutex_unlock(lock))
#define list_add(link, list) VGPU_DELAYED(list_add(link, list))
#define list_del(link) VGPU_DELAYED(list_del(link))
#define list_del_init(link) VGPU_DELAYED(list_del_init(link))
#define kref_get(ref) VGPU_DELAYED(kref_get(ref))
#define kref_put(ref, free) VGPU_DELAYED_VALUE(kref_put(ref, free))
#define xa_load(array, at) VGPU_DELAYED_VALUE(xa_load(array, at))
#define xa_erase(array, at) VGPU_DELAYED_VALUE(xa_erase(array, at))
#define xa_cmpxchg(array, at, old, new, gfp) VGPU_DELAYED_VALUE(xa_cmpxchg(array, at, old, new, gfp))
#define xa_alloc(array, at, entry, limit, gfp) VGPU_DELAYED_VALUE(xa_alloc(array, at, entry, limit, gfp))
#define queue_delayed_work(queue, work, delay) VGPU_DELAYED_VALUE(queue_delayed_work(queue, work, delay))
#define mod_delayed_work(queue, work, delay) VGPU_DELAYED_VALUE(mod_delayed_work(queue, work, delay))

/* Macros, which say here what they expand to. */
#undef read_lock
#define read_lock(lock) VGPU_DELAYED(_raw_read_lock(lock))
#undef read_unlock
#define read_unlock(lock) VGPU_DELAYED(_raw_read_unlock(lock))
#undef write_lock
#define write_lock(lock) VGPU_DELAYED(_raw_write_lock(lock))
#undef write_unlock
#define write_unlock(lock) VGPU_DELAYED(_raw_write_unlock(lock))
#undef wake_up_all
#define wake_up_all(queue) VGPU_DELAYED(__wake_up(queue, TASK_NORMAL, 0, NULL))

#endif
