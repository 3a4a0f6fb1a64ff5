// SPDX-License-Identifier: Apache-2.0
#include "tests/first_contact/kernel_side/files/fuse_mount.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "tests/first_contact/kernel_side/abi/requests.h"

namespace vgpud::kernel_side {
namespace {

constexpr uint64_t kRoot = FUSE_ROOT_ID, kFirstFile = kRoot + 1;
constexpr uint64_t kFileBytes = uint64_t{1} << 62;
constexpr uint32_t kMostBytes = 1 << 20;  // of one read or write
constexpr uint64_t kForEver = 1u << 30;   // seconds

template <class T>
std::span<const std::byte> BytesOf(const T& value) {
  return std::as_bytes(std::span{&value, 1});
}

fuse_attr AttributesOf(uint64_t node) {
  fuse_attr attributes{};
  attributes.ino = node;
  attributes.nlink = 1;
  attributes.mode = node == kRoot ? S_IFDIR | 0755 : S_IFREG | 0666;
  attributes.size = node == kRoot ? 0 : kFileBytes;
  attributes.blksize = 4096;
  return attributes;
}

}  // namespace

struct FuseMount::Request {
  const fuse_in_header& head;
  std::span<const std::byte> rest;

  template <class T>
  T As() const {
    T value{};
    std::memcpy(&value, rest.data(), std::min(sizeof value, rest.size()));
    return value;
  }
  size_t node() const { return static_cast<size_t>(head.nodeid - kFirstFile); }
};

Result<std::unique_ptr<FuseMount>> FuseMount::Make(const std::string& folder, std::vector<std::string> names,
                                                   int contents) {
  UniqueFd device{::open("/dev/fuse", O_RDWR | O_CLOEXEC)};
  if (!device) return FailErrno("/dev/fuse");
  const std::string options =
      fmt::format("fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", device.get());
  if (::mount("kernel-side", folder.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return FailErrno(fmt::format("mount of {}", folder));
  return std::unique_ptr<FuseMount>(new FuseMount(folder, std::move(names), contents, std::move(device)));
}

FuseMount::FuseMount(std::string folder, std::vector<std::string> names, int contents, UniqueFd device)
    : folder_(std::move(folder)),
      names_(std::move(names)),
      contents_(contents),
      device_(std::move(device)),
      views_(names_.size()),
      pages_(kMostBytes) {}

FuseMount::~FuseMount() {
  Abort();
  AwaitEnd();
}

// By force it is the connection that ends, even if the mount is busy.
void FuseMount::Abort() {
  ::umount2(folder_.c_str(), MNT_FORCE);
  ::umount2(folder_.c_str(), MNT_DETACH);
}

void FuseMount::Start(DeviceFiles& files) {
  reader_ = std::thread([this] { ReadRequests(); });
  worker_ = std::thread([this, &files] { RunEvents(files); });
}

void FuseMount::AwaitEnd() {
  if (reader_.joinable()) reader_.join();
  if (worker_.joinable()) worker_.join();
}

std::byte* FuseMount::View(size_t node) {
  Mapping& view = views_[node];
  if (view) return view.data();
  const UniqueFd file{::open((folder_ + "/" + names_[node]).c_str(), O_RDWR | O_CLOEXEC)};
  auto mapped = file ? Mapping::Shared(file.get(), 0, kMappedBytes) : Result<Mapping>(FailErrno("open"));
  if (!mapped) {
    LOG(kError, "{} can't be mapped: {}", names_[node], mapped.error().context);
    return nullptr;
  }
  view = std::move(*mapped);
  return view.data();
}

// Never waits for the worker: what the worker touches may be pages that this thread gives.
void FuseMount::ReadRequests() {
  std::vector<std::byte> buffer(kMostBytes + (64u << 10));
  for (;;) {
    const ssize_t got = ::read(device_.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
    if (got < static_cast<ssize_t>(sizeof(fuse_in_header))) break;
    const auto& head = *reinterpret_cast<const fuse_in_header*>(buffer.data());
    const auto bytes = std::span<const std::byte>(buffer).first(static_cast<size_t>(got));
    Take({head, bytes.subspan(sizeof head)});
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  pushed_.notify_one();
}

void FuseMount::RunEvents(DeviceFiles& files) {
  for (;;) {
    std::unique_lock lock(mutex_);
    pushed_.wait(lock, [this] { return ended_ || !events_.empty(); });
    if (events_.empty()) return;
    Event event = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    if (event.kind == Event::kOpened) files.Opened(event.call.file, event.node);
    if (event.kind == Event::kClosed) files.Closed(event.call.file);
    if (event.kind != Event::kIoctl) continue;
    const int error = files.Ioctl(event.call);
    event.call.bytes.resize(event.out_bytes);
    if (error != 0)
      Reply(event.unique, error);
    else
      Reply(event.unique, 0, BytesOf(fuse_ioctl_out{}), event.call.bytes);
  }
}

void FuseMount::Take(const Request& request) {
  static constexpr struct {
    uint32_t opcode;
    void (FuseMount::*take)(const Request& request);
  } kOperations[] = {
      {FUSE_LOOKUP, &FuseMount::Lookup},    {FUSE_OPEN, &FuseMount::Open},       {FUSE_READ, &FuseMount::ReadPages},
      {FUSE_WRITE, &FuseMount::WritePages}, {FUSE_IOCTL, &FuseMount::TakeIoctl}, {FUSE_POLL, &FuseMount::TakePoll},
  };
  for (const auto& operation : kOperations)
    if (operation.opcode == request.head.opcode) return (this->*operation.take)(request);
  const uint64_t unique = request.head.unique;
  switch (request.head.opcode) {
    case FUSE_INIT: {
      const auto in = request.As<fuse_init_in>();
      fuse_init_out out{};
      out.major = FUSE_KERNEL_VERSION;
      out.minor = std::min<uint32_t>(in.minor, FUSE_KERNEL_MINOR_VERSION);
      out.max_readahead = in.max_readahead;
      out.flags = in.flags & (FUSE_BIG_WRITES | FUSE_MAX_PAGES);
      out.max_write = kMostBytes;
      out.max_pages = kMostBytes / 4096;
      return Reply(unique, 0, BytesOf(out));
    }
    case FUSE_GETATTR:
    case FUSE_SETATTR: {
      fuse_attr_out out{};
      out.attr_valid = kForEver;
      out.attr = AttributesOf(request.head.nodeid);
      return Reply(unique, 0, BytesOf(out));
    }
    case FUSE_RELEASE: {
      Event event;
      event.kind = Event::kClosed;
      event.call.file = request.As<fuse_release_in>().fh;
      {
        const std::lock_guard lock(mutex_);
        polls_.erase(event.call.file);
      }
      Push(std::move(event));
      return Reply(unique, 0);
    }
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;  // have no answer
    case FUSE_FSYNC:
      return Reply(unique, 0);
    default:
      return Reply(unique, ENOSYS);
  }
}

void FuseMount::Lookup(const Request& request) {
  const std::string name(reinterpret_cast<const char*>(request.rest.data()),
                         ::strnlen(reinterpret_cast<const char*>(request.rest.data()), request.rest.size()));
  const auto it = std::find(names_.begin(), names_.end(), name);
  if (it == names_.end()) return Reply(request.head.unique, ENOENT);
  fuse_entry_out out{};
  out.nodeid = kFirstFile + static_cast<uint64_t>(it - names_.begin());
  out.entry_valid = out.attr_valid = kForEver;
  out.attr = AttributesOf(out.nodeid);
  Reply(request.head.unique, 0, BytesOf(out));
}

void FuseMount::Open(const Request& request) {
  fuse_open_out out{};
  out.fh = next_file_++;
  // A close asks nothing: at our own end nobody would answer for the files that we still have open.
  out.open_flags = FOPEN_KEEP_CACHE | FOPEN_NOFLUSH;
  Event event;
  event.call.file = out.fh;
  event.node = request.node();
  Push(std::move(event));
  Reply(request.head.unique, 0, BytesOf(out));
}

void FuseMount::ReadPages(const Request& request) {
  const auto in = request.As<fuse_read_in>();
  const auto pages = std::span(pages_).first(std::min(in.size, kMostBytes));
  const ssize_t got = ::pread(contents_, pages.data(), pages.size(), static_cast<off_t>(in.offset));
  if (got < 0) return Reply(request.head.unique, EIO);
  Reply(request.head.unique, 0, pages.first(static_cast<size_t>(got)));  // the rest is zeroes
}

void FuseMount::WritePages(const Request& request) {
  const auto in = request.As<fuse_write_in>();
  const auto data = request.rest.subspan(std::min(sizeof in, request.rest.size()));
  const ssize_t put =
      ::pwrite(contents_, data.data(), std::min<size_t>(in.size, data.size()), static_cast<off_t>(in.offset));
  if (put < 0) return Reply(request.head.unique, EIO);
  fuse_write_out out{};
  out.size = static_cast<uint32_t>(put);
  Reply(request.head.unique, 0, BytesOf(out));
}

void FuseMount::TakeIoctl(const Request& request) {
  const auto in = request.As<fuse_ioctl_in>();
  if (in.cmd == KERNEL_SIDE_WHICH_FILE) return Reply(request.head.unique, 0, BytesOf(fuse_ioctl_out{}), BytesOf(in.fh));
  Event event;
  event.kind = Event::kIoctl;
  event.unique = request.head.unique;
  const auto data = request.rest.subspan(std::min(sizeof in, request.rest.size()));
  const auto copied = data.first(std::min<size_t>(in.in_size, data.size()));
  event.call = {in.fh, static_cast<pid_t>(request.head.pid), in.cmd, in.arg, {copied.begin(), copied.end()}};
  event.out_bytes = in.out_size;
  Push(std::move(event));
}

void FuseMount::TakePoll(const Request& request) {
  const auto in = request.As<fuse_poll_in>();
  fuse_poll_out out{};
  {
    const std::lock_guard lock(mutex_);
    Poll& poll = polls_[in.fh];
    if ((in.flags & FUSE_POLL_SCHEDULE_NOTIFY) != 0) poll.waiter = in.kh;
    out.revents = std::exchange(poll.pending, false) ? POLLIN | POLLPRI : 0;
  }
  Reply(request.head.unique, 0, BytesOf(out));
}

void FuseMount::Wake(uint64_t file) {
  std::optional<uint64_t> waiter;
  {
    const std::lock_guard lock(mutex_);
    Poll& poll = polls_[file];
    poll.pending = true;
    waiter = std::exchange(poll.waiter, std::nullopt);
  }
  if (waiter) Notify(FUSE_NOTIFY_POLL, BytesOf(fuse_notify_poll_wakeup_out{*waiter}));
}

void FuseMount::Forget(size_t node, uint64_t offset, uint64_t bytes) {
  fuse_notify_inval_inode_out out{};
  out.ino = kFirstFile + node;
  out.off = static_cast<int64_t>(offset);
  out.len = static_cast<int64_t>(bytes);
  Notify(FUSE_NOTIFY_INVAL_INODE, BytesOf(out));
}

void FuseMount::Push(Event event) {
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(event));
  pushed_.notify_one();
}

void FuseMount::Reply(uint64_t unique, int error, std::span<const std::byte> head, std::span<const std::byte> rest) {
  fuse_out_header out{};
  out.len = static_cast<uint32_t>(sizeof out + head.size() + rest.size());
  out.error = -error;
  out.unique = unique;
  const iovec parts[] = {{&out, sizeof out},
                         {const_cast<std::byte*>(head.data()), head.size()},
                         {const_cast<std::byte*>(rest.data()), rest.size()}};
  // ENOENT: whoever asked was interrupted and has gone.
  if (::writev(device_.get(), parts, std::size(parts)) < 0 && errno != ENOENT && errno != ENODEV)
    LOG(kError, "answer to the kernel ({} bytes): {}", out.len, std::strerror(errno));
}

void FuseMount::Notify(int code, std::span<const std::byte> body) {
  fuse_out_header out{};
  out.len = static_cast<uint32_t>(sizeof out + body.size());
  out.error = code;
  const iovec parts[] = {{&out, sizeof out}, {const_cast<std::byte*>(body.data()), body.size()}};
  [[maybe_unused]] const auto sent = ::writev(device_.get(), parts, std::size(parts));
}

}  // namespace vgpud::kernel_side
