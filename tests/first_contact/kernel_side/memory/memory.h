// SPDX-License-Identifier: Apache-2.0
// Memory that the GPU can reach: the card's and the host's own, and that of a process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/fd.h"
#include "base/mapping.h"
#include "base/result.h"
#include "tests/first_contact/kernel_side/files/caller.h"
#include "tests/first_contact/kernel_side/files/fuse_mount.h"

namespace vgpud::kernel_side {

class Memory {
 public:
  explicit Memory(uint64_t bytes) : bytes_(bytes) {}
  virtual ~Memory() = default;
  Memory(const Memory&) = delete;

  uint64_t bytes() const { return bytes_; }
  // False: not all of it is there. Nothing is promised of the rest then.
  virtual bool Read(uint64_t offset, std::span<std::byte> to) = 0;
  virtual bool Write(uint64_t offset, std::span<const std::byte> from) = 0;

 protected:
  bool Contains(uint64_t offset, uint64_t length) const { return offset <= bytes_ && length <= bytes_ - offset; }

 private:
  const uint64_t bytes_;
};

// The contents of all device files: one sparse memfd, of which each memory has a range that is never used again.
class Store {
 public:
  static Result<Store> Make();
  int file() const { return file_.get(); }
  std::byte* view() const { return view_.data(); }
  // None: so much was taken since the begin that nothing is left.
  std::optional<uint64_t> Take(uint64_t bytes);
  void Release(uint64_t offset, uint64_t bytes);

 private:
  UniqueFd file_;
  Mapping view_;
  uint64_t next_ = uint64_t{1} << 32;
};

// Zeroed when it is made. Programs may map it, all through one of the device files.
class StoredMemory : public Memory {
 public:
  // nullptr: the store has nothing left.
  static std::shared_ptr<StoredMemory> Make(Store& store, FuseMount& mount, uint64_t bytes);
  ~StoredMemory() override;

  bool Read(uint64_t offset, std::span<std::byte> to) override;
  bool Write(uint64_t offset, std::span<const std::byte> from) override;
  // Where it is in the file of `node` from now on; none: programs map it through another file.
  std::optional<uint64_t> ShareThrough(size_t node);

 private:
  StoredMemory(Store& store, FuseMount& mount, uint64_t at, uint64_t bytes)
      : Memory(bytes), store_(store), mount_(mount), at_(at) {}
  // nullptr: it can't be seen.
  std::byte* Data() const;

  Store& store_;
  FuseMount& mount_;
  const uint64_t at_;
  std::optional<size_t> node_;
};

// Of a process that still has it, we hope, as the GPU does.
class ProcessMemory : public Memory {
 public:
  ProcessMemory(pid_t process, uint64_t address, uint64_t bytes)
      : Memory(bytes), process_(process), address_(address) {}

  bool Read(uint64_t offset, std::span<std::byte> to) override;
  bool Write(uint64_t offset, std::span<const std::byte> from) override;

 private:
  const Caller process_;
  const uint64_t address_;
};

}  // namespace vgpud::kernel_side
