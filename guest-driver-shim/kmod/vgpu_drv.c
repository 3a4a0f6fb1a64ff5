// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI side: probe, interrupt, and all that stops and starts the device: reset, errors, suspend,
 * shutdown, removal.
 *
 * Each stop is the same: nobody enters any more, the host ends its channels, the epoch changes.
 * Then the function is reset, or bus mastering goes off and the host confirms that no transaction
 * is pending: from there on the memory is ours.
 */
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/pm.h>
#include <linux/slab.h>

#include "vgpu.h"
#include "vgpu_compat.h"

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

VGPU_ATTR(state, "%s", vgpu_states[READ_ONCE(vgpu->state)]);
VGPU_ATTR(channels, "%u", bitmap_weight(vgpu->used, VGPU_MAX_CHANNELS));
VGPU_ATTR(pinned_bytes, "%llu", READ_ONCE(vgpu->pinned_bytes));
VGPU_ATTR(parked_bytes, "%llu", READ_ONCE(vgpu->parked_bytes));

static struct attribute *vgpu_attrs[] = {
	&dev_attr_state.attr,
	&dev_attr_channels.attr,
	&dev_attr_pinned_bytes.attr,
	&dev_attr_parked_bytes.attr,
	NULL
};

/* struct vgpu_status, for programs that look on and need no channel. */
static ssize_t status_read(struct file *file, struct kobject *kobj, VGPU_BIN_ATTRIBUTE *attr,
			   char *buf, loff_t off, size_t count)
{
	struct vgpu_dev *vgpu = container_of(kobj_to_dev(kobj), struct vgpu_dev, dev);
	int srcu;
	ssize_t ret = vgpu_enter(vgpu, &srcu);

	if (ret)
		return ret;
	ret = vgpu_ctrl_read_status(vgpu, buf, off, count);
	vgpu_leave(vgpu, srcu);
	return ret;
}
static BIN_ATTR_RO(status, sizeof(struct vgpu_status));

static VGPU_BIN_ATTRIBUTE *vgpu_bin_attrs[] = { &bin_attr_status, NULL };

static const struct attribute_group vgpu_group = {
	.attrs = vgpu_attrs,
	.bin_attrs = vgpu_bin_attrs,
};
__ATTRIBUTE_GROUPS(vgpu);

static struct class vgpu_class = {
	.name = "vgpu",
	.dev_groups = vgpu_groups,
};

/* ---- Stop and start, with life_lock held ---- */

static void vgpu_stop(struct vgpu_dev *vgpu)
{
	struct pci_dev *pdev = vgpu->pdev;
	bool running = xchg(&vgpu->state, VGPU_QUIET) == VGPU_RUNNING;

	lockdep_assert_held(&vgpu->life_lock);
	synchronize_srcu(&vgpu->srcu);
	if (running && !pci_channel_offline(pdev) && pci_device_is_present(pdev)) {
		vgpu_channels_end(vgpu);
		vgpu_ctrl_stop(vgpu);
	}
	WRITE_ONCE(vgpu->epoch, vgpu->epoch + 1);
	vgpu_channels_lose(vgpu);
}

/* The host may not touch memory any more, and has confirmed that it does not. */
static void vgpu_cut_off(struct vgpu_dev *vgpu)
{
	pci_clear_master(vgpu->pdev);
	if (pci_device_is_present(vgpu->pdev) && !pci_wait_for_pending_transaction(vgpu->pdev))
		dev_warn(&vgpu->dev, "the host goes on using memory\n");
}

/* After a reset, or after vgpu_cut_off(): what the host held before is free. */
static int vgpu_start(struct vgpu_dev *vgpu)
{
	int ret;

	lockdep_assert_held(&vgpu->life_lock);
	pci_set_master(vgpu->pdev);
	ret = vgpu_ctrl_start(vgpu);
	WRITE_ONCE(vgpu->state, ret ? VGPU_DEAD : VGPU_RUNNING);
	if (!ret) {
		vgpu_mems_unpark(vgpu);
		/* What a reset of the bus loses. */
		pci_save_state(vgpu->pdev);
	}
	wake_up_all(&vgpu->ready);
	return ret;
}

