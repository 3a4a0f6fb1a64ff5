# SPDX-License-Identifier: Apache-2.0
"""What the demo's figures say: whose share is off, whether that can be vgpud's doing, and when to measure again."""
import dataclasses

from . import interference

METERED_TOLERANCE = 0.02
COUNTED_TOLERANCE = 0.05
# Times that a phase is measured while shares are off and the host is busy with other things.
ATTEMPTS = 3
EXIT_HOST_BUSY = 75


@dataclasses.dataclass
class Phase:
    title: str
    seconds: float
    vfs: dict  # {VF name: its row: entitled, metered, counted (None where it does not count), ... }
    host: interference.Interference
    problems: list = dataclasses.field(default_factory=list)  # wrong results, events that must not be
    more_is_fine: bool = False  # a VF that had more than its share proves nothing: its neighbour does not count

    def off_shares(self):
        """A sentence for each share that is off."""
        found = []
        for name, row in self.vfs.items():
            for kind, limit in (("metered", METERED_TOLERANCE), ("counted", COUNTED_TOLERANCE)):
                if row[kind] is not None and self._is_off(row, kind, limit):
                    found.append(f"{self.title}: {name} is entitled to {100 * row['entitled']:.1f}%, {kind} {100 * row[kind]:.1f}% "
                                 f"(limit {100 * limit:.0f} points)")
        return found

    def _is_off(self, row, kind, limit):
        off = row[kind] - row["entitled"]
        if not self.more_is_fine:
            return abs(off) > limit
        # What the one that counts has more, the other has less.
        return row["counted"] is not None and off < -limit

    def proves_nothing(self):
        """Shares are off, and the host's other work may be why."""
        return bool(self.off_shares()) and self.host.busy()


def measured(measure, say):
    """The Phase that measure(attempt) returns; where it proves nothing, of the next attempt, ATTEMPTS times at most."""
    for attempt in range(1, ATTEMPTS + 1):
        phase = measure(attempt)
        if phase.problems or not phase.proves_nothing() or attempt == ATTEMPTS:
            return phase
        say(f"the host was busy meanwhile: {phase.host}")
        say(f"measuring again (attempt {attempt + 1} of {ATTEMPTS})")


def exit_status(phases):
    """0 all is right, 1 vgpud did something wrong, EXIT_HOST_BUSY shares are off and the host was too busy to say why."""
    if any(phase.problems or (phase.off_shares() and not phase.host.busy()) for phase in phases):
        return 1
    return EXIT_HOST_BUSY if any(phase.off_shares() for phase in phases) else 0


def sentences(phases, seconds):
    """What is wrong, or PASS."""
    status = exit_status(phases)
    if status == 0:
        return [f"PASS: every share within {100 * METERED_TOLERANCE:.0f} points as metered, {100 * COUNTED_TOLERANCE:.0f} as counted; "
                f"all results correct ({seconds:.0f} s)"]
    said = [f"{'FAIL' if status == 1 else 'OFF'}: {text}" for phase in phases for text in (*phase.problems, *phase.off_shares())]
    if status == EXIT_HOST_BUSY:
        said.append(f"This host is too busy to tell: all results were correct, but {ATTEMPTS} times over shares were off while the soft "
                    f"GPU, which runs on the CPU, lacked CPU cores ({interference.worst([phase.host for phase in phases if phase.off_shares()])}). This says "
                    "nothing about vgpud. End other work on this machine and run the demo again.")
    return said
