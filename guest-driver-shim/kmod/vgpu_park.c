// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that a device has not let go of: whether there is any, and where it stays when nobody is
 * bound to the device any more.
 */
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/reboot.h>
#include <linux/string.h>

#include "vgpu.h"

/* How long it is asked before the next kernel, or nobody, has the memory. */
#define VGPU_SHUTDOWN_WAIT (60 * HZ)

/* Devices that are not bound and have not let go of memory; their channels hold the module. */
static LIST_HEAD(vgpu_parked);
static DEFINE_MUTEX(vgpu_parked_lock);
static unsigned long vgpu_parked_bytes;
module_param_named(parked_bytes, vgpu_parked_bytes, ulong, 0444);
MODULE_PARM_DESC(parked_bytes, "Memory that unbound devices have not let go of (read only)");

/**
 * vgpu_is_present() - is the function there, and still the same?
 * @vgpu: the device. Once unbound it has no registers that would tell another VF from it
 *
 * Return: true: yes.
 */
bool vgpu_is_present(struct vgpu_dev *vgpu)
{
	return pci_device_is_present(vgpu->pdev) &&
	       (READ_ONCE(vgpu->state) == VGPU_GONE || vgpu_ctrl_is_same(vgpu));
}

/**
 * vgpu_is_quiet() - does the device confirm that it uses no memory?
 * @vgpu: the device, after its bus mastering has been switched off
 *
 * Silence is no answer: who does not answer now may do so again, and has gone on meanwhile.
 *
 * Return: true: yes.
 */
bool vgpu_is_quiet(struct vgpu_dev *vgpu)
{
	return !vgpu->told ||
	       (vgpu_is_present(vgpu) && pci_wait_for_pending_transaction(vgpu->pdev));
}

/**
 * vgpu_wait_quiet() - before another kernel starts: nothing may write into it
 * @vgpu: as for vgpu_is_quiet(). It is waited for while it answers, for a while
 */
void vgpu_wait_quiet(struct vgpu_dev *vgpu)
{
	unsigned long end = jiffies + VGPU_SHUTDOWN_WAIT;

	while (vgpu_is_present(vgpu) && !vgpu_is_quiet(vgpu) && time_before(jiffies, end))
		;
	if (!vgpu_is_quiet(vgpu))
		dev_emerg(&vgpu->dev, "the host goes on using memory\n");
}

/* The kernel calls shutdown() of bound devices only: this waits for the devices that are parked. */
static int vgpu_wait_parked(struct notifier_block *block, unsigned long action, void *data)
{
	struct vgpu_dev *vgpu;

	mutex_lock(&vgpu_parked_lock);
	list_for_each_entry(vgpu, &vgpu_parked, parked)
		vgpu_wait_quiet(vgpu);
	mutex_unlock(&vgpu_parked_lock);
	return NOTIFY_DONE;
}

struct notifier_block vgpu_before_reboot = { .notifier_call = vgpu_wait_parked };

/**
 * vgpu_park() - keep all that a device has: nobody will be there to ask whether it still uses it
 * @vgpu: the device, which is not bound any more
 */
void vgpu_park(struct vgpu_dev *vgpu)
{
	dev_err(&vgpu->dev, "the host goes on using memory: it stays allocated\n");
	mutex_lock(&vgpu_parked_lock);
	get_device(&vgpu->dev);
	list_add(&vgpu->parked, &vgpu_parked);
	vgpu->parked_bytes = atomic64_read(&vgpu->bytes);
	vgpu_parked_bytes += vgpu->parked_bytes;
	mutex_unlock(&vgpu_parked_lock);
}

/**
 * vgpu_unpark() - give back what devices at this address have left behind
 * @pdev: the function says that it uses no memory any more; or another one does in its place, as it
 *	is off the bus: then there is nothing left to end its addresses with
 */
void vgpu_unpark(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu, *next;

	mutex_lock(&vgpu_parked_lock);
	list_for_each_entry_safe(vgpu, next, &vgpu_parked, parked) {
		if (strcmp(pci_name(vgpu->pdev), pci_name(pdev)))
			continue;
		list_del(&vgpu->parked);
		vgpu_parked_bytes -= vgpu->parked_bytes;
		if (vgpu->pdev == pdev) {
			vgpu_mems_detach(vgpu);
			vgpu_ctrl_free(vgpu);
		}
		vgpu_slots_give_back(vgpu);
		put_device(&vgpu->dev);
	}
	mutex_unlock(&vgpu_parked_lock);
}
