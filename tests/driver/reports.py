# SPDX-License-Identifier: Apache-2.0
"""What a kernel writes to its console when something is wrong with it."""
import re

_REPORT = re.compile(
    r"BUG:|WARNING:|Oops|general protection|Kernel panic|blocked for more than|INFO: rcu|self-detected stall|soft lockup|"
    r"possible (?:recursive|circular) locking|inconsistent lock state|possible irq lock inversion|Invalid wait context|"
    r"suspicious RCU|sleeping function called|held lock freed|still held|unreferenced object|DMA-API:|UBSAN:|ODEBUG|"
    r"refcount_t:|list_(?:add|del) corruption|scheduling while atomic|Bad page|page_owner|workqueue lockup|"
    r"invoked oom-killer|Out of memory: Killed|kobject_add_internal failed|nobody cared")
# What Debian's kernels say of themselves on these machines, driver or not; data races of which the driver is no part.
_HARMLESS = re.compile(r"DMA-API: preallocated|DMA-API: debugging enabled|Spectre|RETBleed|MMIO Stale Data|"
                       r"DMA-API: (?:memory|dma_debug_entry)|loading out-of-tree module|KCSAN: \S+ in (?!.*vgpu_)|KCSAN: selftest")


class Console:
    """The console of a guest, read from where the last call stopped."""

    def __init__(self, path):
        self._path = path
        self._at = 0

    def new_text(self):
        with open(self._path, "rb") as file:
            file.seek(self._at)
            data = file.read()
        self._at += len(data)
        return data.decode(errors="replace")

    def reports(self, allowed=None, context=25):
        """The reports since the last call, each with the lines that follow it. `allowed`: a pattern that is no report."""
        lines = [re.sub(r"^\[ *[\d.]+\](?:\[ *[TC]\d+\])? ", "", line.rstrip()) for line in self.new_text().splitlines()]
        found, shown_to = [], 0
        for number, line in enumerate(lines):
            if not _REPORT.search(line) or _HARMLESS.search(line) or (allowed and re.search(allowed, line)):
                continue
            if number >= shown_to:
                found.append("\n".join(lines[number:number + context]))
                shown_to = number + context
        return found
