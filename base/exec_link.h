// SPDX-License-Identifier: Apache-2.0
// Messages between vgpud-vf and vgpud-exec (SOCK_SEQPACKET, base/message.h). The executor gets its end as fd number
// kExecLinkFd at start. The executor sees memory only as areas: file descriptor pieces that it maps one behind the
// other; guest addresses stay with vgpud-vf. EOF on the link means: exit now.
//
// The command line of vgpud-exec is here, too: one row for each option, for vgpud, which writes it, and for vgpud-exec,
// which reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vgpud::exec_link {

inline constexpr int kExecLinkFd = 3;
// From vgpud, which hands them to nobody else: the slice pages (base/slice_page.h). Mapped, then closed, before the
// executor serves.
inline constexpr int kGrantPageFd = 4;
inline constexpr int kSlotPageFd = 5;
// A connection for the CUDA driver's library of one that is nested (docs/cuda-backend.md).
inline constexpr int kNestedChannelFd = 6;
// Of one that tells its channels (gpu/channels/channel_teller.h): its board, and where it hands its control files over.
inline constexpr int kChannelBoardFd = 7;
inline constexpr int kChannelSocketFd = 8;
// A trial in a jail (vgpud/device/exec_question.h) hands over the watch of that jail here.
inline constexpr int kRefusalsFd = 9;
// What programs see as the name of a soft GPU.
inline constexpr char kSoftGpuName[] = "vgpud soft GPU";
// Name of the thread that runs the guest's work: vgpud tells by its computing time whether it hangs.
inline constexpr char kGpuThreadName[] = "vgpu-gpu";
// Name of the threads that help it, if there are any.
inline constexpr char kGpuWorkerName[] = "vgpu-worker";
// Name of the thread that does what takes long and needs no turn.
inline constexpr char kLoaderName[] = "vgpu-loader";

enum class Kind : uint32_t {
  // vgpud-vf -> vgpud-exec
  kAttach = 1,  // Attach + fds {kick, call}; first message
  // Area + Piece[count] behind it; area 0 is the channel area, others are buffers. With the fds of the pieces when the
  // executor is not watched; else it gets each piece's file at the moment when it maps it
  // (vfio/channel/executor_memory.h).
  kMapArea = 2,
  kUnmapArea = 3,  // Area: drop the mapping (finish or stop what uses it), answer kUnmapped
  kVramReply = 4,  // Vram: answer to kVramRequest
  kHostReply = 5,  // Vram: answer to kHostRequest
  kLoadReply = 6,  // Plain: answer to kLoadRequest
  kQuotas = 7,     // Quotas: what the whole VF may have from now on
  // vgpud-exec -> vgpud-vf
  kUnmapped = 16,     // Area
  kVramRequest = 17,  // Vram: delta_bytes more (or, negative, given back); answered at once
  kDoorbells = 18,    // Doorbells: at most once a second, when there were any
  kWatched = 19,      // Plain + fds of its jails' watches {the thread that maps, the others}, none where there can't be
                      // any; once, when Attach asked for it
  kHostRequest = 20,  // Vram: as kVramRequest, for memory of the host that the executor takes beside its VRAM
  kLoadRequest = 21,  // Plain: may a module be loaded? Answered when those before are paid for; one at a time
  kLoaded = 22,       // Loaded: what was read for modules since the last such message
};

struct Attach {
  Kind kind = Kind::kAttach;
  uint32_t channel = 0;     // = slot in the slot page
  uint64_t vram_quota = 0;  // bytes, for MEM_INFO
  uint32_t guest_pid = 0;
  uint32_t doorbells_per_second = 0;  // wake-ups by kicks that it serves; 0: who kicks is limited elsewhere
  uint32_t watched = 0;  // 1: enter a watched jail (base/jail/jail.h) and answer kWatched before anything else
  uint32_t asks_before_loads = 0;  // 1: modules are loaded only after kLoadReply
  char vf_name[64] = {};
};
// A large area arrives as several kMapArea messages with the same id: `first_piece` counts pieces already sent; the
// area is complete, and used, when total_pieces have arrived.
struct Area {
  Kind kind;
  uint32_t area = 0;  // 0 = channel area, else buffer id
  uint64_t total_bytes = 0;
  uint32_t total_pieces = 0;
  uint32_t first_piece = 0;
  uint32_t count = 0;  // pieces in this message
  uint32_t mbz = 0;
};
struct Piece {
  uint32_t fd_index = 0;  // into this message's fds, if it has any
  uint32_t writable = 0;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
};
struct Plain {
  Kind kind;
  uint32_t mbz = 0;
};
struct Vram {
  Kind kind;
  uint32_t ok = 0;  // reply: 1 = granted
  int64_t delta_bytes = 0;
  uint64_t vf_used = 0;  // reply: bytes of that memory in use by the whole VF now
};
struct Loaded {
  Kind kind = Kind::kLoaded;
  uint32_t mbz = 0;
  uint64_t code_bytes = 0;
};

