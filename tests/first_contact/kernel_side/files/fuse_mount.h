// SPDX-License-Identifier: Apache-2.0
// The device files as a FUSE file system, by the kernel's own protocol (linux/fuse.h). All files have the same
// contents, those of a memfd, but each has a page cache of its own: pages of one offset are shared by all that map them
// through one file.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/mapping.h"
#include "base/result.h"

namespace vgpud::kernel_side {

// Of the files that are mapped, and of their contents.
inline constexpr uint64_t kMappedBytes = uint64_t{1} << 40;

// An ioctl on an open file.
struct IoctlCall {
  uint64_t file = 0;
  pid_t thread = 0;  // that calls
  uint32_t request = 0;
  uint64_t argument = 0;
  std::vector<std::byte> bytes;  // what its number says is copied in; and out
};

// What is behind the files. All calls come from one thread.
class DeviceFiles {
 public:
  virtual ~DeviceFiles() = default;
  virtual void Opened(uint64_t file, size_t node) = 0;
  virtual void Closed(uint64_t file) = 0;
  // 0, or an errno.
  virtual int Ioctl(IoctlCall& call) = 0;
};

class FuseMount {
 public:
  // Mounts files of these names at `folder`. `contents` is a memfd.
  static Result<std::unique_ptr<FuseMount>> Make(const std::string& folder, std::vector<std::string> names,
                                                 int contents);
  ~FuseMount();

  // Serves the file system from threads of its own.
  void Start(DeviceFiles& files);
  // From now on everything that is asked of the files fails, and who waits for an answer goes on. Any thread.
  void Abort();
  // Returns when it was aborted.
  void AwaitEnd();
  // All that programs map of a file, mapped here, too, until the end: an munmap would wait for pages to be written that
  // its own process is asked to write. nullptr: it can't be.
  std::byte* View(size_t node);
  // poll() on that open file returns, now or the next time. Any thread.
  void Wake(uint64_t file);
  // Lets go of the pages of a range that is not used any more.
  void Forget(size_t node, uint64_t offset, uint64_t bytes);

 private:
  struct Poll {
    std::optional<uint64_t> waiter;
    bool pending = false;
  };
  struct Event {
    enum Kind { kOpened, kClosed, kIoctl } kind = kOpened;
    uint64_t unique = 0;
    size_t node = 0;
    IoctlCall call;
    size_t out_bytes = 0;
  };
  struct Request;

  FuseMount(std::string folder, std::vector<std::string> names, int contents, UniqueFd device);
  void ReadRequests();
  void RunEvents(DeviceFiles& files);
  void Take(const Request& request);
  void Lookup(const Request& request);
  void Open(const Request& request);
  void ReadPages(const Request& request);
  void WritePages(const Request& request);
  void TakeIoctl(const Request& request);
  void TakePoll(const Request& request);
  void Push(Event event);
  void Reply(uint64_t unique, int error, std::span<const std::byte> head = {}, std::span<const std::byte> rest = {});
  void Notify(int code, std::span<const std::byte> body);

  const std::string folder_;
  const std::vector<std::string> names_;
  const int contents_;
  UniqueFd device_;
  std::vector<Mapping> views_;
  uint64_t next_file_ = 1;
  std::vector<std::byte> pages_;  // of an answer
  std::thread reader_, worker_;
  std::mutex mutex_;
  std::condition_variable pushed_;
  std::deque<Event> events_;
  bool ended_ = false;
  std::map<uint64_t, Poll> polls_;
};

}  // namespace vgpud::kernel_side
