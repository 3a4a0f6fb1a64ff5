// SPDX-License-Identifier: Apache-2.0
// vgpud-exec: serves one channel of one VF. Its options: base/exec_link.h. fd 3 is the link to vgpud-vf
// (base/exec_link.h).
#include <fmt/core.h>
#include <getopt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
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
#include "gpu/exec/drill/drill_gpu.h"
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
  uint64_t most_vram = 0;
  uint64_t most_memory = 0;
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
    return MakeSoftGpu({vram_bytes, options.most_vram}, options.threads, &memory, *options.capability, KernelReach());
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
    const uint64_t quotas = counted ? options.vram + options.host_memory : 0;
    TRY(SetLimits({quotas, options.most_memory}, options.threads, options.most_threads, nested ? kMostBufferFiles : 0));
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
    std::optional<PreemptDrill> drill;
    if (options.preempt_every) {
      drill.emplace(*options.preempt_every);
      backend.make = [make = backend.make, &drill](uint64_t vram_bytes) {
        return std::make_unique<DrillGpu>(make(vram_bytes), *drill);
      };
    }
    Server server(UniqueFd{exec_link::kExecLinkFd}, backend.make, memory);
    if (drill) server.AtEnd([&drill] { LOG(kInfo, "{}", drill->Report()); });
    const bool watched = TRY(server.AwaitAttach());
    // One that is nested passes its guest's files on, so it gets them.
    const JailWatch watching = watched && !backend.foreign && !nested ? JailWatch::kAsk : JailWatch::kNone;
    Workers workers = TRY(Workers::Start(backend.foreign ? std::nullopt : std::optional{watching},
                                         SchedulerCpu(server.grant_page()), nested));
    UniqueFd watch = TRY(EnterJail(backend.foreign ? JailKind::kExecDriver : JailKind::kExec, watching, nested));
    // Given away: whoever takes this process over must not answer its own questions.
    if (watched) TRY(server.TellWatched(std::move(watch), workers.TakeWatch()));
    if (!known.on_host_memory) server.ComputesElsewhere();
    if (counted)
      server.OnQuotas([quotas](uint64_t bytes) { return RaiseMemoryLimit(bytes - std::min(bytes, quotas)); });
    if (nested) server.KeepFiles();
    if (options.card.oversubscribe) server.ShareCard();
    if (backend.thread) workers.Run(backend.thread);
    server.StartThreadsBy([&workers](std::function<void()> main) { workers.Run(std::move(main)); });
    server.Run();
  }
  return Fail(std::errc::invalid_argument,
              fmt::format("--backend {}: not built in; known: soft, cuda", options.backend));
}

// Reads the value of an option; false: it can't be.
using Read = bool (*)(Options& options, const char* value);

template <auto Member>
bool ReadText(Options& options, const char* value) {
  options.*Member = value;
  return true;
}
template <auto Member>
bool ReadNumber(Options& options, const char* value) {
  options.*Member = std::strtoull(value, nullptr, 10);
  return true;
}
template <auto Member>
bool ReadFlag(Options& options, const char*) {
  options.*Member = true;
  return true;
}
template <auto Member>
bool ReadCardText(Options& options, const char* value) {
  options.card.*Member = value;
  return true;
}

bool ReadThreads(Options& options, const char* value) {
  const unsigned long threads = std::strtoul(value, nullptr, 10);
  options.threads = static_cast<uint32_t>(std::min<unsigned long>(threads, kMostThreads));
  return threads != 0 && threads <= kMostThreads;
}

bool ReadCapability(Options& options, const char* value) {
  const auto capability = FindComputeCapability(value);
  options.capability = capability.value_or(&kDefaultCapability);
  return capability.has_value();
}

bool ReadConfinement(Options& options, const char* value) {
  const auto confinement = ParseConfinement(value);
  options.confinement = confinement.value_or(Confinement::kNothing);
  return confinement.has_value();
}

bool ReadUser(Options& options, const char* value) {
  options.user = static_cast<uid_t>(std::strtoul(value, nullptr, 10));
  return true;
}

bool ReadChannel(Options& options, const char* value) {
  options.cuda_channel = static_cast<int>(std::strtol(value, nullptr, 10));
  return true;
}