/* The host has forgotten us: it has reset the VF by itself. */
static void vgpu_recover(struct work_struct *work)
{
	struct vgpu_dev *vgpu = container_of(work, struct vgpu_dev, recover);

	mutex_lock(&vgpu->life_lock);
	if (READ_ONCE(vgpu->state) == VGPU_RUNNING) {
		vgpu_stop(vgpu);
		vgpu_cut_off(vgpu);
		vgpu_start(vgpu);
	}
	mutex_unlock(&vgpu->life_lock);
}

static void vgpu_reset_prepare(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = pci_get_drvdata(pdev);

	mutex_lock(&vgpu->life_lock);
	vgpu_stop(vgpu);
	mutex_unlock(&vgpu->life_lock);
}

static void vgpu_reset_done(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = pci_get_drvdata(pdev);

	mutex_lock(&vgpu->life_lock);
	if (READ_ONCE(vgpu->state) == VGPU_QUIET && vgpu_start(vgpu))
		dev_err(&pdev->dev, "the device does not answer after its reset\n");
	mutex_unlock(&vgpu->life_lock);
}

static pci_ers_result_t vgpu_error_detected(struct pci_dev *pdev, pci_channel_state_t state)
{
	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	vgpu_reset_prepare(pdev);
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
	.reset_done = vgpu_reset_done,
	.error_detected = vgpu_error_detected,
	.slot_reset = vgpu_slot_reset,
	.resume = vgpu_reset_done,
};

/* Suspend and each step of hibernation. Contexts are lost, programs keep their memory. */
static int vgpu_suspend(struct device *dev)
{
	struct vgpu_dev *vgpu = dev_get_drvdata(dev);

	mutex_lock(&vgpu->life_lock);
	vgpu_stop(vgpu);
	vgpu_cut_off(vgpu);
	mutex_unlock(&vgpu->life_lock);
	return 0;
}

static int vgpu_resume(struct device *dev)
{
	vgpu_reset_done(to_pci_dev(dev));
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(vgpu_pm_ops, vgpu_suspend, vgpu_resume);

/* Also before kexec: nothing may write into the next kernel. */
static void vgpu_shutdown(struct pci_dev *pdev)
{
	vgpu_suspend(&pdev->dev);
}

/* ---- Interrupt ---- */

static irqreturn_t vgpu_interrupt(int irq, void *data)
{
	struct vgpu_dev *vgpu = data;

	/* A line may be somebody else's. */
	if (!vgpu->msi && !vgpu_ctrl_take_line(vgpu))
		return IRQ_NONE;
	/* The usual case is spared the thread; with PREEMPT_RT nobody can be woken here. */
	if (!IS_ENABLED(CONFIG_PREEMPT_RT) && vgpu->features & VGPU_FEATURE_EVENT_COUNTS &&
	    vgpu_ctrl_refresh_one(vgpu))
		return IRQ_HANDLED;
	return IRQ_WAKE_THREAD;
}

static irqreturn_t vgpu_interrupt_thread(int irq, void *data)
{
	struct vgpu_dev *vgpu = data;

	vgpu_ctrl_refresh(vgpu, !(vgpu->features & VGPU_FEATURE_EVENT_COUNTS));
	return IRQ_HANDLED;
}

static int vgpu_setup_irq(struct vgpu_dev *vgpu)
{
	struct pci_dev *pdev = vgpu->pdev;
	int ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSI | PCI_IRQ_INTX);

	if (ret < 0)
		return dev_err_probe(&pdev->dev, ret, "no interrupt\n");
	vgpu->msi = pdev->msi_enabled;
	ret = request_threaded_irq(pci_irq_vector(pdev, 0), vgpu_interrupt, vgpu_interrupt_thread,
				   vgpu->msi ? 0 : IRQF_SHARED, KBUILD_MODNAME, vgpu);
	if (ret)
		pci_free_irq_vectors(pdev);
	return ret;
}

