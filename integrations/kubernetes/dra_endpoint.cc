// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/dra_endpoint.h"

#include <fmt/format.h>

#include "base/log.h"

namespace vgpud::kubernetes {
namespace {

constexpr int kMostThreads = 24;

}  // namespace

DraEndpoint::DraEndpoint(const std::string& plugins_dir, const std::string& registry_dir, ClaimDriver* driver,
                         const std::string& node)
    : v1_(driver, node),
      v1beta1_(driver, node),
      registration_(plugins_dir + "/dra.sock"),
      plugin_(plugins_dir + "/dra.sock", {&v1_, &v1beta1_}, kMostThreads),
      registry_(fmt::format("{}/{}-reg.sock", registry_dir, kDriver), {&registration_}, kMostThreads) {}

DraEndpoint::~DraEndpoint() {
  registry_.End();  // first: nobody is led to the other any more
  plugin_.End();
}

void DraEndpoint::Keep() {
  auto done = plugin_.Keep();
  // kubelet looks at a socket when it appears: one that leads to a new one must be new itself.
  if (done.value_or(false)) registry_.End();
  if (done) done = registry_.Keep();
  const std::string problem = done ? "" : done.error().context;
  if (problem != problem_ && !problem.empty()) LOG(kWarning, "{}: {}", kDriver, problem);
  problem_ = problem;
}

}  // namespace vgpud::kubernetes
