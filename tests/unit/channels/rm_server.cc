// SPDX-License-Identifier: Apache-2.0
// The model of the resource manager (rm_model.h) behind a real file: rm_server DIRECTORY [no-disable]
// [schedule=BYTES] [refuse=COMMAND:STATUS[:AFTER]: after so many calls of it]. Mounts a file system with one file
// there, nvidiactl; each open file of it is one of the model's, whoever has a copy of its descriptor, and parameters
// are in the memory of the process that calls, as with the driver. Says "serves" and does until it is ended. Status 77:
// no file system can be mounted here. Speaks FUSE by itself: ioctl is all that is needed of it.
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/channels/rm_model.h"
#include "tests/unit/channels/rm_questions.h"

namespace {

using namespace vgpud::rm;

constexpr int kNotHere = 77;
constexpr uint64_t kFileNode = 2;
constexpr char kName[] = "nvidiactl";
constexpr size_t kMostParams = 4096;
constexpr uint64_t kNeverSeconds = 3600;

class Server {
 public:
  Server(int fuse, rm_model::Model& model) : fuse_(fuse), model_(model) {}

  void Run() {
    std::vector<char> buffer(1 << 18);
    for (;;) {
      const ssize_t bytes = read(fuse_, buffer.data(), buffer.size());
      if (bytes < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN)) continue;
      if (bytes < static_cast<ssize_t>(sizeof(fuse_in_header))) return;
      fuse_in_header header;
      std::memcpy(&header, buffer.data(), sizeof header);
      Serve(header, buffer.data() + sizeof header);
    }
  }

 private:
  void Serve(const fuse_in_header& header, char* told) {
    switch (header.opcode) {
      case FUSE_INIT:
        return Init(header, told);
      case FUSE_LOOKUP:
        return std::strcmp(told, kName) == 0 ? Reply(header, Entry()) : Fail(header, ENOENT);
      case FUSE_GETATTR: {
        fuse_attr_out out{};
        out.attr_valid = kNeverSeconds;
        out.attr = Attributes(header.nodeid);
        return Reply(header, out);
      }
      case FUSE_OPEN: {
        fuse_open_out out{};
        out.fh = ++last_;
        out.open_flags = FOPEN_DIRECT_IO;
        files_[out.fh] = model_.Open();
        return Reply(header, out);
      }
      case FUSE_RELEASE: {
        fuse_release_in in;
        std::memcpy(&in, told, sizeof in);
        files_.erase(in.fh);
        return Fail(header, 0);
      }
      case FUSE_IOCTL:
        return Ioctl(header, told);
      case FUSE_FORGET:
      case FUSE_BATCH_FORGET:
      case FUSE_INTERRUPT:
        return;
      default:
        return Fail(header, ENOSYS);
    }
  }

  void Init(const fuse_in_header& header, const char* told) {
    fuse_init_in in;
    std::memcpy(&in, told, sizeof in);
    fuse_init_out out{};
    out.major = FUSE_KERNEL_VERSION;
    out.minor = in.minor < FUSE_KERNEL_MINOR_VERSION ? in.minor : FUSE_KERNEL_MINOR_VERSION;
    out.max_write = 4096;
    out.max_readahead = in.max_readahead;
    Reply(header, out);
  }

  static fuse_attr Attributes(uint64_t node) {
    fuse_attr attributes{};
    attributes.ino = node;
    attributes.mode = node == kFileNode ? S_IFREG | 0666 : S_IFDIR | 0755;
    attributes.nlink = 1;
    return attributes;
  }
  static fuse_entry_out Entry() {
    fuse_entry_out out{};
    out.nodeid = kFileNode;
    out.entry_valid = out.attr_valid = kNeverSeconds;
    out.attr = Attributes(kFileNode);
    return out;
  }