struct Quotas {
  Kind kind = Kind::kQuotas;
  uint32_t mbz = 0;
  uint64_t vram_bytes = 0;
  uint64_t host_memory_bytes = 0;
};

// So far: wake-ups by kicks, how often more of them had to wait, and how long.
struct Doorbells {
  Kind kind = Kind::kDoorbells;
  uint32_t mbz = 0;
  uint64_t count = 0;
  uint64_t throttled = 0;
  uint64_t throttled_ns = 0;
};

}  // namespace vgpud::exec_link

namespace vgpud {

enum class ExecOption : uint8_t {
  kBackend,
  kVf,
  kThreads,
  kCapability,
  kVram,
  kHostMemory,
  kMostVram,
  kMostMemory,
  kMostThreads,
  kConfinement,
  kUser,
  kCheckConfinement,
  kCudaLibrary,
  kCudaDevice,
  kCudaChannel,
  kCudaRung,
  kCudaOversubscribe,
  kTellChannels,
  kDescribeGpu,
  kTestRung,
  kPreemptEvery,
};

struct ExecOptionRow {
  ExecOption option;
  const char* name;
  const char* value;  // what it is called in the help; nullptr: it has none
};
inline constexpr ExecOptionRow kExecOptions[] = {
    {ExecOption::kBackend, "backend", "soft|cuda"},
    {ExecOption::kVf, "vf", "NAME"},
    // So many threads run a kernel together.
    {ExecOption::kThreads, "threads", "N"},
    // The GPU offers this compute capability (base/compute_capability.h).
    {ExecOption::kCapability, "capability", "CAPABILITY"},
    // The VF may have so much; without these two there are no limits.
    {ExecOption::kVram, "vram", "BYTES"},
    {ExecOption::kHostMemory, "host-memory", "BYTES"},
    // What these may grow to while the executor runs: the first, and both together. Less than they are: they stay.
    {ExecOption::kMostVram, "most-vram", "BYTES"},
    {ExecOption::kMostMemory, "most-memory", "BYTES"},
    // Limits the threads of all processes of its user, where the VF has a user of its own.
    {ExecOption::kMostThreads, "most-threads", "N"},
    // Confines the executor on the host (base/jail/confine.h); then the executor enters the jail.
    {ExecOption::kConfinement, "confinement", "KIND"},
    {ExecOption::kUser, "user", "UID"},
    {ExecOption::kCheckConfinement, "check-confinement", nullptr},
    {ExecOption::kCudaLibrary, "cuda-library", "FILE"},
    {ExecOption::kCudaDevice, "cuda-device", "ADDRESS"},
    {ExecOption::kCudaChannel, "cuda-channel", "FD"},
    {ExecOption::kCudaRung, "cuda-rung", "gate|blocks|safepoints"},
    {ExecOption::kCudaOversubscribe, "cuda-oversubscribe", nullptr},
    // Tells vgpud what its driver makes (gpu/channels/channel_teller.h), by fds 7 and 8.
    {ExecOption::kTellChannels, "tell-channels", nullptr},
    // Only says what the GPU is.
    {ExecOption::kDescribeGpu, "describe-gpu", nullptr},
    // Only tries that way to take kernels away, and says what was seen (gpu/cuda/self_test.h); with kill it says
    // "running" and waits to be killed, with channels it beats until then (gpu/cuda/channels_trial.h), with program it
    // is confined and in the jail (gpu/cuda/program_trial.h). Says "ready" when the driver has started.
    {ExecOption::kTestRung, "test-rung", "gate|blocks|safepoints|channels|kill|program"},
    // A test mode: gpu/exec/drill/preempt_drill.h.
    {ExecOption::kPreemptEvery, "preempt-every", "INSTRUCTIONS"},
};

constexpr const ExecOptionRow& RowOf(ExecOption option) { return kExecOptions[static_cast<size_t>(option)]; }
constexpr bool ExecOptionsInOrder() {
  for (size_t i = 0; i < std::size(kExecOptions); ++i)
    if (static_cast<size_t>(kExecOptions[i].option) != i) return false;
  return true;
}
static_assert(ExecOptionsInOrder());

// Arguments for vgpud-exec, without its name.
class ExecArguments {
 public:
  ExecArguments& Add(ExecOption option) {
    words_.push_back(std::string("--") + RowOf(option).name);
    return *this;
  }
  ExecArguments& Add(ExecOption option, std::string value) {
    Add(option).words_.push_back(std::move(value));
    return *this;
  }
  std::vector<std::string> Take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

// The line that an executor logs when a kernel of its program has failed: "... guest kernel failed: error=700 kernel k,
// ...". vgpud makes an event of it. A compromised executor may log such a line as well: for display, trusted for
// nothing.
inline constexpr std::string_view kKernelFaultMark = "guest kernel failed: ";

// What failed, from "error=NUMBER" on; nullopt: `line` is another one.
inline std::optional<std::string_view> KernelFaultIn(std::string_view line) {
  const size_t at = line.find(kKernelFaultMark);
  if (at == std::string_view::npos) return std::nullopt;
  return line.substr(at + kKernelFaultMark.size());
}

}  // namespace vgpud
