// SPDX-License-Identifier: GPL-2.0
/* PCI side: probe, interrupt, function-level reset, removal. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "vgpu.h"

#ifndef PCI_IRQ_INTX
#define PCI_IRQ_INTX PCI_IRQ_LEGACY
#endif

static DEFINE_IDA(vgpu_ids);

static void vgpu_dev_free(struct kref *ref)
{
	struct vgpu_dev *vgpu = container_of(ref, struct vgpu_dev, ref);

	if (vgpu->ctrl_mem)
		vgpu_mem_put(vgpu->ctrl_mem);
	ida_free(&vgpu_ids, vgpu->id);
	pci_dev_put(vgpu->pdev);
	kfree(vgpu);
}

void vgpu_dev_get(struct vgpu_dev *vgpu)
{
	kref_get(&vgpu->ref);
}

void vgpu_dev_put(struct vgpu_dev *vgpu)
{
	kref_put(&vgpu->ref, vgpu_dev_free);
}

int vgpu_enter(struct vgpu_dev *vgpu)
{
	down_read(&vgpu->alive_sem);
	if (!vgpu->dead)
		return 0;
	up_read(&vgpu->alive_sem);
	return -ENODEV;
}

void vgpu_leave(struct vgpu_dev *vgpu)
{
	up_read(&vgpu->alive_sem);
}

u64 vgpu_read64(struct vgpu_dev *vgpu, u32 reg)
{
	return ioread32(vgpu->bar + reg) | (u64)ioread32(vgpu->bar + reg + 4) << 32;
}

void vgpu_read_bytes(struct vgpu_dev *vgpu, u32 reg, void *to, size_t bytes)
{
	size_t at;

	for (at = 0; at < bytes; at += 4) {
		__le32 word = cpu_to_le32(ioread32(vgpu->bar + reg + at));

		memcpy(to + at, &word, sizeof(word));
	}
}

static irqreturn_t vgpu_interrupt(int irq, void *data)
{
	struct vgpu_dev *vgpu = data;

	/* A line interrupt stays raised until the device is read. */
	if (!vgpu->use_msi)
		ioread32(vgpu->bar + VGPU_REG_IRQ_STATUS);
	atomic_inc(&vgpu->interrupts);
	wake_up_all(&vgpu->wait);
	return IRQ_HANDLED;
}

static int vgpu_check_device(struct vgpu_dev *vgpu)
{
	struct device *dev = &vgpu->pdev->dev;
	u32 magic = ioread32(vgpu->bar + VGPU_REG_MAGIC);
	u32 version = ioread32(vgpu->bar + VGPU_REG_ABI_VERSION);

	if (magic != VGPU_MAGIC)
		return dev_err_probe(dev, -ENODEV, "not a vgpud VF: magic %08x\n", magic);
	if (version != VGPU_ABI_VERSION)
		return dev_err_probe(dev, -EPROTO,
				     "the host speaks ABI version %u, this driver %u: install the matching driver\n",
				     version, VGPU_ABI_VERSION);
	vgpu->max_channels = min(ioread32(vgpu->bar + VGPU_REG_MAX_CHANNELS), VGPU_MAX_CHANNELS);
	if (!vgpu->max_channels)
		return dev_err_probe(dev, -EPROTO, "the host offers no channels\n");
	return 0;
}

static int vgpu_setup_irq(struct vgpu_dev *vgpu)
{
	struct pci_dev *pdev = vgpu->pdev;
	int ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSI | PCI_IRQ_INTX);

	if (ret < 0)
		return dev_err_probe(&pdev->dev, ret, "no interrupt\n");
	vgpu->use_msi = pdev->msi_enabled;
	ret = request_irq(pci_irq_vector(pdev, 0), vgpu_interrupt, vgpu->use_msi ? 0 : IRQF_SHARED, "vgpu", vgpu);
	if (ret)
		pci_free_irq_vectors(pdev);
	return ret;
}

