// SPDX-License-Identifier: Apache-2.0
// vgpud-exec --backend soft|cuda --vf NAME [--threads N] [--capability 7.5] [--vram BYTES --host-memory BYTES]
// [--most-threads N] [--cuda-library FILE] [--cuda-device ADDRESS] [--cuda-channel FD] [--cuda-rung RUNG]
// [--cuda-oversubscribe] [--tell-channels] [--preempt-every M]: serves one channel of one VF. --describe-gpu: only says
// what the GPU is.
// --test-rung RUNG: only tries that way to take kernels away, and says what was seen (gpu/cuda/self_test.h); with kill
// it says "running" and waits to be killed, with channels it beats until then (gpu/cuda/channels_trial.h), with program
// it is confined and in the jail (gpu/cuda/program_trial.h). Either says "ready" when the driver has started.
// --tell-channels: of what its driver makes (gpu/channels/channel_teller.h), by fds 7 and 8. --most-threads: of all
// processes of its user, where that is the VF's own. fd 3 is the link to vgpud-vf (base/exec_link.h). N threads run a
// kernel together. --capability: what the GPU can be programmed for (base/compute_capability.h). The bytes are what the
// VF may have, no limits without them. M: test mode, gpu/exec/preempt_drill.h. What it may do on the host:
// --confinement (base/jail/confine.h), then the jail.
#include <fmt/core.h>
#include <getopt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/compute_capability.h"
#include "base/exec_link.h"
#include "base/jail/confine.h"
#include "base/jail/jail.h"
#include "base/log.h"
#include "base/message.h"
#include "gpu/channels/channel_teller.h"
#include "gpu/cuda/channels_trial.h"
#include "gpu/cuda/cuda_backend.h"
#include "gpu/cuda/lost_gpu.h"
#include "gpu/cuda/program_trial.h"
#include "gpu/cuda/rung.h"
#include "gpu/cuda/self_test.h"
#include "gpu/exec/guard.h"
#include "gpu/exec/memory/heap.h"
#include "gpu/exec/server.h"
#include "gpu/exec/workers.h"
#include "gpu/gpu.h"

