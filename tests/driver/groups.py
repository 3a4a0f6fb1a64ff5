# SPDX-License-Identifier: Apache-2.0
"""Which tests share a guest."""
import dataclasses

import bad_hosts
import hostile_users
import life_cycle
import races
import stuck_users
from bed import Setup
from lying_host import LyingHost


@dataclasses.dataclass(frozen=True)
class Group:
    name: str
    about: str
    setup: Setup
    tests: tuple


def _data_path(bed):
    """The data path works."""
    bed.tap("basic")


_data_path.__name__ = "data_path"
_IOMMU = ("-device", "intel-iommu,intremap=on,caching-mode=on")

# Seconds each, in one guest; the last one ends its host.
QUICK = Group(
    "quick", "what takes seconds, in one guest", Setup(kernel_arguments="slub_debug=FZP"),
    (hostile_users.basic, hostile_users.abi, hostile_users.pages, hostile_users.polls, hostile_users.orphan, hostile_users.shares, hostile_users.pin_limit, *stuck_users.TESTS,
     life_cycle.executor_dies, life_cycle.unbind, life_cycle.reset, life_cycle.remove_and_rescan, life_cycle.unplug,
     *bad_hosts.DEAD))

GROUPS = (
    # Freed memory is poisoned and kernel code is preempted: what is used after it was freed shows.
    Group("users", "what an ordinary user can do to the kernel and to other users",
          Setup(kernel_arguments="slub_debug=FZP preempt=full"), hostile_users.TESTS),
    Group("races", "root takes the device away from threads that are anywhere in the driver",
          Setup(kernel_arguments="slub_debug=FZPU preempt=full"), races.TESTS),
    Group("stuck", "programs that wait for pages which never come", Setup(), stuck_users.TESTS),
    Group("life", "the device goes away, the guest sleeps", Setup(), life_cycle.TESTS),
    # With ACPI's hot-plug QEMU's root port does not say that its link is up again after a reset of the bus.
    Group("errors", "the root port reports errors of the bus",
          Setup(devices=("-global", "ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off")), life_cycle.ERRORS),
    # With it QEMU's root port does not say so, and the kernel gives up.
    Group("unrecovered", "errors of the bus that are not recovered from", Setup(), life_cycle.FAILED),
    Group("dead", "a host that dies", Setup(), bad_hosts.DEAD),
    Group("kexec", "another kernel starts in place of the guest's", Setup(memory_mib=768), life_cycle.KEXEC),
    Group("kexec_lies", "another kernel starts while the device uses memory", Setup(memory_mib=768, through=LyingHost), bad_hosts.KEXEC),
    # What is freed is zeroed: keeps_control_page looks at it.
    Group("lies", "a host that lies", Setup(kernel_arguments="init_on_free=1", through=LyingHost), bad_hosts.LYING),
    # What is freed is zeroed: memory that a program has mapped then is not its own any more.
    Group("bounce", "all DMA through bounce buffers, as in confidential guests", Setup(kernel_arguments="swiotlb=force init_on_free=1"),
          (_data_path, life_cycle.unbind, life_cycle.reset, life_cycle.reset_then_unbind, life_cycle.unbind_without_memory)),
    Group("iommu", "an emulated IOMMU between the device and memory",
          Setup(kernel_arguments="intel_iommu=on,strict", devices=_IOMMU), (_data_path, hostile_users.pages, life_cycle.unbind, life_cycle.reset, life_cycle.reset_then_unbind, hostile_users.pin_limit)),
    Group("iommu_late", "an IOMMU that takes its time", Setup(kernel_arguments="intel_iommu=on,strict", devices=_IOMMU, through=LyingHost),
          bad_hosts.LATE),
    Group("busy", "a VF that may run few commands", Setup(vf_arguments=("--event-budget", "commands=300")), (hostile_users.few_commands,)),
    Group("line", "no MSI: a line interrupt", Setup(kernel_arguments="pci=nomsi"), (_data_path, hostile_users.kick_flood)),
)
