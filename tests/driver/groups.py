"""Which tests share a guest."""
import dataclasses

import bad_hosts
import hostile_users
import life_cycle
import stuck_users
from bed import Setup
from lying_host import LyingHost


@dataclasses.dataclass(frozen=True)
class Group:
    name: str
    about: str
    setup: Setup
    tests: tuple
    quick: bool = False


def _data_path(bed):
    """The data path works."""
    bed.tap("basic")


_data_path.__name__ = "data_path"
_IOMMU = ("-device", "intel-iommu,intremap=on,caching-mode=on")

GROUPS = (
    # Freed memory is poisoned and kernel code is preempted: what is used after it was freed shows.
    Group("users", "what an ordinary user can do to the kernel and to other users",
          Setup(kernel_arguments="slub_debug=FZP preempt=full"), hostile_users.TESTS, quick=True),
    Group("stuck", "programs that wait for pages which never come", Setup(), stuck_users.TESTS, quick=True),
    Group("life", "the device goes away, the guest sleeps", Setup(), life_cycle.TESTS, quick=True),
    Group("dead", "a host that dies", Setup(), bad_hosts.DEAD, quick=True),
    Group("kexec", "another kernel starts in place of the guest's", Setup(memory_mib=768), life_cycle.KEXEC),
    Group("lies", "a host that lies", Setup(through=LyingHost), bad_hosts.LYING),
    Group("bounce", "all DMA through bounce buffers, as in confidential guests", Setup(kernel_arguments="swiotlb=force"),
          (_data_path, life_cycle.unbind, life_cycle.reset)),
    Group("iommu", "an emulated IOMMU between the device and memory",
          Setup(kernel_arguments="intel_iommu=on,strict", devices=_IOMMU), (_data_path, life_cycle.unbind, life_cycle.reset, hostile_users.pin_limit)),
    Group("line", "no MSI: a line interrupt", Setup(kernel_arguments="pci=nomsi"), (_data_path, hostile_users.kick_flood)),
)
