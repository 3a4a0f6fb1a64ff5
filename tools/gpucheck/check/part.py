# SPDX-License-Identifier: Apache-2.0
"""What the parts of a check have in common: what they are told and what they give."""
import dataclasses
import time

# Kinds of load (tools/gpucheck/load.cc).
KINDS = ("honest", "endless", "storm", "huge", "fat", "graphs", "clusters")
MIB = 1 << 20


class Table:
    def __init__(self, title, *columns):
        self.title, self.columns, self.rows = title, columns, []

    def row(self, *cells):
        self.rows.append(cells)

    def json(self):
        return {"title": self.title, "rows": [dict(zip(self.columns, cells)) for cells in self.rows]}


@dataclasses.dataclass
class Told:
    """Of the whole run."""
    native: object
    out: str  # directory of the report
    scale: float = 1.0  # of measured times
    jobs: int = 4
    vfs: tuple = (2, 4, 8)
    kinds: tuple = KINDS
    rounds: int = 0  # steps of a kernel that takes 200 us on this GPU; the part "native" finds them
    facts: dict = dataclasses.field(default_factory=dict)  # that parts leave for later ones
    end: float = 0.0  # of the run, on the clock below

    def seconds(self, wanted):
        return wanted * self.scale

    def left(self):
        return self.end - time.monotonic()


class Result:
    """Of one part."""

    def __init__(self, name, title):
        self.name, self.title = name, title
        self.status, self.why, self.seconds = "measured", "", 0.0
        self.tables, self.missing, self.failed = [], [], []

    def table(self, title, *columns):
        self.tables.append(Table(title, *columns))
        return self.tables[-1]

    def lacks(self, what, why):
        """Something of the part was not measured."""
        self.missing.append(f"{what}: {str(why).strip()}")

    def fails(self, what):
        """Something is not as it has to be."""
        self.failed.append(what)

    def json(self):
        return {"name": self.name, "title": self.title, "status": self.status, "why": self.why, "seconds": round(self.seconds, 1),
                "tables": [table.json() for table in self.tables], "not_measured": self.missing, "failed": self.failed}


def ratio(part, whole):
    return round(part / whole, 4) if whole else None
