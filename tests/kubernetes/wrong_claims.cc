// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "integrations/kubernetes/dra_v1.pb.h"
#include "tests/kubernetes/wrong_requests.h"

namespace vgpud::kubernetes {
namespace {

namespace v1 = k8s::io::kubelet::pkg::apis::dra::v1;

// No claim has any of these; some go as far as the API server, which has none of that name.
std::string Word(Random& random) {
  switch (Below(random, 10)) {
    case 0:
      return "";
    case 1:
      return "../../../api/v1/secrets";
    case 2:
      return std::string(Below(random, 5000), 'k');
    case 3:
      return fmt::format("team%2F..%2F{}\n\x1b[2J", Below(random, 10));
    case 4:
      return fmt::format("claim?watch={}#x", Below(random, 10));
    case 5:
      return "team";
    default:
      return fmt::format("{:x}-0000-4000-8000-{:012x}", random() & 0xffffffff, random() & 0xffffffffffff);
  }
}

std::string Message(Random& random) {
  if (Below(random, 4) == 0) return Bytes(random, 300);
  v1::NodePrepareResourcesRequest request;  // which is one to give back, too
  const uint64_t count = Below(random, 300) == 0 ? 2000 : Below(random, 4);
  for (uint64_t i = 0; i < count; ++i) {
    v1::Claim* const claim = request.add_claims();
    claim->set_uid(Word(random));
    claim->set_namespace_(Word(random));
    claim->set_name(Word(random));
    if (Below(random, 4) == 0) *request.add_claims() = *claim;
  }
  std::string text;
  request.SerializeToString(&text);
  return Damaged(random, std::move(text));
}

WrongRequest Make(Random& random) {
  constexpr const char* kMethods[] = {"NodePrepareResources", "NodePrepareResources", "NodeUnprepareResources",
                                      "NodeListResources"};
  return {.method = fmt::format("/k8s.io.kubelet.pkg.apis.dra.{}.DRAPlugin/{}",
                                Below(random, 3) == 0 ? "v1beta1" : "v1", kMethods[Below(random, std::size(kMethods))]),
          .bytes = Message(random)};
}

// Each claim of the answer has an error and no devices.
bool Gave(const std::string& method, const std::string& response) {
  v1::NodePrepareResourcesResponse answer;
  if (!method.ends_with("/NodePrepareResources")) return false;
  if (!answer.ParseFromString(response)) return true;
  for (const auto& [uid, claim] : answer.claims())
    if (claim.devices_size() != 0 || claim.error().empty()) return true;
  return false;
}

}  // namespace

const WrongAsker kToDraDriver{.make = &Make, .gave = &Gave};

}  // namespace vgpud::kubernetes
