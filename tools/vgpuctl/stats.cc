// vgpuctl stats
#include <fmt/core.h>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/table.h"
#include "tools/vgpuctl/units.h"

namespace vgpud {

int CmdStats(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", args.name.empty() ? "/v1/stats" : "/v1/stats?vf=" + args.name);
  if (!answer) return answer.error();
  if (args.json) return PrintRaw(answer->raw);
  const CtlJson vfs = answer->json.value("vfs", CtlJson::array());
  double received = 0, entitled = 0;
  for (const CtlJson& vf : vfs) {
    received += static_cast<double>(Number(vf, "received_ns"));
    entitled += static_cast<double>(Number(vf, "entitled_ns"));
  }
  const auto share = [](uint64_t part, double whole) {
    return whole > 0 ? fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / whole) : "-";
  };
  Table table{{"NAME", "WEIGHT", "SLICE", "ENTITLED", "RECEIVED", "TIME", "WAITED", "SLICES", "FORCED", "WORST-OVERRUN",
               "DEBT", "KERNELS"}};
  for (const CtlJson& vf : vfs)
    table.Row({Text(vf, "name"), fmt::format("{}", Number(vf, "weight")), FormatMicroseconds(Number(vf, "slice_us")),
               share(Number(vf, "entitled_ns"), entitled), share(Number(vf, "received_ns"), received),
               FormatNanoseconds(Number(vf, "received_ns")), FormatNanoseconds(Number(vf, "waited_ns")),
               fmt::format("{}", Number(vf, "slices")), fmt::format("{}", Number(vf, "forced_preemptions")),
               FormatNanoseconds(Number(vf, "worst_overrun_ns")), FormatNanoseconds(Number(vf, "debt_ns")),
               fmt::format("{}", Number(vf, "kernels"))});
  return PrintRaw(table.Text());
}

}  // namespace vgpud
