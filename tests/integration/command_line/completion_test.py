#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Completion of vgpuctl in bash, zsh and fish, each on a terminal of its own, and the manual pages.

Words are typed, then Tab and Return: the program that the shell then runs says with which words it was started. bash is always there; the last
line says which shells were not.

usage: completion_test.py
"""
import os
import pathlib
import pty
import select
import shutil
import subprocess

from vgpuguest import daemon, process
from vgpuguest.paths import VGPUCTL

# What is typed after vgpuctl, and the words that it becomes. Only the daemon knows only-one and soft0.
LINES = (("des", "destroy"), ("show only-o", "show only-one"), ("show only-one sec", "show only-one second"), ("create x --prof", "create x --profile"),
         ("config dif", "config diff"), ("list -o ya", "list -o yaml"), ("list --output=cs", "list --output=csv"), ("stats --gpu so", "stats --gpu soft0"),
         ("help calen", "help calendar"), ("set only-one --wake-first y", "set only-one --wake-first yes"), ("apply --file sta", "apply --file state.toml"),
         ("show nosuch", "show nosuch"))
# How each shell starts without anybody's files, and learns to complete.
SHELLS = {"bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(vgpuctl completion bash)"'),
          "zsh": (["zsh", "-f", "-i"], 'autoload -U compinit; compinit -u -D; eval "$(vgpuctl completion zsh)"'),
          "fish": (["fish", "--no-config", "-i"], "vgpuctl completion fish | source")}
PROGRAM = """#!/bin/sh
case $1 in complete | completion) exec {} "$@" ;; esac
printf 'RAN%s' ''
printf '<%s>' "$@"
printf 'E%s\\n' ND
"""


class Shell:
    def __init__(self, name, environment, folder):
        words, setup = SHELLS[name]
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, environment)
        self.run(setup + "; vgpuctl is there\n", "RAN<is><there>END")

    def run(self, typed, wanted):
        """Types it, and waits until the program has said with which words it was started."""
        os.write(self.terminal, typed.encode())
        seen = b""
        while b"END" not in seen.rpartition(b"RAN<")[2] or b"RAN<" not in seen:
            readable, _, _ = select.select([self.terminal], [], [], 60)
            assert readable, f"after {typed!r} the program does not run: {seen!r}"
            seen += os.read(self.terminal, 65536)
        said = "RAN<" + seen.rpartition(b"RAN<")[2].partition(b"END")[0].decode() + "END"
        assert said == wanted, f"{typed!r} became {said}, not {wanted}"

    def end(self):
        os.close(self.terminal)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def check_shell(name, environment, folder):
    shell = Shell(name, environment, folder)
    try:
        for typed, completed in LINES:
            shell.run(f"vgpuctl {typed}\t\n", "RAN" + "".join(f"<{word}>" for word in completed.split()) + "END")
    finally:
        shell.end()


def check_manual(folder):
    """A page for each command, each option of its help in it."""
    pages = folder / "man"
    pages.mkdir()
    subprocess.run([VGPUCTL, "manual", pages], check=True, timeout=60)
    commands = [line.split("\t")[0] for line in subprocess.run([VGPUCTL, "complete", ""], check=True, capture_output=True, text=True,
                                                               timeout=60).stdout.splitlines()]
    assert len(commands) > 30, commands
    assert {page.name for page in pages.iterdir()} == {"vgpuctl.1", *(f"vgpuctl-{command}.1" for command in commands)}
    for command in commands:
        page = (pages / f"vgpuctl-{command}.1").read_text(encoding="utf-8").replace("\\-", "-")
        offered = subprocess.run([VGPUCTL, "complete", command, "--"], check=True, capture_output=True, text=True, timeout=60).stdout
        for option in {line.split("\t")[0] for line in offered.splitlines()} - {"--runtime-dir", "--output", "--timeout", "--version"}:
            assert f"\\fB{option}\\fR" in page, f"{option} is not on the page of {command}"
    if shutil.which("mandoc"):
        lint = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *sorted(pages.iterdir())], capture_output=True, text=True, timeout=60,
                              check=False)
        assert lint.returncode == 0, lint.stdout


def main():
    missing = [name for name in SHELLS if shutil.which(name) is None]
    assert "bash" not in missing, "there is no bash"
    with process.scratch_dir("vgpu-") as scratch, daemon.private_daemon([("only-one", {"vram": "16MiB"}), ("second", {"vram": "16MiB"})]) as vgpud:
        folder = pathlib.Path(scratch)
        (folder / "state.toml").write_text("", encoding="utf-8")
        program = folder / "vgpuctl"
        program.write_text(PROGRAM.format(VGPUCTL), encoding="utf-8")
        program.chmod(0o755)
        environment = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": scratch, "TERM": "dumb", "LC_ALL": "C.UTF-8", "VGPUD_RUNTIME_DIR": vgpud.runtime_dir}
        for name in SHELLS:
            if name not in missing:
                check_shell(name, environment, folder)
                print(f"{name}: {len(LINES)} lines")
        check_manual(folder)
    print(f"shells that are not here: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main()
