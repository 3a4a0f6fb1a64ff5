// SPDX-License-Identifier: Apache-2.0
// vgpuctl topo
#include <fmt/core.h>

#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/print.h"
#include "tools/vgpuctl/rows.h"
#include "tools/vgpuctl/table.h"

namespace vgpud::tools {
namespace {

std::string Node(const CtlJson& object) { return Readable("numa_node", object.value("numa_node", CtlJson())); }

}  // namespace

int CmdTopo(const CtlArgs& args) {
  const auto answer = Ask(args, "GET", "/v1/topo");
  if (!answer) return answer.error();
  if (args.json) return PrintData(args.view, answer->raw);
  const auto list = [&](const char* key) { return answer->json.value(key, CtlJson::array()); };
  Table nodes{{"NODE", "PROCESSORS"}};
  for (const CtlJson& node : list("nodes"))
    nodes.Row({fmt::format("{}", Number(node, "node")), Text(node, "processors")});
  Table gpus{{"GPU", "KIND", "NODE", "PROCESSORS"}};
  for (const CtlJson& gpu : list("gpus"))
    gpus.Row({Text(gpu, "name"), Text(gpu, "kind"), Node(gpu), Text(gpu, "processors")});
  std::string text = nodes.Text() + "\n" + gpus.Text() + "\n";
  Table hardware{{"ADDRESS", "CLASS", "VENDOR", "DEVICE", "NODE", "NAME"}};
  for (const CtlJson& gpu : list("pci_gpus"))
    hardware.Row({Text(gpu, "address"), Text(gpu, "class"), Text(gpu, "vendor"), Text(gpu, "device"), Node(gpu),
                  Text(gpu, "name")});
  const std::string problem = Text(answer->json, "pci_problem");
  if (!problem.empty())
    text += fmt::format("the GPUs on the PCI bus are not known: {}\n", problem);
  else
    text += list("pci_gpus").empty() ? std::string("no GPU on the PCI bus of this host\n") : hardware.Text();
  return PrintRaw(text);
}

}  // namespace vgpud::tools
