// SPDX-License-Identifier: Apache-2.0
// vgpud-kubevirt: the hook that KubeVirt's sidecar calls as onDefineDomain (docs/kubernetes.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "integrations/kubevirt/domain.h"

int main(int argc, char** argv) {
  std::string vmi, domain;
  CLI::App app{
      "Puts the VFs of a virtual machine's pod into its domain: prints the domain that KubeVirt shall define."};
  app.set_version_flag("--version", VGPUD_VERSION);
  app.add_option("--vmi", vmi, "The VirtualMachineInstance, JSON")->required();
  app.add_option("--domain", domain, "Its domain, XML")->required();
  CLI11_PARSE(app, argc, argv);
  const auto done = vgpud::kubevirt::WithVfs(domain, vmi);
  if (!done) {
    fmt::print(stderr, "vgpud-kubevirt: {}\n", done.error().context);
    return 1;
  }
  fmt::print("{}\n", *done);
  return 0;
}