static void vgpu_teardown_irq(struct vgpu_dev *vgpu)
{
	free_irq(pci_irq_vector(vgpu->pdev, 0), vgpu);
	pci_free_irq_vectors(vgpu->pdev);
}

/* ---- Probe and remove ---- */

static int vgpu_setup_pci(struct vgpu_dev *vgpu)
{
	struct pci_dev *pdev = vgpu->pdev;
	int ret = pcim_enable_device(pdev);

	if (ret)
		return dev_err_probe(&pdev->dev, ret, "enabling the device\n");
	if (pci_resource_len(pdev, 0) < VGPU_BAR0_BYTES)
		return dev_err_probe(&pdev->dev, -ENODEV, "BAR 0 is too small\n");
	vgpu->bar = vgpu_pcim_iomap(pdev, 0);
	if (IS_ERR(vgpu->bar))
		return dev_err_probe(&pdev->dev, PTR_ERR(vgpu->bar), "mapping BAR 0\n");
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "no 64-bit DMA\n");
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	vgpu->direct = vgpu_mem_is_direct(&pdev->dev);
	BUILD_BUG_ON(sizeof(*vgpu->ctrl) > PAGE_SIZE);
	vgpu->ctrl = dmam_alloc_coherent(&pdev->dev, PAGE_SIZE, &vgpu->ctrl_dma, GFP_KERNEL);
	return vgpu->ctrl ? 0 : -ENOMEM;
}

static void vgpu_dev_release(struct device *dev)
{
	struct vgpu_dev *vgpu = container_of(dev, struct vgpu_dev, dev);

	cleanup_srcu_struct(&vgpu->srcu);
	pci_dev_put(vgpu->pdev);
	kfree(vgpu);
}

static struct vgpu_dev *vgpu_dev_alloc(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = kzalloc(sizeof(*vgpu), GFP_KERNEL);
	unsigned int i;
	int id;

	if (!vgpu)
		return NULL;
	if (init_srcu_struct(&vgpu->srcu))
		goto free;
	id = ida_alloc_max(&vgpu_ids, VGPU_MAX_DEVICES - 1, GFP_KERNEL);
	if (id < 0)
		goto cleanup;
	vgpu->pdev = pci_dev_get(pdev);
	mutex_init(&vgpu->life_lock);
	mutex_init(&vgpu->slot_lock);
	mutex_init(&vgpu->ctrl_lock);
	mutex_init(&vgpu->mem_lock);
	spin_lock_init(&vgpu->seen_lock);
	init_waitqueue_head(&vgpu->ready);
	for (i = 0; i < VGPU_MAX_CHANNELS; i++)
		init_waitqueue_head(&vgpu->slots[i].wait);
	INIT_LIST_HEAD(&vgpu->mems);
	INIT_LIST_HEAD(&vgpu->parked);
	INIT_WORK(&vgpu->recover, vgpu_recover);
	INIT_DELAYED_WORK(&vgpu->watch, vgpu_channels_watch);
	device_initialize(&vgpu->dev);
	vgpu->dev.class = &vgpu_class;
	vgpu->dev.parent = &pdev->dev;
	vgpu->dev.devt = MKDEV(MAJOR(vgpu_numbers), id);
	vgpu->dev.release = vgpu_dev_release;
	cdev_init(&vgpu->cdev, &vgpu_fops);
	vgpu->cdev.owner = THIS_MODULE;
	if (!dev_set_name(&vgpu->dev, "vgpu%d", id))
		return vgpu;
	ida_free(&vgpu_ids, id);
	put_device(&vgpu->dev);
	return NULL;

cleanup:
	cleanup_srcu_struct(&vgpu->srcu);
free:
	kfree(vgpu);
	return NULL;
}