  void Ioctl(const fuse_in_header& header, char* told) {
    fuse_ioctl_in in;
    std::memcpy(&in, told, sizeof in);
    char argument[sizeof(RmAlloc)] = {};
    const auto file = files_.find(in.fh);
    if (file == files_.end() || in.in_size > sizeof argument || in.out_size > sizeof argument)
      return Fail(header, EINVAL);
    std::memcpy(argument, told + sizeof in, in.in_size);
    if (const int error = Do(*file->second, in.cmd, argument, static_cast<pid_t>(header.pid)))
      return Fail(header, error);
    struct {
      fuse_ioctl_out out;
      char argument[sizeof(RmAlloc)];
    } answer{};
    std::memcpy(answer.argument, argument, in.out_size);
    Reply(header, &answer, sizeof answer.out + in.out_size);
  }

  // 0 or an errno.
  int Do(const rm_model::File& file, uint32_t request, void* argument, pid_t caller) {
    if (request == kControlRequest) return Control(file, static_cast<RmControl*>(argument), caller);
    auto* const told = static_cast<rm_model::Told*>(argument);
    if (request == rm_model::kBindRequest) {
      model_.Bind(told->client, told->channel);
      return 0;
    }
    if (request == rm_model::kRunsRequest) {
      told->runs = model_.Runs(told->client, told->channel);
      return 0;
    }
    return file.Ioctl(request, argument) == 0 ? 0 : errno;
  }
  // Its parameters are where the caller has them.
  int Control(const rm_model::File& file, RmControl* control, pid_t caller) {
    char params[kMostParams] = {};
    if (control->params_bytes > sizeof params) return EINVAL;
    const uint64_t theirs = control->params;
    iovec here{params, control->params_bytes}, there{reinterpret_cast<void*>(theirs), control->params_bytes};
    const auto whole = static_cast<ssize_t>(control->params_bytes);
    if (whole > 0 && process_vm_readv(caller, &here, 1, &there, 1, 0) != whole) return EFAULT;
    control->params = reinterpret_cast<uint64_t>(params);
    const int result = file.Ioctl(kControlRequest, control);
    control->params = theirs;
    if (result != 0) return errno;
    if (whole > 0 && process_vm_writev(caller, &here, 1, &there, 1, 0) != whole) return EFAULT;
    return 0;
  }

  template <class T>
  void Reply(const fuse_in_header& header, const T& out) {
    Reply(header, &out, sizeof out);
  }
  void Reply(const fuse_in_header& header, const void* out, size_t bytes) {
    fuse_out_header answer{static_cast<uint32_t>(sizeof answer + bytes), 0, header.unique};
    const iovec parts[] = {{&answer, sizeof answer}, {const_cast<void*>(out), bytes}};
    (void)!writev(fuse_, parts, bytes == 0 ? 1 : 2);
  }
  void Fail(const fuse_in_header& header, int error) {
    const fuse_out_header answer{sizeof answer, -error, header.unique};
    (void)!write(fuse_, &answer, sizeof answer);
  }

  const int fuse_;
  rm_model::Model& model_;
  std::map<uint64_t, std::shared_ptr<rm_model::File>> files_;
  uint64_t last_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  rm_model::Settings settings;
  for (int n = 2; n < argc; ++n) {
    if (std::strcmp(argv[n], "no-disable") == 0) settings.firmware_disables = false;
    (void)std::sscanf(argv[n], "schedule=%u", &settings.schedule_bytes);
  }
  rm_model::Model model(settings);
  for (int n = 2; n < argc; ++n) {
    unsigned command = 0, status = 0;
    int after = 0;
    if (std::sscanf(argv[n], "refuse=%x:%x:%d", &command, &status, &after) >= 2)
      model.Refuse(static_cast<Command>(command), status, 1 << 30, after);
  }
  const int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  const std::string options = "fd=" + std::to_string(fuse) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  if (fuse < 0 || mount("rm_model", argv[1], "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    std::perror("no file system of a process can be mounted here");
    return kNotHere;
  }
  std::printf("serves\n");
  std::fflush(stdout);
  Server(fuse, model).Run();
  return 0;
}
