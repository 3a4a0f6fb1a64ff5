#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the demo makes of its figures: PASS, FAIL, or that the host was too busy to tell; and when it measures again."""
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../../../tools/lib"))
from vgpuguest import interference, verdict  # noqa: E402

CALM = interference.Interference(0.3, 0.01, 0.0)  # our own threads wait for each other on a small host
BUSY = interference.Interference(0.3, 1.5, 0.0)


def phase(a, b, host=CALM, problems=(), more_is_fine=False):
    """A phase in which VFs of equal weights got (metered, counted)."""
    rows = {name: {"entitled": 0.5, "metered": metered, "counted": counted} for name, (metered, counted) in (("a", a), ("b", b))}
    return verdict.Phase("a phase", 1.0, rows, host, list(problems), more_is_fine)


RIGHT = ((0.51, 0.46), (0.49, 0.54))
OFF = ((0.51, 0.44), (0.49, 0.56))


class Verdict(unittest.TestCase):
    def test_shares_within_the_limits_pass_also_on_a_busy_host(self):
        for host in (CALM, BUSY):
            self.assertEqual(verdict.exit_status([phase(*RIGHT, host)]), 0)

    def test_shares_that_are_off_are_our_fault_unless_the_host_is_busy(self):
        self.assertEqual(len(phase(*OFF).off_shares()), 2)
        self.assertEqual(verdict.exit_status([phase(*RIGHT), phase(*OFF)]), 1)
        self.assertEqual(verdict.exit_status([phase(*RIGHT), phase(*OFF, BUSY)]), verdict.EXIT_HOST_BUSY)
        self.assertEqual(verdict.exit_status([phase(*OFF), phase(*OFF, BUSY)]), 1)

    def test_metered_shares_are_judged_more_strictly(self):
        self.assertEqual(verdict.exit_status([phase((0.53, 0.5), (0.47, 0.5))]), 1)

    def test_a_wrong_result_fails_on_any_host(self):
        self.assertEqual(verdict.exit_status([phase(*RIGHT, BUSY, ["a result is wrong"])]), 1)
        self.assertIn("FAIL: a result is wrong", verdict.sentences([phase(*RIGHT, BUSY, ["a result is wrong"])], 1.0))

    def test_more_than_ones_share_beside_an_endless_kernel_is_fine_and_less_is_not(self):
        self.assertEqual(verdict.exit_status([phase((0.3, None), (0.7, 0.7), more_is_fine=True)]), 0)
        self.assertEqual(verdict.exit_status([phase((0.7, None), (0.3, 0.3), more_is_fine=True)]), 1)

    def test_a_host_is_busy_when_others_compute_and_we_wait_or_when_its_cores_are_taken_or_change(self):
        for host, busy in ((CALM, False), (BUSY, True), (interference.Interference(0.01, 1.5, 0.0), False),
                           (interference.Interference(0.0, 0.0, 0.2), True), (interference.Interference(0.0, 0.0, 0.0, 0.3), True)):
            self.assertEqual(host.busy(), busy, host)

    def test_only_what_proves_nothing_is_measured_again_and_not_for_ever(self):
        for measured, attempts in (([RIGHT, RIGHT], 1), ([OFF, RIGHT], 2), ([OFF, OFF, RIGHT], 3), ([OFF, OFF, OFF, RIGHT], 3)):
            said = []
            seen = []

            def measure(attempt):
                seen.append(attempt)
                return phase(*measured[attempt - 1], BUSY)
            result = verdict.measured(measure, said.append)
            self.assertEqual(seen, list(range(1, attempts + 1)))
            self.assertEqual(bool(result.off_shares()), measured[attempts - 1] is OFF)
            self.assertEqual(sum("measuring again" in line for line in said), attempts - 1)
        self.assertTrue(verdict.measured(lambda attempt: phase(*OFF) if attempt == 1 else None, said.append).off_shares())

    def test_a_busy_host_is_named_with_figures_and_a_next_step(self):
        text = "\n".join(verdict.sentences([phase(*OFF, BUSY)], 1.0))
        for words in ("too busy", "1.5 cores", "run the demo again", "a is entitled to 50.0%, counted 44.0%"):
            self.assertIn(words, text)


class Windows(unittest.TestCase):
    def test_what_our_own_children_compute_is_not_other_programs(self):
        window = interference.Window()
        child = os.posix_spawn(sys.executable, [sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass"], os.environ)
        os.waitpid(child, 0)
        processes = interference._processes()
        self.assertGreaterEqual(sum(processes[pid][1] for pid in interference._ours(processes)) - window._before[1], 45)


unittest.main()
