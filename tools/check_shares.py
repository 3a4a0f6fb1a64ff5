#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the table of shares that users read (docs/configuration.md) against the one that is compiled (vgpud/host/share_limits.h).

usage: check_shares.py [REPO_ROOT]   exit 0 clean, 1 with one line per row that is missing
"""
import pathlib
import re
import sys

HEADER, PAGE = "vgpud/host/share_limits.h", "docs/configuration.md"
LIMIT = re.compile(r"inline constexpr (PlaceLimit|RateLimit) (k\w+)\{(.*?)\};", re.DOTALL)
FIELD = re.compile(r"\.(\w+) = (\"[^\"]*\"|\d+(?: << \d+)?)")


def amount(text, unit):
    value, _, shift = text.partition(" << ")
    value = int(value) << int(shift or 0)
    if "bytes" in unit and value >= 1 << 20 and value % (1 << 20) == 0:
        return f"{value >> 20} MiB"
    return f"{value} bytes" if "bytes" in unit else str(value)


def row(kind, fields):
    """The cells of the page's row: what, one sharer's, all sharers', root's."""
    what = fields["what"].strip('"')
    if kind == "PlaceLimit":
        return [what, amount(fields["each"], what), amount(fields["all"], what), amount(fields.get("reserved", "0"), "")]

    def rate(who):
        per_second = amount(fields[f"{who}_per_second"], what)
        return "-" if per_second.startswith("0") else f"{per_second} per second, {amount(fields[f'{who}_at_once'], what)} at once"
    return [what, rate("each"), rate("all"), "no limit" if fields["all_per_second"] != "0" else "-"]


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    page = [re.sub(r"\s*\|\s*", "|", line.strip()) for line in (root / PAGE).read_text().splitlines() if line.startswith("|")]
    limits = LIMIT.findall((root / HEADER).read_text())
    missing = []
    for kind, name, body in limits:
        cells = "|" + "|".join(row(kind, dict(FIELD.findall(body)))) + "|"
        if not any(line.endswith(cells) for line in page):
            missing.append(f"{PAGE} has no row for {HEADER}:{name}: {cells}")
    print("\n".join(missing) or f"{len(limits)} limits are documented")
    return 1 if missing or not limits else 0


if __name__ == "__main__":
    sys.exit(main())