namespace vgpud::exec {
namespace {

constexpr uint32_t kMostThreads = 256;
// As many buffers as a channel has (vfio/channel/channel_table.h).
constexpr uint64_t kMostBufferFiles = 4096;

// Status of --check-confinement: all of it works; all but the watching of jails.
constexpr int kWatchable = 0;
constexpr int kNotWatchable = 20;
// The first to die when memory runs out: it costs one program of one guest.
constexpr int kOomScore = 500;

struct Options {
  std::string backend = "soft";
  std::string vf = "?";
  uint32_t threads = 1;
  const ComputeCapability* capability = &kDefaultCapability;
  uint64_t vram = 0;
  uint64_t host_memory = 0;
  uint64_t most_threads = 0;
  std::optional<uint64_t> preempt_every;
  Confinement confinement = Confinement::kNothing;
  std::optional<uid_t> user;
  bool check_confinement = false;
  bool describe_gpu = false;
  std::string test_rung;
  driver::Card::Choice card;
  int cuda_channel = -1;
  bool tell_channels = false;
};

// A GPU that is there for as long as the process.
struct OpenBackend {
  Server::MakeGpu make;
  std::function<void()> thread;  // it needs one of its own; empty: none
  std::function<std::string()> describe;
  std::function<Result<std::string>(const std::string& rung)> test_rung;
  bool foreign = false;            // somebody else's driver is in this process: a weaker jail, for all threads
  std::vector<std::string> files;  // that it needs at any time
};

Result<OpenBackend> OpenSoft(const Options& options, HostMemory& memory) {
  const auto make = [&memory, &options](uint64_t vram_bytes) {
    return MakeSoftGpu(vram_bytes, options.threads, &memory, *options.capability, KernelReach());
  };
  return OpenBackend{make,
                     {},
                     [] { return std::string(); },
                     [](const std::string&) {
                       return Fail(std::errc::invalid_argument, "--test-rung: the soft GPU is stopped anywhere");
                     },
                     false,
                     {}};
}

// The driver gives no GPU any more, which it did when vgpud started: the program hears what it says.
OpenBackend ServeLoss(const Options& options, driver::Status refused, const std::string& why) {
  LOG(kError, "{}", why);
  return OpenBackend{
      [refused, why](uint64_t) { return std::make_unique<driver::LostGpu>(static_cast<CuStatus>(refused), why); },
      {},
      {},
      {},
      options.cuda_channel < 0,
      {}};
}

Result<OpenBackend> OpenCuda(const Options& options, HostMemory&) {
  driver::Status refused = driver::kOk;
  driver::Card::Choice choice = options.card;
  choice.refused = &refused;
  if (options.cuda_channel < 0) PrepareForDriver(options.confinement, choice.library);
  auto opened = driver::CudaBackend::Open(choice, options.cuda_channel);
  const bool only_asked = options.describe_gpu || !options.test_rung.empty();
  if (!opened && refused != driver::kOk && !only_asked) return ServeLoss(options, refused, opened.error().context);
  const std::shared_ptr<driver::CudaBackend> backend = TRY(std::move(opened));
  return OpenBackend{[backend](uint64_t) { return backend->MakeGpu(); },
                     [backend] { backend->DrainPrinted(); },
                     [backend] { return driver::DescribeCard(backend->card()); },
                     [backend](const std::string& rung) -> Result<std::string> {
                       if (rung == driver::kProgramTrial) return driver::TryProgram(*backend);
                       if (rung == "channels")
                         return driver::BeatForTrial(backend->card(), [](const std::string& line) {
                           std::fputs((line + "\n").c_str(), stderr);
                         });
                       return driver::TestRung(*backend->MakeGpu(), rung, [] { std::fputs("running\n", stderr); });
                     },
                     options.cuda_channel < 0,
                     options.cuda_channel < 0 ? driver::DeviceFiles(backend->card()) : std::vector<std::string>{}};
}

constexpr struct {
  const char* name;
  Result<OpenBackend> (*open)(const Options& options, HostMemory& memory);
  bool on_host_memory;  // VRAM and kernels are memory and threads of this process
} kBackends[] = {{"soft", &OpenSoft, true}, {"cuda", &OpenCuda, false}};

Result<void> CheckConfinement(const Options& options) {
  TRY(EnterConfinement(options.confinement, options.user));
  const UniqueFd watch = TRY(EnterJail(JailKind::kExec, JailWatch::kAsk));
  ::_exit(watch ? kWatchable : kNotWatchable);
}

// The trial goes on as a guest's program does. Whoever has asked for it hears which calls the jail refuses.
Result<void> ConfineTrial(const Options& options, const OpenBackend& backend) {
  TRY(EnterConfinement(options.confinement, options.user, backend.files));
  const JailKind kind = backend.foreign ? JailKind::kExecDriver : JailKind::kExecWorkers;
  const UniqueFd watch =
      TRY(EnterJail(kind, backend.foreign ? JailWatch::kAsk : JailWatch::kNone, options.cuda_channel >= 0));
  if (!backend.foreign) return {};
  const int handed[] = {watch.get()};
  return SendMessage(exec_link::kRefusalsFd, std::as_bytes(std::span{"watch", 5}),
                     std::span(handed).first(watch ? 1 : 0));
}

Result<void> Main(const Options& options, HostMemory& memory) {
  if (options.check_confinement) return CheckConfinement(options);
  for (const auto& known : kBackends) {
    if (options.backend != known.name) continue;
    ExitOnSigbus();
    SetOomScore(kOomScore);
    // A driver's own memory and threads are none of the guest's; the VF's control group counts them all the same.
    const bool counted = memory.limited() && known.on_host_memory;
    const bool nested = options.cuda_channel >= 0;
    TRY(SetLimits(counted ? options.vram + options.host_memory : 0, options.threads, options.most_threads,
                  nested ? kMostBufferFiles : 0));
    OpenBackend backend = TRY(known.open(options, memory));
    if (options.describe_gpu || !options.test_rung.empty()) std::fputs("ready\n", stderr);
    if (options.test_rung == driver::kProgramTrial) TRY(ConfineTrial(options, backend));
    if (options.describe_gpu) {
      std::fputs(backend.describe().c_str(), stderr);
      return {};
    }
    if (!options.test_rung.empty()) {
      std::fputs((TRY(backend.test_rung(options.test_rung)) + "\n").c_str(), stderr);
      return {};
    }
    if (options.tell_channels) {
      const auto told = rm::TellChannels(UniqueFd{exec_link::kChannelBoardFd}, UniqueFd{exec_link::kChannelSocketFd});
      if (!told) LOG(kWarning, "vgpud is not told of the driver's channels: {}", told.error().context);
    }
    TRY(EnterConfinement(options.confinement, options.user, backend.files));
    auto drill = options.preempt_every ? std::make_unique<PreemptDrill>(*options.preempt_every) : nullptr;
    Server server(UniqueFd{exec_link::kExecLinkFd}, backend.make, memory, std::move(drill));
    const bool watched = TRY(server.AwaitAttach());
    // One that is nested passes its guest's files on, so it gets them.
    const JailWatch watching = watched && !backend.foreign && !nested ? JailWatch::kAsk : JailWatch::kNone;
    Workers workers = TRY(Workers::Start(backend.foreign ? std::nullopt : std::optional{watching},
                                         SchedulerCpu(server.grant_page()), nested));
    UniqueFd watch = TRY(EnterJail(backend.foreign ? JailKind::kExecDriver : JailKind::kExec, watching, nested));
    // Given away: whoever takes this process over must not answer its own questions.
    if (watched) TRY(server.TellWatched(std::move(watch), workers.TakeWatch()));
    if (!known.on_host_memory) server.ComputesElsewhere();
    if (nested) server.KeepFiles();
    if (options.card.oversubscribe) server.ShareCard();
    if (backend.thread) workers.Run(backend.thread);
    server.StartThreadsBy([&workers](std::function<void()> main) { workers.Run(std::move(main)); });
    server.Run();
  }
  return Fail(std::errc::invalid_argument,
              fmt::format("--backend {}: not built in; known: soft, cuda", options.backend));
}

}  // namespace
}  // namespace vgpud::exec

