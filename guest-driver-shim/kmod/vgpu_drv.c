// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI side: probe, interrupt, and all that stops and starts the device: reset, errors, suspend,
 * shutdown, removal.
 *
 * Each stop is the same: nobody enters any more, the host ends its channels, the epoch changes, bus
 * mastering goes off. When the device then says that no transaction is pending, the memory that the
 * host had is ours again. Until it does, all of it stays where it is, and the device is not used.
 */
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/reboot.h>
#include <linux/slab.h>
#include <xen/xen.h>

#include "vgpu.h"

#define VGPU_MAX_DEVICES 256

static DEFINE_IDA(vgpu_ids);
static dev_t vgpu_numbers;

/* ---- sysfs ---- */

#define VGPU_ATTR(name, format, value)							\
	static ssize_t name##_show(struct device *dev, struct device_attribute *attr,		\
				   char *buf)							\
	{											\
		struct vgpu_dev *vgpu = container_of(dev, struct vgpu_dev, dev);		\
												\
		return sysfs_emit(buf, format "\n", value);					\
	}											\
	static DEVICE_ATTR_RO(name)

static const char *const vgpu_states[] = { "quiet", "running", "dead", "gone" };

/* Bytes that the host has yet to release. A running device has released everything. */
static s64 vgpu_parked_of(struct vgpu_dev *vgpu)
{
	return READ_ONCE(vgpu->state) == VGPU_RUNNING ? 0 : atomic64_read(&vgpu->bytes);
}

VGPU_ATTR(state, "%s", vgpu_states[READ_ONCE(vgpu->state)]);
VGPU_ATTR(channels, "%u", vgpu_slots_used(vgpu));
VGPU_ATTR(pinned_bytes, "%lld", atomic64_read(&vgpu->bytes));
VGPU_ATTR(parked_bytes, "%lld", vgpu_parked_of(vgpu));

static struct attribute *vgpu_attrs[] = {
	&dev_attr_state.attr, &dev_attr_channels.attr,
	&dev_attr_pinned_bytes.attr, &dev_attr_parked_bytes.attr, NULL
};
ATTRIBUTE_GROUPS(vgpu);

static struct class vgpu_class = {
	.name = "vgpu",
	.dev_groups = vgpu_groups,
};

/* ---- Stop and start, with life_lock held ---- */

/* Nobody is inside vgpu_enter() afterwards, unless it is VGPU_RUNNING. */
static void vgpu_change_state(struct vgpu_dev *vgpu, int state)
{
	lockdep_assert_held(&vgpu->life_lock);
	write_lock(&vgpu->access_lock);
	WRITE_ONCE(vgpu->state, state);
	write_unlock(&vgpu->access_lock);
	wake_up_all(&vgpu->ready);
}

static void vgpu_stop(struct vgpu_dev *vgpu)
{
	bool running = READ_ONCE(vgpu->state) == VGPU_RUNNING;

	vgpu_change_state(vgpu, VGPU_QUIET);
	if (running && !pci_channel_offline(vgpu->pdev) && pci_device_is_present(vgpu->pdev)) {
		vgpu_slots_end(vgpu);
		vgpu_ctrl_stop(vgpu);
	}
	vgpu->forgotten = false;
	WRITE_ONCE(vgpu->epoch, vgpu->epoch + 1);
	vgpu_slots_lose(vgpu);
	pci_clear_master(vgpu->pdev);
}

/* After vgpu_stop(), perhaps with a reset in between. -EBUSY: the device goes on using memory. */
static int vgpu_start(struct vgpu_dev *vgpu)
{
	int ret;

	if (!vgpu_is_present(vgpu)) {
		vgpu_change_state(vgpu, VGPU_DEAD);
		return dev_err_probe(&vgpu->pdev->dev, -ENODEV,
				     "no answer, or another VF's: reset it, or bind the driver again\n");
	}
	if (!pci_wait_for_pending_transaction(vgpu->pdev)) {
		dev_warn_ratelimited(&vgpu->dev, "the host goes on using memory: waiting for it\n");
		queue_delayed_work(system_highpri_wq, &vgpu->janitor, HZ / 2);
		return -EBUSY;
	}
	vgpu_slots_give_back(vgpu);
	vgpu_unpark(vgpu->pdev);
	pci_set_master(vgpu->pdev);
	ret = vgpu_ctrl_start(vgpu);
	if (!ret)
		pci_save_state(vgpu->pdev); /* what a reset of the bus loses */
	vgpu_change_state(vgpu, ret ? VGPU_DEAD : VGPU_RUNNING);
	return ret;
}

