// SPDX-License-Identifier: Apache-2.0
#include "gpu/cuda/driver/thread_names.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <string_view>

namespace {

using Open = std::FILE* (*)(const char* path, const char* mode);

Open RealOpen() {
  static const auto real = reinterpret_cast<Open>(::dlsym(RTLD_NEXT, "fopen64"));
  return real;
}

std::atomic<bool> answers = false;

bool NamesAThread(std::string_view path) {
  constexpr std::string_view kBegin = "/proc/self/task/", kEnd = "/comm";
  if (path.size() <= kBegin.size() + kEnd.size() || !path.starts_with(kBegin) || !path.ends_with(kEnd)) return false;
  path.remove_prefix(kBegin.size());
  path.remove_suffix(kEnd.size());
  return std::all_of(path.begin(), path.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::FILE* Nowhere() {
  cookie_io_functions_t calls{};
  calls.write = [](void*, const char*, size_t bytes) { return static_cast<ssize_t>(bytes); };
  return ::fopencookie(nullptr, "w", calls);
}

}  // namespace

namespace vgpud::driver {

void AnswerThreadNames() {
  (void)RealOpen();
  answers = true;
}

}  // namespace vgpud::driver

// By both names that the C library has for it, whichever of them <cstdio> means.
extern "C" {
std::FILE* OpenByName(const char* path, const char* mode) __asm__("fopen");
std::FILE* OpenByLargeName(const char* path, const char* mode) __asm__("fopen64");

std::FILE* OpenByName(const char* path, const char* mode) {
  std::FILE* const file = RealOpen()(path, mode);
  if (file != nullptr || !answers.load(std::memory_order_relaxed)) return file;
  const int error = errno;
  if (NamesAThread(path)) return Nowhere();
  errno = error;
  return nullptr;
}
std::FILE* OpenByLargeName(const char* path, const char* mode) { return OpenByName(path, mode); }
}