bool ReadRung(Options& options, const char* value) {
  const auto rung = driver::FindRung(value);
  options.card.best_rung = rung.value_or(rewrite::Rung::kNone);
  return rung.has_value();
}

bool ReadOversubscribe(Options& options, const char*) {
  options.card.oversubscribe = true;
  return true;
}

// In the order of kExecOptions.
constexpr std::pair<ExecOption, Read> kReaders[] = {
    {ExecOption::kBackend, &ReadText<&Options::backend>},
    {ExecOption::kVf, &ReadText<&Options::vf>},
    {ExecOption::kThreads, &ReadThreads},
    {ExecOption::kCapability, &ReadCapability},
    {ExecOption::kVram, &ReadNumber<&Options::vram>},
    {ExecOption::kHostMemory, &ReadNumber<&Options::host_memory>},
    {ExecOption::kMostVram, &ReadNumber<&Options::most_vram>},
    {ExecOption::kMostMemory, &ReadNumber<&Options::most_memory>},
    {ExecOption::kMostThreads, &ReadNumber<&Options::most_threads>},
    {ExecOption::kConfinement, &ReadConfinement},
    {ExecOption::kUser, &ReadUser},
    {ExecOption::kCheckConfinement, &ReadFlag<&Options::check_confinement>},
    {ExecOption::kCudaLibrary, &ReadCardText<&driver::Card::Choice::library>},
    {ExecOption::kCudaDevice, &ReadCardText<&driver::Card::Choice::address>},
    {ExecOption::kCudaChannel, &ReadChannel},
    {ExecOption::kCudaRung, &ReadRung},
    {ExecOption::kCudaOversubscribe, &ReadOversubscribe},
    {ExecOption::kTellChannels, &ReadFlag<&Options::tell_channels>},
    {ExecOption::kDescribeGpu, &ReadFlag<&Options::describe_gpu>},
    {ExecOption::kTestRung, &ReadText<&Options::test_rung>},
    {ExecOption::kPreemptEvery, &ReadNumber<&Options::preempt_every>},
};
constexpr bool ReadsAll() {
  for (size_t i = 0; i < std::size(kReaders); ++i)
    if (kReaders[i].first != kExecOptions[i].option) return false;
  return std::size(kReaders) == std::size(kExecOptions);
}
static_assert(ReadsAll());

// nullopt: one of them was not understood.
std::optional<Options> ReadOptions(int argc, char** argv) {
  std::vector<option> longs;
  for (const ExecOptionRow& row : kExecOptions)
    longs.push_back(
        {row.name, row.value != nullptr ? required_argument : no_argument, nullptr, static_cast<int>(row.option)});
  longs.push_back({});
  Options options;
  bool understood = true;
  for (int c = 0; (c = getopt_long(argc, argv, "", longs.data(), nullptr)) != -1;)
    understood = c != '?' && kReaders[c].second(options, optarg) && understood;
  return understood ? std::optional(options) : std::nullopt;
}

std::string Usage() {
  std::string text = "usage: vgpud-exec";
  size_t line = 0;
  for (const ExecOptionRow& row : kExecOptions) {
    const std::string word =
        row.value != nullptr ? fmt::format(" [--{} {}]", row.name, row.value) : fmt::format(" [--{}]", row.name);
    if (text.size() - line + word.size() > 100) {
      line = text.size();
      text += "\n                 ";
    }
    text += word;
  }
  return text + fmt::format("\nCAPABILITY: {}; --threads: at most {}; fd {}: link to vgpud-vf\n",
                            ListComputeCapabilities(), kMostThreads, exec_link::kExecLinkFd);
}

}  // namespace
}  // namespace vgpud::exec

int main(int argc, char** argv) {
  using namespace vgpud;
  using namespace vgpud::exec;
  const std::optional<Options> options = ReadOptions(argc, argv);
  if (!options) {
    std::fputs(Usage().c_str(), stderr);
    return 2;
  }
  SetLogName("vgpud-exec[" + options->vf + "]");
  // For ever: the heap is counted in it until the process has ended.
  auto* const memory = options->host_memory != 0 ? new HostMemory(options->host_memory) : new HostMemory;
  heap::CountIn(memory);
  const auto ended = Main(*options, *memory);
  if (ended) return 0;
  LOG(kError, "{}", ended.error().context);
  return 1;
}
