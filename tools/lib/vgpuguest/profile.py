# SPDX-License-Identifier: Apache-2.0
"""What the soft GPU's profile mode has written to vgpud's log (docs/profile-mode.md)."""
import re

_LINE = re.compile(r"profile: form=(\S+) ticks=(\d+) executed=(\d+)")


def rows_of(log):
    """The forms of all contexts in the log, {form: (ticks, executed)}."""
    forms = {}
    with open(log, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = _LINE.search(line)
            if found:
                ticks, executed = forms.get(found[1], (0, 0))
                forms[found[1]] = (ticks + int(found[2]), executed + int(found[3]))
    return forms


def table(forms, most):
    """The `most` forms that took the most time, as lines of text."""
    all_ticks = sum(ticks for ticks, _ in forms.values()) or 1
    all_executed = sum(executed for _, executed in forms.values()) or 1
    yield f"{'form':<56} {'time %':>7} {'warp instructions':>18} {'%':>6} {'ticks each':>11}"
    for form, (ticks, executed) in sorted(forms.items(), key=lambda row: -row[1][0])[:most]:
        yield f"{form:<56} {100 * ticks / all_ticks:>7.2f} {executed:>18,} {100 * executed / all_executed:>6.2f} {ticks / executed:>11.1f}"
    yield f"{len(forms)} forms, {all_executed:,} warp instructions, {all_ticks:,} ticks of the processor's clock"
