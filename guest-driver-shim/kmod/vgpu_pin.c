// SPDX-License-Identifier: GPL-2.0-only
/* Memory that a program has already as a buffer: its pages stay where they are, pinned. */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched/mm.h>

#include "vgpu.h"

/*
 * Memory and nothing else: a page of a file on a disk is written back behind the device's back, and
 * may be locked for as long as the server of its file system likes.
 */
static int vgpu_mem_check_page(struct page *page)
{
	struct folio *folio = page_folio(page);

	if (!folio_test_anon(folio) && !folio_test_swapbacked(folio) && !folio_test_hugetlb(folio))
		return -EFAULT;
	if (folio_test_dirty(folio))
		return 0;
	if (folio_lock_killable(folio))
		return -EINTR;
	folio_mark_dirty(folio);
	folio_unlock(folio);
	return 0;
}

/* A pinned part keeps the whole huge page from others: the buffer is charged for all of it. */
static int vgpu_mem_charge_rest(struct vgpu_mem *mem)
{
	struct folio *folio, *last = NULL;
	unsigned long i;
	u64 kept = 0;
	int ret;

	for (i = 0; i < mem->page_count; i++, last = folio) {
		folio = page_folio(mem->pages[i]);
		if (folio != last)
			kept += folio_size(folio);
	}
	if (kept <= mem->bytes)
		return 0;
	ret = vgpu_user_charge(mem->channel->user, kept - mem->bytes, 0);
	if (!ret)
		mem->rest = kept - mem->bytes;
	return ret;
}

/**
 * vgpu_mem_pin() - make memory of pages that the current process has
 * @mem: has no pages
 * @address: of the first one
 *
 * Return: 0, or as vgpu_mem_make(); vgpu_mem_unpin() follows in either case.
 */
int vgpu_mem_pin(struct vgpu_mem *mem, u64 address)
{
	unsigned long pages = mem->bytes >> PAGE_SHIFT;
	int got, i, ret;

	mem->owner = current->mm;
	mmgrab(mem->owner);
	while (mem->page_count < pages) {
		ret = vgpu_mem_interrupted(mem);
		if (ret)
			return ret;
		got = pin_user_pages_fast(address + (mem->page_count << PAGE_SHIFT),
					  min(pages - mem->page_count, BIT(VGPU_PIECE_ORDER)),
					  FOLL_WRITE | FOLL_LONGTERM,
					  mem->pages + mem->page_count);
		if (got <= 0)
			return got ? got : -EFAULT;
		atomic64_add(got, &mem->owner->pinned_vm);
		mem->page_count += got;
		for (i = 1; i <= got && !ret; i++)
			ret = vgpu_mem_check_page(mem->pages[mem->page_count - i]);
		if (ret)
			return ret;
	}
	return vgpu_mem_charge_rest(mem);
}

/**
 * vgpu_mem_unpin() - give pages of a process back
 * @mem: the memory
 *
 * A page that is locked is not waited for: a thread of the lowest priority may have it, and this is
 * for root, or for the channels of all users. It has been dirty when it was pinned.
 */
void vgpu_mem_unpin(struct vgpu_mem *mem)
{
	/* Without pieces the device has never had them. */
	unsigned long i, used = mem->sgt.sgl ? mem->page_count : 0;

	for (i = 0; i < used; i++) {
		struct folio *folio = page_folio(mem->pages[i]);

		if (folio_test_dirty(folio) || !folio_trylock(folio))
			continue;
		folio_mark_dirty(folio);
		folio_unlock(folio);
	}
	unpin_user_pages(mem->pages, mem->page_count);
	atomic64_sub(mem->page_count, &mem->owner->pinned_vm);
	mmdrop(mem->owner);
}
