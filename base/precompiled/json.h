// SPDX-License-Identifier: Apache-2.0
// base/precompiled/product.h for programs that speak JSON nearly everywhere.
#include <nlohmann/json.hpp>

#include "base/precompiled/product.h"
