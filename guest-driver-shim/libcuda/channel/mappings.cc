// SPDX-License-Identifier: Apache-2.0
#include "guest-driver-shim/libcuda/channel/mappings.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

namespace vgpud::cuda {
namespace {

constexpr size_t kLine = 4096 + 128;  // the longest name of a file, and what is before it

// The words of VmFlags in smaps, and what says so. A file's memory is never wiped, merged or copied for children.
constexpr struct {
  const char* word;
  int advice;
  bool of_files;
} kAdvice[] = {{" dd ", MADV_DONTDUMP, true},   {" wf ", MADV_WIPEONFORK, false}, {" dc ", MADV_DONTFORK, false},
               {" hg ", MADV_HUGEPAGE, true},   {" nh ", MADV_NOHUGEPAGE, true},  {" mg ", MADV_MERGEABLE, false},
               {" sr ", MADV_SEQUENTIAL, true}, {" rr ", MADV_RANDOM, true}};
constexpr char kLocked[] = " lo ";

bool Says(const Treatment& treatment, int advice) {
  for (size_t i = 0; i < std::size(kAdvice); ++i)
    if (kAdvice[i].advice == advice) return (treatment.advice >> i & 1) != 0;
  return false;
}

// PROCMAP_QUERY of Linux 6.11, which the headers of older systems lack.
struct MappingQuery {
  uint64_t size = sizeof(MappingQuery), flags = 0, address = 0;
  uint64_t begin = 0, end = 0, may = 0, page_size = 0, offset = 0, inode = 0;
  uint32_t device_major = 0, device_minor = 0;
  uint32_t name_bytes = 0, build_id_bytes = 0;  // room, then length
  uint64_t name = 0, build_id = 0;              // addresses
};
static_assert(sizeof(MappingQuery) == 104);
constexpr unsigned long kMappingQuery = _IOWR('f', 17, MappingQuery);
constexpr uint64_t kMayRead = 1, kMayWrite = 2, kMayExecute = 4, kIsShared = 8, kOrNext = 16;

// Finds the mapping at `at`, else the next one. Returns 0, ENOENT when no mapping follows, or another errno.
int QueryMapping(int maps, uint64_t at, Mapping* out) {
  char name[kLine];
  MappingQuery query;
  query.flags = kOrNext;
  query.address = at;
  query.name = reinterpret_cast<uint64_t>(name);
  query.name_bytes = sizeof name;
  if (ioctl(maps, kMappingQuery, &query) != 0) return errno;
  *out = {query.begin, query.end, query.offset, query.inode, makedev(query.device_major, query.device_minor),
          "---p",      ""};
  if ((query.may & kMayRead) != 0) out->may[0] = 'r';
  if ((query.may & kMayWrite) != 0) out->may[1] = 'w';
  if ((query.may & kMayExecute) != 0) out->may[2] = 'x';
  if ((query.may & kIsShared) != 0) out->may[3] = 's';
  if (query.name_bytes != 0) out->name = name;
  return 0;
}

// False: the kernel does not answer, and nothing was found.
bool AskForMappings(uint64_t at, uint64_t bytes, const OnPart& f) {
  const OwnedFd maps(open("/proc/thread-self/maps", O_RDONLY | O_CLOEXEC));
  for (uint64_t from = at; from < at + bytes;) {
    Mapping m;
    const int error = maps ? QueryMapping(maps.get(), from, &m) : errno;
    if (error != 0) return error == ENOENT || from != at;
    if (m.begin >= at + bytes) return true;
    f(m, std::min(m.end, at + bytes) - std::max(m.begin, at));
    from = m.end;
  }
  return true;
}

bool IsForBoth(int fd) { return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR; }

// A descriptor of our own for one that this process has; the program may close that one at any time.
OwnedFd FindOpen(const ShownFile& file) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir("/proc/thread-self/fd"), &closedir);
  while (const dirent* each = all != nullptr ? readdir(all.get()) : nullptr) {
    char* end = nullptr;
    const long number = strtol(each->d_name, &end, 10);
    if (end == each->d_name || !file.Is(static_cast<int>(number)) || !IsForBoth(static_cast<int>(number))) continue;
    OwnedFd fd(fcntl(static_cast<int>(number), F_DUPFD_CLOEXEC, 0));
    if (fd && file.Is(fd.get()) && IsForBoth(fd.get())) return fd;
  }
  return OwnedFd();
}

}  // namespace

void ForEachMapping(uint64_t at, uint64_t bytes, const OnPart& f) {
  if (!AskForMappings(at, bytes, f)) ReadEachMapping(at, bytes, f);
}

void ReadEachMapping(uint64_t at, uint64_t bytes, const OnPart& f) {
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(fopen("/proc/thread-self/maps", "re"), &fclose);
  char line[kLine];
  while (maps != nullptr && fgets(line, sizeof line, maps.get()) != nullptr) {
    Mapping m;
    unsigned long begin = 0, end = 0, offset = 0, inode = 0;
    unsigned major_number = 0, minor_number = 0;
    char may[5] = "";
    int name = 0;
    if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &begin, &end, may, &offset, &major_number, &minor_number, &inode,
               &name) != 7)
      continue;
    if (begin >= at + bytes) return;
    const uint64_t first = std::max<uint64_t>(begin, at), last = std::min<uint64_t>(end, at + bytes);
    if (first >= last) continue;
    m = {begin, end, offset, inode, makedev(major_number, minor_number), may, line + name};
    if (m.name.ends_with('\n')) m.name.pop_back();
    f(m, last - first);
  }
}

