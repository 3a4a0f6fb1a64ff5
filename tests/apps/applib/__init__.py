# SPDX-License-Identifier: Apache-2.0
"""What tests/apps/run.py is made of."""
