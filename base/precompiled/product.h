// SPDX-License-Identifier: Apache-2.0
// Headers that most source files read, parsed once for each big target (cpp_pch in meson.build). No file may rely on
// it: builds with -Db_pch=false have none. GCC refuses "pragma once" in a header that it compiles by itself.
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tl/expected.hpp>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
