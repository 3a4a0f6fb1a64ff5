// SPDX-License-Identifier: Apache-2.0
// base/precompiled/product.h for tests.
#include <gtest/gtest.h>

#include <fstream>

#include "base/precompiled/product.h"
