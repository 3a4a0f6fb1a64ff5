// vgpud-exec --backend soft --vf NAME [--threads N] [--preempt-every M]: serves one channel of one VF. fd 3 is the link
// to vgpud-vf (base/exec_link.h). N threads run a kernel together. M: test mode, gpu/exec/preempt_drill.h.
#include <fmt/core.h>
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "base/exec_link.h"
#include "base/jail.h"
#include "base/log.h"
#include "gpu/exec/guard.h"
#include "gpu/exec/server.h"
#include "gpu/gpu.h"

namespace vgpud {
namespace {

constexpr struct {
  const char* name;
  std::unique_ptr<Gpu> (*make)(uint64_t vram_bytes, uint32_t threads);
} kBackends[] = {{"soft", &MakeSoftGpu}};

constexpr uint32_t kMostThreads = 256;

Result<void> Main(const std::string& backend, uint32_t threads, std::optional<uint64_t> preempt_every) {
  for (const auto& known : kBackends) {
    if (backend != known.name) continue;
    ExitOnSigbus();
    TRY(SetLimits());
    TRY(EnterJail(JailKind::kExec));
    const auto make = [&known, threads](uint64_t vram_bytes) { return known.make(vram_bytes, threads); };
    auto drill = preempt_every ? std::make_unique<PreemptDrill>(*preempt_every) : nullptr;
    return tl::unexpected(Server(UniqueFd{exec_link::kExecLinkFd}, make, std::move(drill)).Run());
  }
  return Fail(std::errc::invalid_argument, fmt::format("--backend {}: not built in; known: soft", backend));
}

}  // namespace
}  // namespace vgpud

int main(int argc, char** argv) {
  constexpr option kOptions[] = {{"backend", required_argument, nullptr, 'b'},
                                 {"vf", required_argument, nullptr, 'v'},
                                 {"threads", required_argument, nullptr, 't'},
                                 {"preempt-every", required_argument, nullptr, 'p'},
                                 {nullptr, 0, nullptr, 0}};
  std::string backend = "soft";
  std::string vf = "?";
  unsigned long threads = 1;
  std::optional<uint64_t> preempt_every;
  for (int c = 0; (c = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (c == 'b') backend = optarg;
    if (c == 'v') vf = optarg;
    if (c == 't') threads = std::strtoul(optarg, nullptr, 10);
    if (c == 'p') preempt_every = std::strtoull(optarg, nullptr, 10);
    if (c == '?' || threads == 0 || threads > vgpud::kMostThreads) {
      std::fprintf(
          stderr,
          "usage: vgpud-exec --backend soft --vf NAME [--threads 1..%u] [--preempt-every INSTRUCTIONS] (fd %d: "
          "link to vgpud-vf)\n",
          vgpud::kMostThreads, vgpud::exec_link::kExecLinkFd);
      return 2;
    }
  }
  vgpud::SetLogName("vgpud-exec[" + vf + "]");
  const auto ended = vgpud::Main(backend, static_cast<uint32_t>(threads), preempt_every);
  LOG(kError, "{}", ended.error().context);
  return 1;
}
