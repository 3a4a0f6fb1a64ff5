// SPDX-License-Identifier: Apache-2.0
#include "base/mapping.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace vgpud {
namespace {

// EINTR: where somebody watches this call (base/jail/jail.h), a signal may interrupt the question.
void Unmap(void* data, size_t bytes) {
  while (::munmap(data, bytes) != 0 && errno == EINTR) {
  }
}

}  // namespace

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) Unmap(data_, bytes_);
}

void Mapping::UnmapFront(size_t bytes) {
  CHECK(bytes <= bytes_);
  if (bytes == 0) return;
  Unmap(data_, bytes);
  bytes_ -= bytes;
  data_ = bytes_ == 0 ? nullptr : data() + bytes;
}

Result<Mapping> Mapping::Shared(int fd, uint64_t offset, size_t bytes, bool writable) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED, fd, static_cast<off_t>(offset));
  if (p == MAP_FAILED) return FailErrno(fmt::format("mmap of {} bytes of fd {} at {}", bytes, fd, offset));
  return Mapping{p, bytes};
}

Result<Mapping> Mapping::Anonymous(size_t bytes) {
  void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return FailErrno(fmt::format("mmap of {} anonymous bytes", bytes));
  return Mapping{p, bytes};
}

Result<Mapping> Mapping::Reserve(size_t bytes) {
  void* p = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return FailErrno(fmt::format("mmap of {} reserved bytes", bytes));
  return Mapping{p, bytes};
}

Result<Mapping> Mapping::ReserveAt(uint64_t address, size_t bytes) {
  void* const wanted = reinterpret_cast<void*>(address);
  void* p = ::mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (p == MAP_FAILED) return FailErrno(fmt::format("mmap of {} reserved bytes at {}", bytes, wanted));
  return Mapping{p, bytes};
}

Result<void> Mapping::MapAt(size_t at, int fd, uint64_t offset, size_t bytes, bool writable) {
  if (!Contains(at, bytes)) return Fail(std::errc::invalid_argument, "MapAt outside of the mapping");
  void* p = ::mmap(data() + at, bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_FIXED, fd,
                   static_cast<off_t>(offset));
  if (p == MAP_FAILED) return FailErrno(fmt::format("mmap of {} bytes of fd {} at {}", bytes, fd, offset));
  return {};
}

}  // namespace vgpud
