#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden tests: make.py DIRECTORY GROUP..., one file per forms/forms_GROUP.py."""
import importlib
import os
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "forms")]
import form as registry  # noqa: E402


def main(directory, names):
    for name in names:
        registry.FORMS.clear()
        importlib.import_module("forms_" + name)
        with open(os.path.join(directory, name + ".golden"), "w") as file:
            file.write("# Written by tests/golden/make.py; tests/golden/README.md says what it means.\n")
            for one in registry.FORMS:
                file.write("\n" + one.text())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