/*
 * Looks after the channels, and starts a device whose host has forgotten us in a reset of its own,
 * or has let go of memory at last.
 */
static void vgpu_janitor(struct work_struct *work)
{
	struct vgpu_dev *vgpu = container_of(to_delayed_work(work), struct vgpu_dev, janitor);

	mutex_lock(&vgpu->life_lock);
	if (!vgpu->held && READ_ONCE(vgpu->forgotten))
		vgpu_stop(vgpu);
	if (!vgpu->held && READ_ONCE(vgpu->state) == VGPU_QUIET)
		vgpu_start(vgpu);
	mutex_unlock(&vgpu->life_lock);
	vgpu_channels_look_after(vgpu);
}

/* Until vgpu_let_go() nobody but the caller's subsystem starts it. */
static void vgpu_hold(struct vgpu_dev *vgpu, int state)
{
	mutex_lock(&vgpu->life_lock);
	vgpu_stop(vgpu);
	vgpu->held = true;
	vgpu_change_state(vgpu, state);
	mutex_unlock(&vgpu->life_lock);
}

static void vgpu_let_go(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = pci_get_drvdata(pdev);

	mutex_lock(&vgpu->life_lock);
	if (vgpu->held) {
		vgpu->held = false;
		vgpu_change_state(vgpu, VGPU_QUIET);
		vgpu_start(vgpu);
	}
	mutex_unlock(&vgpu->life_lock);
}

static void vgpu_reset_prepare(struct pci_dev *pdev)
{
	vgpu_hold(pci_get_drvdata(pdev), VGPU_QUIET);
}

/* Nobody tells us when the recovery fails: until it has succeeded the device is dead. */
static pci_ers_result_t vgpu_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	vgpu_hold(pci_get_drvdata(pdev), VGPU_DEAD);
	return state == pci_channel_io_frozen ? PCI_ERS_RESULT_NEED_RESET :
						PCI_ERS_RESULT_DISCONNECT;
}