bool Treatment::is_for_children() const { return !Says(*this, MADV_DONTFORK); }
bool Treatment::is_empty_in_children() const { return Says(*this, MADV_WIPEONFORK); }

// One line after the other, of the mappings that [at, at + bytes) has a part of.
class TreatmentReader {
 public:
  TreatmentReader(uint64_t at, uint64_t bytes) : at_(at), end_(at + bytes) {}
  // False: nothing more of it comes.
  bool Take(std::string_view line) {
    // Some 25 lines are about each mapping, and most mappings are others'.
    if (line.empty() || !isupper(line.front())) {
      uint64_t begin = 0, end = 0;
      const auto dash = std::from_chars(line.data(), line.data() + line.size(), begin, 16).ptr;
      if (dash < line.data() + line.size()) std::from_chars(dash + 1, line.data() + line.size(), end, 16);
      inside_ = end > at_ && begin < end_;
      here_ = {};
      return begin < end_;
    }
    if (!inside_) return true;
    if (line.starts_with(kKey)) {
      line.remove_prefix(std::min(line.find_first_not_of(' ', kKey.size()), line.size()));
      std::from_chars(line.data(), line.data() + line.size(), here_.key);
    }
    if (!line.starts_with("VmFlags:")) return true;  // the last line of a mapping
    here_.locked = Has(line, kLocked);
    for (size_t i = 0; i < std::size(kAdvice); ++i)
      if (Has(line, kAdvice[i].word)) here_.advice |= 1u << i;
    differs_ = any_ && all_ != here_;
    all_ = here_;
    any_ = true;
    return !differs_;
  }
  bool differs() const { return differs_; }
  bool any() const { return any_; }
  const Treatment& all() const { return all_; }

 private:
  static constexpr std::string_view kKey = "ProtectionKey:";
  static bool Has(std::string_view line, std::string_view word) {
    return line.find(word) != line.npos || line.ends_with(word.substr(0, word.size() - 1));
  }
  const uint64_t at_, end_;
  bool inside_ = false, any_ = false, differs_ = false;
  Treatment here_, all_;
};

std::optional<Treatment> TreatmentIn(std::string_view smaps, uint64_t at) {
  TreatmentReader reader(at, 1);
  for (size_t end; (end = smaps.find('\n')) != smaps.npos; smaps.remove_prefix(end + 1))
    if (!reader.Take(smaps.substr(0, end))) break;
  return reader.any() ? std::optional(reader.all()) : std::nullopt;
}

std::optional<Treatment> ReadTreatment(uint64_t at, uint64_t bytes) {
  const std::unique_ptr<FILE, int (*)(FILE*)> smaps(fopen("/proc/thread-self/smaps", "re"), &fclose);
  char buffer[2 * kLine];
  if (smaps != nullptr) setvbuf(smaps.get(), buffer, _IOFBF, sizeof buffer);
  TreatmentReader reader(at, bytes);
  char line[kLine];
  while (smaps != nullptr && fgets(line, sizeof line, smaps.get()) != nullptr)
    if (!reader.Take({line, strcspn(line, "\n")})) break;
  return reader.differs() ? std::nullopt : std::optional(reader.all());  // a kernel may not tell
}

bool Treat(uint64_t at, uint64_t bytes, const Treatment& treatment, bool own) {
  void* const memory = reinterpret_cast<void*>(at);
  for (size_t i = 0; i < std::size(kAdvice); ++i)
    if ((treatment.advice >> i & 1) != 0 && (own || kAdvice[i].of_files)) madvise(memory, bytes, kAdvice[i].advice);
  if (treatment.key != 0 && pkey_mprotect(memory, bytes, PROT_READ | PROT_WRITE, treatment.key) != 0) return false;
  return !treatment.locked || mlock(memory, bytes) == 0;
}

bool MayUse(int key) { return key == 0 || pkey_get(key) == 0; }

bool ShownFile::Is(int fd) const {
  struct stat about {};
  return fstat(fd, &about) == 0 && about.st_dev == device && about.st_ino == inode;
}

ShownFile FileShown(uint64_t at, uint64_t bytes) {
  ShownFile file;
  uint64_t shown = 0;
  ForEachMapping(at, bytes, [&](const Mapping& m, uint64_t part) {
    if (m.may.substr(0, 2) != "rw" || !m.is_shared() || m.inode == 0) return;
    const uint64_t offset = m.offset + (std::max(m.begin, at) - m.begin);
    if (shown == 0) file = {m.device, m.inode, offset, m.begin, m.end, m.name};
    if (m.device == file.device && m.inode == file.inode && offset == file.offset + shown) shown += part;
  });
  return shown == bytes ? file : ShownFile{};
}

OwnedFd OpenShown(const ShownFile& file) {
  char entry[64];
  snprintf(entry, sizeof entry, "/proc/self/map_files/%llx-%llx", static_cast<unsigned long long>(file.begin),
           static_cast<unsigned long long>(file.end));
  // The entry is for those who may look at everything.
  for (const char* name : {file.name.c_str(), static_cast<const char*>(entry)}) {
    OwnedFd fd(open(name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (fd && file.Is(fd.get())) return fd;
  }
  return FindOpen(file);
}

}  // namespace vgpud::cuda