static int vgpu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct vgpu_dev *vgpu = vgpu_dev_alloc(pdev);
	int ret;

	if (!vgpu)
		return -ENOMEM;
	pci_set_drvdata(pdev, vgpu);
	ret = vgpu_setup_pci(vgpu);
	if (ret)
		goto put;
	ret = vgpu_setup_irq(vgpu);
	if (ret)
		goto put;
	mutex_lock(&vgpu->life_lock);
	/* What a kernel before this one has left running there, if it crashed. */
	vgpu_cut_off(vgpu);
	ret = vgpu_start(vgpu);
	mutex_unlock(&vgpu->life_lock);
	if (ret)
		goto cut_off;
	ret = cdev_device_add(&vgpu->cdev, &vgpu->dev);
	if (ret)
		goto cut_off;
	dev_info(&vgpu->dev, "%u channels, %s, ABI version %u, features %llx\n",
		 vgpu->max_channels, vgpu->msi ? "MSI" : "INTx", vgpu->info.abi_version,
		 vgpu->info.features);
	return 0;

cut_off:
	vgpu_cut_off(vgpu);
	cancel_work_sync(&vgpu->recover);
	vgpu_teardown_irq(vgpu);
put:
	ida_free(&vgpu_ids, MINOR(vgpu->dev.devt));
	put_device(&vgpu->dev);
	return ret;
}

static void vgpu_remove(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = pci_get_drvdata(pdev);

	cdev_device_del(&vgpu->cdev, &vgpu->dev);
	/* Files that are still open don't keep its name from the next device. */
	ida_free(&vgpu_ids, MINOR(vgpu->dev.devt));
	mutex_lock(&vgpu->life_lock);
	vgpu_stop(vgpu);
	vgpu_teardown_irq(vgpu);
	vgpu_cut_off(vgpu);
	vgpu_mems_make_stand_ins(vgpu);
	/* Pairs with vgpu_vm_fault(): the stand-ins first. */
	smp_store_release(&vgpu->state, VGPU_GONE);
	mutex_unlock(&vgpu->life_lock);
	wake_up_all(&vgpu->ready);
	cancel_work_sync(&vgpu->recover);
	/* Queued inside vgpu_enter() only: vgpu_stop() has seen the last of it. */
	cancel_delayed_work_sync(&vgpu->watch);
	/* Faults that have seen the state before. */
	synchronize_srcu(&vgpu->srcu);
	vgpu_channels_detach(vgpu);
	vgpu_mems_unpark(vgpu);
	vgpu_mems_detach(vgpu);
	flush_workqueue(vgpu_reaper);
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
	int ret;

	/* Not while suspended: what is closed then waits. */
	vgpu_reaper = alloc_workqueue("vgpu", WQ_UNBOUND | WQ_FREEZABLE, 0);
	if (!vgpu_reaper)
		return -ENOMEM;
	ret = alloc_chrdev_region(&vgpu_numbers, 0, VGPU_MAX_DEVICES, "vgpu");
	if (ret)
		goto destroy;
	ret = class_register(&vgpu_class);
	if (ret)
		goto unregister_region;
	ret = pci_register_driver(&vgpu_driver);
	if (ret)
		goto unregister_class;
	return 0;

unregister_class:
	class_unregister(&vgpu_class);
unregister_region:
	unregister_chrdev_region(vgpu_numbers, VGPU_MAX_DEVICES);
destroy:
	destroy_workqueue(vgpu_reaper);
	return ret;
}
module_init(vgpu_init);

static void __exit vgpu_exit(void)
{
	pci_unregister_driver(&vgpu_driver);
	/* Channels that were closed a moment ago; each holds its device. */
	destroy_workqueue(vgpu_reaper);
	class_unregister(&vgpu_class);
	unregister_chrdev_region(vgpu_numbers, VGPU_MAX_DEVICES);
	ida_destroy(&vgpu_ids);
}
module_exit(vgpu_exit);

MODULE_DESCRIPTION("Guest driver of vgpud virtual functions");
MODULE_AUTHOR("The vgpud authors");
MODULE_LICENSE("GPL");
