# SPDX-License-Identifier: Apache-2.0
"""The report of a check: report.md for people, report.json for programs, written again after each part."""
import json
import os
import shlex
import sys
import time


class Report:
    def __init__(self, out, facts, driver_text):
        self.out, self.facts, self.driver = out, facts, driver_text
        self.begun = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
        self.command = " ".join(map(shlex.quote, sys.argv))
        self.results, self.left_out = [], []
        self.ended_early, self.kernel_log, self.kernel_log_why = "", [], ""

    def write(self):
        for name, text in (("report.json", json.dumps(self.json(), indent=1)), ("report.md", self.markdown())):
            path = os.path.join(self.out, name)
            with open(path + ".new", "w", encoding="utf-8") as file:
                file.write(text + "\n")
            os.replace(path + ".new", path)

    def json(self):
        return {"begun": self.begun, "command": self.command, "driver": self.driver, "machine": self.facts, "ended_early": self.ended_early,
                "kernel_log": {"why_not": self.kernel_log_why, "lines": self.kernel_log},
                "left_out": [{"part": name, "why": why} for name, why in self.left_out],
                "parts": [result.json() for result in self.results]}

    def markdown(self):
        lines = [f"# GPU check, {self.begun}", "", f"Command: `{self.command}`", "", f"Driver: {self.driver}", ""]
        if self.ended_early:
            lines += [f"**The run ended early: {self.ended_early}**", ""]
        failed = [(result.title, what) for result in self.results for what in result.failed]
        if failed:
            lines += ["## Not as it has to be", "", *(f"- {title}: {what}" for title, what in failed), ""]
        lines += ["## Machine", "", *_table(("what", "value"), [(key, value if not isinstance(value, list) else " ".join(value))
                                                                 for key, value in self.facts.items()])]
        for result in self.results:
            lines += ["", f"## {result.title}", ""]
            if result.status != "measured":
                lines += [f"{result.status}: {result.why}", ""]
            for table in result.tables:
                if table.rows:
                    lines += [f"{table.title}:", "", *_table(table.columns, table.rows), ""]
            lines += [f"({result.seconds:.1f} s)"]
        missing = [f"{result.title}: {what}" for result in self.results for what in result.missing]
        missing += [f"{result.title}: {result.why}" for result in self.results if result.status == "not measured"]
        missing += [f"{name}: {why}" for name, why in self.left_out]
        lines += ["", "## Not measured", "", *(f"- {_flat(what)}" for what in missing or ["nothing is missing"])]
        lines += ["", "## The kernel's log", "", self.kernel_log_why or f"{len(self.kernel_log)} lines of NVIDIA's driver while this ran."]
        lines += [f"    {line}" for line in self.kernel_log[:50]]
        return "\n".join(lines)


def _flat(text):
    return " ".join(str(text).split())


def _cell(value):
    return "" if value is None else _flat(value).replace("|", "\\|")


def _table(columns, rows):
    return ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns),
            *("| " + " | ".join(_cell(value) for value in row) + " |" for row in rows)]
