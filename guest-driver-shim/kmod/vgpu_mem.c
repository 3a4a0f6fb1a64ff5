// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory shared with the host: where its pages come from, and how long the device has addresses.
 *
 * The host and user processes write the same pages at the same time, so they can't be synchronised:
 * DMA has to be coherent, as on x86 (Kconfig). Where the device reaches pages as they are memory is
 * made of ordinary pages, and only their addresses for the device end with the binding. Elsewhere
 * (bounce buffers, confidential guests) it comes from the DMA API; when the driver is unbound,
 * ordinary pages with the same bytes take its place.
 */
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "vgpu.h"

/* A piece of the DMA API's memory. */
#define VGPU_DMA_PIECE_BYTES SZ_64K
#define VGPU_LIST_GFP (GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/**
 * vgpu_mem_is_direct() - does the device reach pages of our own for good?
 * @dev: the function
 *
 * Return: false: memory has to come from the DMA API (bounce buffers, confidential guests).
 */
bool vgpu_mem_is_direct(struct device *dev)
{
	u32 *page = (u32 *)get_zeroed_page(GFP_KERNEL);
	bool direct = false;
	dma_addr_t dma;

	if (!page)
		return false;
	dma = dma_map_single(dev, page, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (!dma_mapping_error(dev, dma)) {
		/* A bounce buffer has no part in this, and takes its place when it ends. */
		WRITE_ONCE(*page, VGPU_MAGIC);
		dma_unmap_single(dev, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
		direct = READ_ONCE(*page) == VGPU_MAGIC;
	}
	free_page((unsigned long)page);
	return direct;
}

/* ---- Addresses for the device ---- */

static void vgpu_mem_link(struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = mem->channel->vgpu;

	spin_lock(&vgpu->mem_lock);
	list_add(&mem->link, &vgpu->mems);
	spin_unlock(&vgpu->mem_lock);
}

/**
 * vgpu_mem_map() - give the device addresses of memory, if it has none
 * @mem: the memory, which nobody but the caller has
 *
 * An IOMMU may take its time: a change of the state waits for one piece, not for all.
 *
 * Return: 0 or -ENOMEM, or as vgpu_enter().
 */
int vgpu_mem_map(struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = mem->channel->vgpu;
	struct scatterlist *sg;
	unsigned int i;
	int ret = 0;

	if (!list_empty(&mem->link))
		return 0;
	mem->first_mapped = mem->sgt.sgl;
	for_each_sgtable_sg(&mem->sgt, sg, i) {
		cond_resched();
		ret = vgpu_enter(vgpu);
		if (ret)
			break;
		if (!dma_map_sg_attrs(&vgpu->pdev->dev, sg, 1, DMA_BIDIRECTIONAL,
				      DMA_ATTR_SKIP_CPU_SYNC | DMA_ATTR_NO_WARN))
			ret = -ENOMEM;
		else if (!mem->mapped++)
			vgpu_mem_link(mem);
		vgpu_leave(vgpu);
		if (ret)
			break;
	}
	return ret;
}

/* With vgpu_dev.direct. One piece; then whoever waits for the lock gets it. Was there one? */
static bool vgpu_mem_unmap_piece(struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = mem->channel->vgpu;
	bool mapped = mem->mapped;

	lockdep_assert_held(&vgpu->mem_lock);
	if (mapped) {
		dma_unmap_sg_attrs(&vgpu->pdev->dev, mem->first_mapped, 1, DMA_BIDIRECTIONAL,
				   DMA_ATTR_SKIP_CPU_SYNC);
		mem->first_mapped = sg_next(mem->first_mapped);
		if (!--mem->mapped)
			list_del_init(&mem->link);
	}
	spin_unlock(&vgpu->mem_lock);
	cond_resched();
	spin_lock(&vgpu->mem_lock);
	return mapped;
}

/**
 * vgpu_mem_release() - the host has let go of memory, or never had it
 * @mem: the memory; the channel's reference is given up
 */
void vgpu_mem_release(struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = mem->channel->vgpu;

	if (vgpu->direct) {
		spin_lock(&vgpu->mem_lock);
		while (vgpu_mem_unmap_piece(mem))
			;
		spin_unlock(&vgpu->mem_lock);
	}
	atomic64_sub(mem->bytes, &vgpu->bytes);
	vgpu_mem_put(mem);
}

/* ---- Memory of the DMA API, with @binding held ---- */

static void vgpu_mem_free_piece(struct vgpu_mem *mem, struct scatterlist *sg)
{
	if (sg_page(sg))
		dma_free_pages(&mem->channel->vgpu->pdev->dev, sg->length, sg_page(sg),
			       sg_dma_address(sg), DMA_BIDIRECTIONAL);
}

static bool vgpu_mem_add_dma(struct vgpu_mem *mem, struct scatterlist *sg, size_t bytes)
{
	struct vgpu_dev *vgpu = mem->channel->vgpu;
	struct page *page;
	dma_addr_t dma;
	size_t at;

	if (READ_ONCE(vgpu->state) != VGPU_RUNNING)
		return false;
	page = dma_alloc_pages(&vgpu->pdev->dev, bytes, &dma, DMA_BIDIRECTIONAL, VGPU_GFP);
	if (!page)
		return false;
	sg_set_page(sg, page, bytes, 0);
	sg_dma_address(sg) = dma;
	sg_dma_len(sg) = bytes;
	for (at = 0; at < bytes; at += PAGE_SIZE)
		mem->pages[mem->page_count++] = page++;
	if (list_empty(&mem->link))
		vgpu_mem_link(mem);
	return true;
}

/*
 * Takes it off the list. What removal has left there, as the device would not let go of it, nobody
 * can give back any more.
 */
static void vgpu_mem_give_dma(struct vgpu_mem *mem)
{
	struct vgpu_dev *vgpu = mem->channel->vgpu;
	struct scatterlist *sg;
	unsigned int i;
	bool linked;

	spin_lock(&vgpu->mem_lock);
	linked = !list_empty(&mem->link);
	list_del_init(&mem->link);
	spin_unlock(&vgpu->mem_lock);
	if (linked && READ_ONCE(vgpu->state) != VGPU_GONE)
		for_each_sgtable_sg(&mem->sgt, sg, i)
			vgpu_mem_free_piece(mem, sg);
	if (linked)
		mem->page_count = 0;
}

/* NULL without memory: nobody is killed for it, as that one might wait for us. */
static struct page *vgpu_mem_copy(struct page *page)
{
	struct page *copy = alloc_page(GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN);

	if (copy)
		copy_highpage(copy, page);
	cond_resched();
	return copy;
}

/*
 * The driver is unbound. What is touched next are the copies; one that there is no memory for is
 * missing. Each piece goes as soon as it is copied: all of this takes the memory of one. Who has it
 * mapped has its file open.
 */
static void vgpu_mem_leave_dma(struct vgpu_mem *mem)
{
	unsigned long at = 0, end;
	struct scatterlist *sg;
	unsigned int i;

	if (mem->channel->file_mapping)
		unmap_mapping_range(mem->channel->file_mapping, (loff_t)mem->cookie << PAGE_SHIFT,
				    mem->bytes, 1);
	for_each_sgtable_sg(&mem->sgt, sg, i) {
		for (end = at + (sg->length >> PAGE_SHIFT); at < end; at++)
			mem->pages[at] = vgpu_mem_copy(mem->pages[at]);
		vgpu_mem_free_piece(mem, sg);
	}
}

/**
 * vgpu_mems_detach() - the driver is unbound: ends all addresses, and all memory of the DMA API
 * @vgpu: nobody enters any more
 */
void vgpu_mems_detach(struct vgpu_dev *vgpu)
{
	struct vgpu_mem *mem;

	down_write(&vgpu->binding);
	spin_lock(&vgpu->mem_lock);
	while ((mem = list_first_entry_or_null(&vgpu->mems, struct vgpu_mem, link))) {
		if (vgpu->direct) {
			vgpu_mem_unmap_piece(mem);
			continue;
		}
		list_del_init(&mem->link);
		spin_unlock(&vgpu->mem_lock);
		vgpu_mem_leave_dma(mem);
		spin_lock(&vgpu->mem_lock);
	}
	spin_unlock(&vgpu->mem_lock);
	up_write(&vgpu->binding);
}

/* ---- The end ---- */

static void vgpu_mem_free_pages(struct vgpu_mem *mem)
{
	unsigned long i;

	if (mem->owner) {
		vgpu_mem_unpin(mem);
		return;
	}
	for (i = 0; i < mem->page_count; i++) {
		if (mem->pages[i])
			__free_page(mem->pages[i]);
		if (!(i % BIT(VGPU_PIECE_ORDER)))
			cond_resched();
	}
}

static void vgpu_mem_free(struct kref *ref)
{
	struct vgpu_mem *mem = container_of(ref, struct vgpu_mem, ref);

	if (!mem->channel->vgpu->direct) {
		down_read(&mem->channel->vgpu->binding);
		vgpu_mem_give_dma(mem);
		up_read(&mem->channel->vgpu->binding);
	}
	vgpu_mem_free_pages(mem);
	sg_free_table(&mem->sgt);
	kvfree(mem->pages);
	vgpu_user_uncharge(mem->channel->user, mem->bytes);
	if (mem->rest)
		vgpu_user_uncharge(mem->channel->user, mem->rest);
	vgpu_channel_put(mem->channel);
	kfree(mem);
}

/**
 * vgpu_mem_put() - give up a reference
 * @mem: the memory
 */
void vgpu_mem_put(struct vgpu_mem *mem)
{
	kref_put(&mem->ref, vgpu_mem_free);
}

/* ---- The beginning ---- */

/**
 * vgpu_mem_interrupted() - does a thread that makes memory go on?
 * @mem: the memory
 *
 * Return: 0, or -EINTR (it is dying), -EAGAIN (the device is not running).
 */
int vgpu_mem_interrupted(struct vgpu_mem *mem)
{
	cond_resched();
	if (fatal_signal_pending(current))
		return -EINTR;
	return READ_ONCE(mem->channel->vgpu->state) == VGPU_RUNNING ? 0 : -EAGAIN;
}

static int vgpu_mem_fill_dma(struct vgpu_mem *mem)
{
	u64 left = mem->bytes, pieces = DIV_ROUND_UP(left, VGPU_DMA_PIECE_BYTES);
	struct scatterlist *sg;
	unsigned int i;

	if (pieces > VGPU_MAX_PIECES || sg_alloc_table(&mem->sgt, pieces, VGPU_LIST_GFP))
		return -ENOMEM;
	for_each_sgtable_sg(&mem->sgt, sg, i) {
		size_t bytes = min_t(u64, left, VGPU_DMA_PIECE_BYTES);
		int ret = vgpu_mem_interrupted(mem);

		if (ret)
			return ret;
		if (down_read_killable(&mem->channel->vgpu->binding))
			return -EINTR;
		if (!vgpu_mem_add_dma(mem, sg, bytes))
			ret = -ENOMEM;
		up_read(&mem->channel->vgpu->binding);
		if (ret)
			return ret;
		left -= bytes;
	}
	return 0;
}

/* Takes large pieces first. After a size has failed it asks for smaller ones only. */
static int vgpu_mem_fill(struct vgpu_mem *mem)
{
	int order = VGPU_PIECE_ORDER, i, ret;
	unsigned long left = mem->bytes >> PAGE_SHIFT;

	for (; left; left -= BIT(order)) {
		struct page *page = NULL;

		order = min_t(int, order, ilog2(left));
		while (!page && order >= 0) {
			ret = vgpu_mem_interrupted(mem);
			if (ret)
				return ret;
			page = alloc_pages(VGPU_GFP, order);
			order -= !page;
		}
		if (!page)
			return -ENOMEM;
		split_page(page, order);
		for (i = 0; i < BIT(order); i++)
			mem->pages[mem->page_count++] = page + i;
	}
	return 0;
}

/* Ordinary pages as the fewest pieces. */
static int vgpu_mem_make_pieces(struct vgpu_mem *mem)
{
	unsigned long i, run = 0, pieces = 1;

	for (i = 1; i < mem->page_count; i++) {
		run++;
		if (page_to_pfn(mem->pages[i]) != page_to_pfn(mem->pages[i - 1]) + 1)
			run = 0;
		pieces += !(run % BIT(VGPU_PIECE_ORDER));
	}
	if (pieces > VGPU_MAX_PIECES)
		return mem->owner ? -E2BIG : -ENOMEM;
	return sg_alloc_table_from_pages_segment(&mem->sgt, mem->pages, mem->page_count, 0,
						 mem->bytes, PAGE_SIZE << VGPU_PIECE_ORDER,
						 VGPU_LIST_GFP);
}

static int vgpu_mem_take_pages(struct vgpu_mem *mem, u64 address)
{
	int ret;

	mem->pages = kvcalloc(mem->bytes >> PAGE_SHIFT, sizeof(*mem->pages), VGPU_LIST_GFP);
	if (!mem->pages)
		return -ENOMEM;
	if (!mem->channel->vgpu->direct)
		return address ? -EOPNOTSUPP : vgpu_mem_fill_dma(mem);
	ret = address ? vgpu_mem_pin(mem, address) : vgpu_mem_fill(mem);
	return ret ? ret : vgpu_mem_make_pieces(mem);
}

/**
 * vgpu_mem_make() - memory for the host and user space
 * @channel: whose it is, and who pays
 * @address: of the current process's own memory, page aligned; 0: fresh pages, zeroed
 * @bytes: page aligned
 *
 * Return: the memory with one reference, for vgpu_mem_release(), or -ENOMEM (a limit, or there is
 * none left), -EINTR, -ERESTARTSYS, -EAGAIN (the device is not running). With @address also
 * -EOPNOTSUPP (the device can't reach it), -EFAULT (not the process's own), -E2BIG (too many
 * pieces).
 */
struct vgpu_mem *vgpu_mem_make(struct vgpu_channel *channel, u64 address, u64 bytes)
{
	u64 fresh = address ? 0 : bytes;
	struct vgpu_mem *mem;
	int ret = vgpu_user_charge(channel->user, bytes, fresh);

	if (ret)
		return ERR_PTR(ret);
	mem = kzalloc(sizeof(*mem), GFP_KERNEL_ACCOUNT);
	if (!mem) {
		vgpu_user_charged(fresh);
		vgpu_user_uncharge(channel->user, bytes);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&mem->ref);
	INIT_LIST_HEAD(&mem->link);
	kref_get(&channel->ref);
	mem->channel = channel;
	mem->bytes = bytes;
	/* Few threads of a user allocate at once; the freezer can wake the others. */
	ret = down_interruptible(&channel->user->workers) ? -ERESTARTSYS : 0;
	if (!ret) {
		ret = vgpu_mem_take_pages(mem, address);
		up(&channel->user->workers);
	}
	vgpu_user_charged(fresh);
	if (ret) {
		vgpu_mem_put(mem);
		return ERR_PTR(ret);
	}
	atomic64_add(bytes, &channel->vgpu->bytes);
	return mem;
}