static void vgpu_teardown_irq(struct vgpu_dev *vgpu)
{
	free_irq(pci_irq_vector(vgpu->pdev, 0), vgpu);
	pci_free_irq_vectors(vgpu->pdev);
}

static int vgpu_setup_pci(struct vgpu_dev *vgpu)
{
	struct pci_dev *pdev = vgpu->pdev;
	int ret = pcim_enable_device(pdev);

	if (!ret)
		ret = pcim_iomap_regions(pdev, BIT(0), "vgpu");
	if (!ret)
		ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "PCI setup\n");
	vgpu->bar = pcim_iomap_table(pdev)[0];
	if (pci_resource_len(pdev, 0) < VGPU_BAR0_BYTES)
		return dev_err_probe(&pdev->dev, -ENODEV, "BAR 0 is too small\n");
	pci_set_master(pdev);
	return 0;
}

static int vgpu_setup_ctrl(struct vgpu_dev *vgpu)
{
	vgpu->ctrl_mem = vgpu_mem_alloc(&vgpu->pdev->dev, PAGE_SIZE);
	if (IS_ERR(vgpu->ctrl_mem)) {
		int ret = PTR_ERR(vgpu->ctrl_mem);

		vgpu->ctrl_mem = NULL;
		return ret;
	}
	BUILD_BUG_ON(sizeof(*vgpu->ctrl) > PAGE_SIZE);
	vgpu->ctrl = vgpu_mem_start(vgpu->ctrl_mem);
	return vgpu_ctrl_set_page(vgpu);
}

static void vgpu_teardown_ctrl(struct vgpu_dev *vgpu)
{
	if (!vgpu->ctrl_mem)
		return;
	iowrite32(0, vgpu->bar + VGPU_REG_CTRL_ADDR_LO);
	iowrite32(0, vgpu->bar + VGPU_REG_CTRL_ADDR_HI);
	ioread32(vgpu->bar + VGPU_REG_CTRL_SEQ); /* fence */
	pci_clear_master(vgpu->pdev);
	vgpu_mem_dma_unmap(vgpu->ctrl_mem);
}

static struct vgpu_dev *vgpu_dev_alloc(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = kzalloc(sizeof(*vgpu), GFP_KERNEL);

	if (!vgpu)
		return NULL;
	vgpu->id = ida_alloc(&vgpu_ids, GFP_KERNEL);
	if (vgpu->id < 0) {
		kfree(vgpu);
		return NULL;
	}
	kref_init(&vgpu->ref);
	vgpu->pdev = pci_dev_get(pdev);
	snprintf(vgpu->name, sizeof(vgpu->name), "vgpu%d", vgpu->id);
	init_rwsem(&vgpu->alive_sem);
	mutex_init(&vgpu->ctrl_lock);
	mutex_init(&vgpu->channels_lock);
	init_waitqueue_head(&vgpu->wait);
	vgpu->max_pinned_bytes = ((u64)totalram_pages() << PAGE_SHIFT) / 2;
	vgpu->misc.minor = MISC_DYNAMIC_MINOR;
	vgpu->misc.name = vgpu->name;
	vgpu->misc.fops = &vgpu_channel_fops;
	vgpu->misc.mode = 0666; /* CUDA programs need no root */
	vgpu->misc.parent = &pdev->dev;
	return vgpu;
}

static int vgpu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct vgpu_dev *vgpu = vgpu_dev_alloc(pdev);
	int ret;

	if (!vgpu)
		return -ENOMEM;
	ret = vgpu_setup_pci(vgpu);
	if (!ret)
		ret = vgpu_check_device(vgpu);
	if (ret)
		goto put;
	ret = vgpu_setup_irq(vgpu);
	if (ret)
		goto put;
	ret = vgpu_setup_ctrl(vgpu);
	if (ret)
		goto ctrl;
	pci_set_drvdata(pdev, vgpu);
	ret = misc_register(&vgpu->misc);
	if (ret)
		goto ctrl;
	dev_info(&pdev->dev, "/dev/%s: %u channels, %s\n", vgpu->name, vgpu->max_channels,
		 vgpu->use_msi ? "MSI" : "INTx");
	return 0;