int main(int argc, char** argv) {
  using namespace vgpud;
  using namespace vgpud::exec;
  constexpr option kOptions[] = {
      {"backend", required_argument, nullptr, 'b'},       {"vf", required_argument, nullptr, 'v'},
      {"threads", required_argument, nullptr, 't'},       {"capability", required_argument, nullptr, 'c'},
      {"preempt-every", required_argument, nullptr, 'p'}, {"vram", required_argument, nullptr, 'm'},
      {"host-memory", required_argument, nullptr, 'h'},   {"confinement", required_argument, nullptr, 'f'},
      {"user", required_argument, nullptr, 'u'},          {"most-threads", required_argument, nullptr, 'n'},
      {"check-confinement", no_argument, nullptr, 'k'},   {"cuda-library", required_argument, nullptr, 'l'},
      {"cuda-device", required_argument, nullptr, 'd'},   {"cuda-channel", required_argument, nullptr, 'a'},
      {"describe-gpu", no_argument, nullptr, 'g'},        {"test-rung", required_argument, nullptr, 's'},
      {"cuda-rung", required_argument, nullptr, 'r'},     {"tell-channels", no_argument, nullptr, 'w'},
      {"cuda-oversubscribe", no_argument, nullptr, 'o'},  {nullptr, 0, nullptr, 0}};
  Options options;
  unsigned long threads = 1;
  bool understood = true;
  for (int c = 0; (c = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (c == 'b') options.backend = optarg;
    if (c == 'v') options.vf = optarg;
    if (c == 't') threads = std::strtoul(optarg, nullptr, 10);
    if (c == 'p') options.preempt_every = std::strtoull(optarg, nullptr, 10);
    if (c == 'm') options.vram = std::strtoull(optarg, nullptr, 10);
    if (c == 'n') options.most_threads = std::strtoull(optarg, nullptr, 10);
    if (c == 'h') options.host_memory = std::strtoull(optarg, nullptr, 10);
    if (c == 'u') options.user = static_cast<uid_t>(std::strtoul(optarg, nullptr, 10));
    if (c == 'k') options.check_confinement = true;
    if (c == 'g') options.describe_gpu = true;
    if (c == 's') options.test_rung = optarg;
    if (c == 'r') {
      const auto rung = driver::FindRung(optarg);
      understood = understood && rung.has_value();
      options.card.best_rung = rung.value_or(rewrite::Rung::kNone);
    }
    if (c == 'w') options.tell_channels = true;
    if (c == 'o') options.card.oversubscribe = true;
    if (c == 'l') options.card.library = optarg;
    if (c == 'd') options.card.address = optarg;
    if (c == 'a') options.cuda_channel = static_cast<int>(std::strtol(optarg, nullptr, 10));
    if (c == 'c') {
      const auto capability = FindComputeCapability(optarg);
      understood = understood && capability.has_value();
      options.capability = capability.value_or(&kDefaultCapability);
    }
    if (c == 'f') {
      const auto confinement = ParseConfinement(optarg);
      understood = understood && confinement.has_value();
      options.confinement = confinement.value_or(Confinement::kNothing);
    }
    understood = understood && c != '?' && threads != 0 && threads <= kMostThreads;
  }
  if (!understood) {
    std::fprintf(stderr,
                 "usage: vgpud-exec --backend soft|cuda --vf NAME [--threads 1..%u] [--capability %s]\n"
                 "                  [--vram BYTES --host-memory BYTES] [--most-threads N] [--preempt-every "
                 "INSTRUCTIONS] [--confinement KIND [--user UID]] "
                 "[--check-confinement]\n                  [--cuda-library FILE] [--cuda-device ADDRESS] "
                 "[--cuda-channel FD] [--cuda-rung gate|blocks|safepoints] [--cuda-oversubscribe] [--tell-channels] "
                 "[--describe-gpu] "
                 "[--test-rung gate|blocks|safepoints|channels|kill|program] (fd %d: link to vgpud-vf)\n",
                 kMostThreads, ListComputeCapabilities().c_str(), exec_link::kExecLinkFd);
    return 2;
  }
  options.threads = static_cast<uint32_t>(threads);
  SetLogName("vgpud-exec[" + options.vf + "]");
  // For ever: the heap is counted in it until the process has ended.
  auto* const memory = options.host_memory != 0 ? new HostMemory(options.host_memory) : new HostMemory;
  heap::CountIn(memory);
  const auto ended = Main(options, *memory);
  if (ended) return 0;
  LOG(kError, "{}", ended.error().context);
  return 1;
}
