#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand wrong files and calls, made at random, at a real libvirtd: each is refused in words, and the domain is what it was, to the
byte.

  libvirt_wrong_test.py [COUNT [SEED]]"""
import os
import pathlib
import random
import string
import sys

import harness
import libvirt_bed as bed
import libvirt_host
from libvirt_bed import ctl, hostdev, ok
from libvirt_host import virsh

GOOD = "<source profile='1/8' weight='300'/>"


def junk(chance, letters=string.ascii_uppercase + "_ ./$\u00e4;*", most=40):
    return "".join(chance.choice(letters) for _ in range(chance.randint(1, most)))


def inside_hostdev(chance):
    """What <hostdev> can't have in it."""
    return chance.choice([
        lambda: "",
        lambda: "<source/>",
        lambda: f"<source vf='{junk(chance)}'/>",
        lambda: f"<source vf='{'a' * chance.randint(32, 400)}'/>",
        lambda: f"<source vf='a' {junk(chance, string.ascii_lowercase, 12)}x='1'/>",
        lambda: f"<source profile='{junk(chance, '$;()')}'/>",
        lambda: f"<source vf='a'/><alias name='{junk(chance)}'/>",
        lambda: f"<source vf='a'/><address type='{junk(chance, string.ascii_lowercase, 5)}x' slot='0x10'/>",
        lambda: f"<source vf='a'/><address type='pci' bus='{chance.randint(1, 255)}' slot='0x10'/>",
        lambda: f"<source vf='a'/><address type='pci' slot='{chance.choice([0, 31, 32, 255, 2**32 + 16, -1])}'/>",
        lambda: "<source vf='a'/><source vf='b'/>",
        lambda: f"<source vf='a'/><{junk(chance, string.ascii_lowercase, 8)}x/>",
    ])()


def a_file(chance):
    text = bed.domain(hostdev(GOOD))
    return chance.choice([
        lambda: bed.domain(hostdev(inside_hostdev(chance))),
        lambda: bed.domain(hostdev(inside_hostdev(chance)) + hostdev(GOOD)),
        lambda: bed.domain(hostdev(GOOD) + hostdev(inside_hostdev(chance))),
        lambda: bed.domain(hostdev("<source vf='a'/>") * chance.randint(2, 5)),
        lambda: bed.domain(hostdev(GOOD) * chance.randint(17, 30)),
        lambda: bed.domain(hostdev(GOOD), machine=chance.choice(["pc", "pc-i440fx-7.2", "isapc", "microvm"])),
        lambda: text[:chance.randint(0, text.rindex("</domain>") + 8)],
        lambda: text.replace("</devices>", f"</{junk(chance, string.ascii_lowercase, 9)}x>"),
        lambda: "<!DOCTYPE d [<!ENTITY a 'x'>]>" + text,
        lambda: text.replace("<devices>", f"<devices>&{junk(chance, string.ascii_lowercase, 9)}x;"),
        lambda: text.replace("<cpu ", "<memoryBacking>" + chance.choice(["<access mode='private'/>", "<source type='anonymous'/>"])
                             + "</memoryBacking><cpu "),
        lambda: text.replace("mode='subsystem'", f"mode='{junk(chance, string.ascii_lowercase)}x'"),
        lambda: text.replace("managed='yes'", f"managed='{junk(chance)}'"),
        lambda: text.replace("<memory unit='MiB'>512", f"<memory unit='MiB'>{junk(chance)}"),
        lambda: text.replace("<vcpu>2", f"<vcpu>{chance.choice([0, 'x', 2**40])}"),  # at -1, libvirtd 9.0 aborts
        lambda: f"<{junk(chance, string.ascii_lowercase, 9)}x/>",
    ])()


def a_call(chance):
    name = bed.NAME
    return chance.choice([
        lambda: ["attach", name],
        lambda: ["attach", name, "--vf", junk(chance)],
        lambda: ["attach", name, "--vf", f"{name}-vgpud0"],
        lambda: ["attach", name, "--vf", "a", "--live"],
        lambda: ["attach", name, "--vf", "a", "--weight", str(chance.randint(1, 9999))],
        lambda: ["attach", name, "--vf", "a", "--slice", junk(chance, string.ascii_letters + " ")],
        lambda: ["attach", name, "--profile", junk(chance, "$;' \"")],
        lambda: ["attach", name, "--profile", "1/8", "--unmanaged"],
        lambda: ["attach", junk(chance, string.ascii_lowercase), "--profile", "1/8"],
        lambda: ["detach", name, "--vf", junk(chance, string.ascii_lowercase) + "-none"],
        lambda: ["detach", name, "--vf", "vgpud0", "--live"],
        lambda: ["detach", name],
        lambda: ["dumpxml", junk(chance, string.ascii_lowercase)],
        lambda: ["lint", junk(chance, string.ascii_lowercase)],
        lambda: ["edit", junk(chance, string.ascii_lowercase)],
        lambda: ["define", f"/nonexistent/{junk(chance, string.ascii_lowercase)}.xml"],
        lambda: [chance.choice(["attach", "detach", "lint", "dumpxml"]), name, f"--{junk(chance, string.ascii_lowercase)}x"],
        lambda: ["attach", name, "--vf", "a", "--connect", f"qemu+unix:///system?socket=/{junk(chance, string.ascii_lowercase)}"],
    ])()


def one(number, chance, path):
    """(what was tried, vgpuctl's answer)"""
    if number % 2:
        words = a_call(chance)
        return words, ctl(*words)
    path.write_text(a_file(chance))
    return path.read_text(), ctl("define", str(path))


def wrong_ones(count, seed):
    ok(bed.define(bed.domain(hostdev(GOOD))), "a sound domain")
    before, path = bed.config(), pathlib.Path(bed.FOLDER, "wrong.xml")
    for number in range(count):
        what, done = one(number, random.Random(f"{seed}/{number}"), path)
        said = done.stderr.strip()
        assert done.returncode in (1, 2, 3, 4, 5), f"{number}: exit code {done.returncode}: {what}\n{said}"
        assert len(said) > 20 and done.stdout == "", f"{number}: {what}\n{done.stdout}{said}"
        now = virsh("dumpxml", "--inactive", bed.NAME).stdout
        assert now == before, f"{number}: {what} changed the domain\n{now}"
        names = virsh("list", "--all", "--name").stdout.split()
        assert names == [bed.NAME], f"{number}: {what}: {names}"
    harness.check(bed.vfs() == {}, f"{count} wrong files and calls were refused, the domain is what it was, to the byte")
    ok(virsh("undefine", bed.NAME), "undefine")


def test():
    libvirt_host.enter()
    vgpud = bed.Vgpud()
    try:
        vgpud.start()
        os.makedirs(bed.FOLDER)
        with libvirt_host.libvirtd(lambda: ok(ctl("hook", "--install"), "install the hook")):
            wrong_ones(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, sys.argv[2] if len(sys.argv) > 2 else "1")
    finally:
        vgpud.stop()


harness.main(test)
