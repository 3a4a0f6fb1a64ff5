# SPDX-License-Identifier: Apache-2.0
"""What tools/ and the tests share: a private vgpud, QEMU guests on its VFs, programs in them. Standard library only."""
