# SPDX-License-Identifier: Apache-2.0
"""What an ordinary user of a guest can do to its kernel and to other users. The device works afterwards."""
import harness


def basic(bed):
    """The data path works."""
    bed.tap("basic")


def abi(bed):
    """What the driver refuses; forked children; 32-bit programs."""
    bed.tap("abi", timeout=200)


def pages(bed):
    """Buffers are ordinary memory, and memory of the program becomes a buffer."""
    bed.tap("pages")


def polls(bed):
    """poll() has no side effects."""
    bed.tap("polls")


def orphan(bed):
    """A program is killed while another process has its file: what it had is given back at once."""
    bed.tap("orphan", "3")


def buffer_race(bed):
    """A buffer that is freed while it is allocated."""
    bed.tap("buffer_race", "20")


def pin_limit(bed):
    """Memory that is pinned beyond the limit, and who is killed for it."""
    # The kernel makes no huge pages by itself in a guest that is as small as this one.
    bed.shell("for file in enabled defrag; do echo madvise > /sys/kernel/mm/transparent_hugepage/$file; done")
    bed.tap("pin_limit", timeout=200)
    bed.shell("echo never > /sys/kernel/mm/transparent_hugepage/enabled")


def shares(bed):
    """One user takes all channels, then all memory; another one still gets some."""
    bed.tap("shares", uid=0, timeout=200)


def kick_flood(bed):
    """A doorbell in a loop."""
    bed.tap("kick_flood")


def neighbours(bed):
    """Threads of the lowest priority that allocate, beside another user."""
    bed.tap("neighbours", uid=0, timeout=200)


def wake_storm(bed):
    """A hundred thousand epoll entries."""
    bed.tap("wake_storm", timeout=200)


def few_commands(bed):
    """More buffers than the host has time for: it refuses some, the driver asks again, and the program gets all of them."""
    bed.tap("abi", timeout=300)
    commands = bed.vgpud.show("vf0")["events"]["commands"]
    harness.check(commands["throttled"] > 0, f"some came too early: {commands}")


def works_on(bed):
    """After all of this the data path works."""
    bed.tap("basic")


TESTS = (basic, abi, pages, polls, orphan, shares, kick_flood, neighbours, wake_storm, buffer_race, pin_limit, works_on)