static pci_ers_result_t vgpu_slot_reset(struct pci_dev *pdev)
{
	pci_restore_state(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static const struct pci_error_handlers vgpu_err_handler = {
	.reset_prepare = vgpu_reset_prepare,
	.reset_done = vgpu_let_go,
	.error_detected = vgpu_error_detected,
	.slot_reset = vgpu_slot_reset,
	.resume = vgpu_let_go,
};

/* Suspend and each step of hibernation. Contexts are lost, programs keep their memory. */
static int vgpu_suspend(struct device *dev)
{
	vgpu_hold(dev_get_drvdata(dev), VGPU_QUIET);
	return 0;
}

static int vgpu_resume(struct device *dev)
{
	vgpu_let_go(to_pci_dev(dev));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(vgpu_pm_ops, vgpu_suspend, vgpu_resume);

/* Also before kexec. */
static void vgpu_shutdown(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = pci_get_drvdata(pdev);

	vgpu_hold(vgpu, VGPU_DEAD);
	vgpu_wait_quiet(vgpu);
}

/* ---- Interrupt ---- */

static irqreturn_t vgpu_interrupt(int irq, void *data)
{
	struct vgpu_dev *vgpu = data;

	/* A line may be somebody else's. */
	if (!vgpu->msi && !vgpu_ctrl_take_line(vgpu))
		return IRQ_NONE;
	/* The usual case is spared the thread: one switch less on the way to the program. */
	return vgpu_slots_wake(vgpu, false) ? IRQ_WAKE_THREAD : IRQ_HANDLED;
}

static irqreturn_t vgpu_interrupt_thread(int irq, void *data)
{
	vgpu_slots_wake(data, true);
	return IRQ_HANDLED;
}

static int vgpu_setup_irq(struct vgpu_dev *vgpu)
{
	struct pci_dev *pdev = vgpu->pdev;
	int ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_ALL_TYPES);

	if (ret < 0)
		return dev_err_probe(&pdev->dev, ret, "no interrupt\n");
	vgpu->msi = pci_dev_msi_enabled(pdev);
	ret = request_threaded_irq(pci_irq_vector(pdev, 0), vgpu_interrupt, vgpu_interrupt_thread,
				   vgpu->msi ? 0 : IRQF_SHARED, KBUILD_MODNAME, vgpu);
	if (ret)
		pci_free_irq_vectors(pdev);
	return ret;
}

/* ---- Probe and remove ---- */

static int vgpu_setup_pci(struct vgpu_dev *vgpu)
{
	struct pci_dev *pdev = vgpu->pdev;
	int ret = pcim_enable_device(pdev);

	if (ret)
		return dev_err_probe(&pdev->dev, ret, "enabling the device\n");
	/* Neighbours in what such a guest takes for memory need not be neighbours for a device. */
	if (xen_pv_domain())
		return dev_err_probe(&pdev->dev, -ENODEV, "not in a paravirtual Xen guest\n");
	if (pci_resource_len(pdev, 0) < VGPU_BAR0_BYTES)
		return dev_err_probe(&pdev->dev, -ENODEV, "BAR 0 is too small\n");
	vgpu->bar = devm_ioremap_resource(&pdev->dev, &pdev->resource[0]);
	if (IS_ERR(vgpu->bar))
		return PTR_ERR(vgpu->bar); /* it has said why */
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "no 64-bit DMA\n");
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	dma_set_seg_boundary(&pdev->dev, ULONG_MAX);
	vgpu->direct = vgpu_mem_is_direct(&pdev->dev);
	return vgpu_ctrl_alloc(vgpu);
}

static void vgpu_dev_release(struct device *dev)
{
	struct vgpu_dev *vgpu = container_of(dev, struct vgpu_dev, dev);

	pci_dev_put(vgpu->pdev);
	kfree(vgpu);
}

static struct vgpu_dev *vgpu_dev_alloc(struct pci_dev *pdev, int id)
{
	struct vgpu_dev *vgpu = kzalloc(sizeof(*vgpu), GFP_KERNEL);

	if (!vgpu)
		return NULL;
	vgpu->pdev = pci_dev_get(pdev);
	mutex_init(&vgpu->life_lock);
	init_rwsem(&vgpu->binding);
	rwlock_init(&vgpu->access_lock);
	spin_lock_init(&vgpu->ctrl_lock);
	spin_lock_init(&vgpu->slot_lock);
	spin_lock_init(&vgpu->mem_lock);
	init_waitqueue_head(&vgpu->ready);
	INIT_LIST_HEAD(&vgpu->mems);
	INIT_DELAYED_WORK(&vgpu->janitor, vgpu_janitor);
	device_initialize(&vgpu->dev);
	vgpu->dev.class = &vgpu_class;
	vgpu->dev.parent = &pdev->dev;
	vgpu->dev.devt = MKDEV(MAJOR(vgpu_numbers), id);
	vgpu->dev.release = vgpu_dev_release;
	dev_set_name(&vgpu->dev, "vgpu%d", id); /* what has no name is not added */
	cdev_init(&vgpu->cdev, &vgpu_fops);
	vgpu->cdev.owner = THIS_MODULE;
	return vgpu;
}

/* From here on the device has nothing of this binding, and nobody finds it through its files. */
static void vgpu_unbind(struct vgpu_dev *vgpu)
{
	bool quiet;

	mutex_lock(&vgpu->life_lock);
	vgpu_stop(vgpu);
	vgpu->held = true;
	free_irq(pci_irq_vector(vgpu->pdev, 0), vgpu);
	pci_free_irq_vectors(vgpu->pdev);
	quiet = vgpu_is_quiet(vgpu);
	vgpu_change_state(vgpu, VGPU_GONE);
	mutex_unlock(&vgpu->life_lock);
	/* Queued inside vgpu_enter(), by the interrupt, or by itself: none is any more. */
	cancel_delayed_work_sync(&vgpu->janitor);
	if (vgpu->direct || quiet)
		vgpu_mems_detach(vgpu);
	if (!quiet) {
		vgpu_park(vgpu);
		return;
	}
	vgpu_slots_give_back(vgpu);
	vgpu_ctrl_free(vgpu);
}

static int vgpu_bind(struct vgpu_dev *vgpu)
{
	int ret = vgpu_setup_pci(vgpu);

	if (!ret)
		ret = vgpu_setup_irq(vgpu);
	if (ret) {
		vgpu_ctrl_free(vgpu);
		return ret;
	}
	mutex_lock(&vgpu->life_lock);
	/* An earlier binding, or the kernel before this one, may have left the device running. */
	pci_clear_master(vgpu->pdev);
	ret = vgpu_start(vgpu);
	mutex_unlock(&vgpu->life_lock);
	if (!ret || ret == -EBUSY)
		ret = cdev_device_add(&vgpu->cdev, &vgpu->dev);
	if (ret)
		vgpu_unbind(vgpu);
	return ret;
}

static int vgpu_probe(struct pci_dev *pdev, const struct pci_device_id *pci_id)
{
	int id = ida_alloc_max(&vgpu_ids, VGPU_MAX_DEVICES - 1, GFP_KERNEL), ret = -ENOMEM;
	struct vgpu_dev *vgpu;

	if (id < 0)
		return id;
	vgpu = vgpu_dev_alloc(pdev, id);
	if (!vgpu)
		goto free_id;
	pci_set_drvdata(pdev, vgpu);
	ret = vgpu_bind(vgpu);
	if (ret)
		goto put;
	dev_info(&vgpu->dev, "%u channels, %s, ABI version %u, features %llx\n",
		 vgpu->max_channels, vgpu->msi ? "MSI" : "INTx", vgpu->info.abi_version,
		 vgpu->info.features);
	return 0;

put:
	put_device(&vgpu->dev);
free_id:
	ida_free(&vgpu_ids, id);
	return ret;
}

static void vgpu_remove(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = pci_get_drvdata(pdev);

	cdev_device_del(&vgpu->cdev, &vgpu->dev);
	/* Files that are still open don't keep its name from the next device. */
	ida_free(&vgpu_ids, MINOR(vgpu->dev.devt));
	vgpu_unbind(vgpu);
	put_device(&vgpu->dev);
}

static const struct pci_device_id vgpu_pci_ids[] = {
	{ PCI_DEVICE(VGPU_PCI_VENDOR_ID, VGPU_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, vgpu_pci_ids);

static struct pci_driver vgpu_driver = {
	.name = KBUILD_MODNAME,
	.id_table = vgpu_pci_ids,
	.probe = vgpu_probe,
	.remove = vgpu_remove,
	.shutdown = vgpu_shutdown,
	.err_handler = &vgpu_err_handler,
	.driver.pm = pm_sleep_ptr(&vgpu_pm_ops),
};

static int __init vgpu_init(void)
{
	int ret = alloc_chrdev_region(&vgpu_numbers, 0, VGPU_MAX_DEVICES, "vgpu");

	if (ret)
		return ret;
	ret = class_register(&vgpu_class);
	if (ret)
		goto unregister_region;
	ret = pci_register_driver(&vgpu_driver);
	if (ret)
		goto unregister_class;
	register_reboot_notifier(&vgpu_before_reboot);
	return 0;

unregister_class:
	class_unregister(&vgpu_class);
unregister_region:
	unregister_chrdev_region(vgpu_numbers, VGPU_MAX_DEVICES);
	return ret;
}
module_init(vgpu_init);

static void __exit vgpu_exit(void)
{
	unregister_reboot_notifier(&vgpu_before_reboot);
	pci_unregister_driver(&vgpu_driver);
	class_unregister(&vgpu_class);
	unregister_chrdev_region(vgpu_numbers, VGPU_MAX_DEVICES);
}
module_exit(vgpu_exit);

MODULE_DESCRIPTION("Guest driver of vgpud virtual functions");
MODULE_AUTHOR("The vgpud authors");
MODULE_LICENSE("GPL");