ctrl:
	vgpu_teardown_ctrl(vgpu);
	vgpu_teardown_irq(vgpu);
put:
	vgpu_dev_put(vgpu);
	return ret;
}

/* Asks the host to end every channel that is still open, and waits for it. */
static void vgpu_end_channels(struct vgpu_dev *vgpu)
{
	u32 i;

	for (i = 0; i < vgpu->max_channels; i++)
		if (vgpu_ctrl_channel_state(vgpu, i) != VGPU_CHANNEL_FREE)
			vgpu_ctrl_command(vgpu, VGPU_CTRL_CHANNEL_DESTROY, i, 0, NULL);
	for (i = 0; i < vgpu->max_channels; i++)
		wait_event_idle_timeout(vgpu->wait, vgpu_ctrl_channel_state(vgpu, i) == VGPU_CHANNEL_FREE,
					msecs_to_jiffies(VGPU_REMOVE_MS));
}

static void vgpu_remove(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = pci_get_drvdata(pdev);

	misc_deregister(&vgpu->misc);
	down_write(&vgpu->alive_sem);
	if (!pci_dev_is_disconnected(pdev) && ioread32(vgpu->bar + VGPU_REG_MAGIC) == VGPU_MAGIC)
		vgpu_end_channels(vgpu);
	WRITE_ONCE(vgpu->dead, true);
	up_write(&vgpu->alive_sem);
	wake_up_all(&vgpu->wait);
	vgpu_teardown_irq(vgpu);
	vgpu_teardown_ctrl(vgpu);
	vgpu_channels_abandon(vgpu);
	vgpu_dev_put(vgpu);
}

static void vgpu_reset_prepare(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = pci_get_drvdata(pdev);

	down_write(&vgpu->alive_sem);
	vgpu_end_channels(vgpu);
}

/* A reset ended every channel: their files only report the loss from now on. */
static void vgpu_reset_done(struct pci_dev *pdev)
{
	struct vgpu_dev *vgpu = pci_get_drvdata(pdev);
	u32 i;

	mutex_lock(&vgpu->channels_lock);
	for (i = 0; i < vgpu->max_channels; i++)
		if (vgpu->channels[i])
			WRITE_ONCE(vgpu->channels[i]->lost, true);
	mutex_unlock(&vgpu->channels_lock);
	if (vgpu_ctrl_set_page(vgpu))
		dev_err(&pdev->dev, "the device does not answer after its reset\n");
	up_write(&vgpu->alive_sem);
	wake_up_all(&vgpu->wait);
}

static const struct pci_error_handlers vgpu_err_handler = {
	.reset_prepare = vgpu_reset_prepare,
	.reset_done = vgpu_reset_done,
};

static const struct pci_device_id vgpu_pci_ids[] = {
	{ PCI_DEVICE(VGPU_PCI_VENDOR_ID, VGPU_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, vgpu_pci_ids);

static struct pci_driver vgpu_driver = {
	.name = "vgpu",
	.id_table = vgpu_pci_ids,
	.probe = vgpu_probe,
	.remove = vgpu_remove,
	.err_handler = &vgpu_err_handler,
};

static int __init vgpu_init(void)
{
	int ret;

	vgpu_reaper = alloc_workqueue("vgpu", WQ_UNBOUND, 0);
	if (!vgpu_reaper)
		return -ENOMEM;
	ret = pci_register_driver(&vgpu_driver);
	if (ret)
		destroy_workqueue(vgpu_reaper);
	return ret;
}
module_init(vgpu_init);

static void __exit vgpu_exit(void)
{
	pci_unregister_driver(&vgpu_driver);
	destroy_workqueue(vgpu_reaper);
	ida_destroy(&vgpu_ids);
}
module_exit(vgpu_exit);

MODULE_DESCRIPTION("vgpud virtual function");
MODULE_LICENSE("GPL");
