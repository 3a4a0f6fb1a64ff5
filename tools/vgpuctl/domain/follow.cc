// SPDX-License-Identifier: Apache-2.0
// vgpuctl follow: tells vgpud which domain of libvirt has which VF, and frees the VFs of domains that ended without
// their hook. A program of its own, so that nothing in vgpud ever waits for libvirt (docs/adr/0009). Needs no more than
// to look at libvirt and to speak with vgpud; either may be gone and come back.
#include <fmt/core.h>

#include <map>
#include <optional>

#include "base/clock.h"
#include "tools/libvirt/ownership.h"
#include "tools/vgpuctl/ask.h"
#include "tools/vgpuctl/domain/domain_xml.h"
#include "tools/vgpuctl/domain/vf_access.h"
#include "tools/vgpuctl/http_client.h"
#include "vgpud/model/api.h"

namespace vgpud::tools {
namespace {

// Events come at once; this is for what happens without any, like a vgpud that is started anew.
constexpr std::chrono::milliseconds kLookAgain{2000};
// So long a domain has to have ended before its VF is taken: until then that is its hook's.
constexpr std::chrono::milliseconds kHooksTime{2000};

class Follower {
 public:
  explicit Follower(const CtlArgs& args)
      : args_(args), uri_(args.connect.empty() ? "qemu:///system" : args.connect), places_(PlacesOf(args)) {}

  // Looks once: what is known of VFs is what libvirt says now. Of domains that have ended only so long ago or longer.
  Result<void> Look(std::chrono::milliseconds ago) {
    if (libvirt_ && !libvirt_->IsAlive()) libvirt_.reset();
    if (!libvirt_) {
      libvirt_ = TRY(Libvirt::ConnectToWatch(uri_));
      Say(fmt::format("follows {}", uri_));
    }
    const auto vfs = TRY(ListVfs());
    const auto running = TRY(ListRunning());
    std::map<std::string, TimePoint> ended;
    Result<void> told;  // vgpud refuses one: the others are told all the same
    for (const OwnershipStep& step : PlanOwnership(vfs, running)) {
      if (step.kind != OwnershipStep::Kind::kGive) {
        const auto before = ended_.find(step.vf_uuid + step.domain.uuid);
        const TimePoint since = before != ended_.end() ? before->second : Now();
        ended.emplace(step.vf_uuid + step.domain.uuid, since);
        if (Now() - since < ago) continue;
      }
      if (auto done = Do(step); !done && told) told = std::move(done);
    }
    ended_ = std::move(ended);
    return told;
  }

  // Says what keeps it from looking, once.
  int Run() {
    for (;;) {
      const auto looked = Look(kHooksTime);
      const std::string problem = looked ? "" : looked.error().context;
      if (problem != problem_ && !problem.empty()) Say(problem + "; tries again");
      if (problem.empty() && !problem_.empty()) Say("all is well again");
      problem_ = problem;
      Libvirt::AwaitChange(kLookAgain);
    }
  }

 private:
  static void Say(const std::string& text) { fmt::print(stderr, "vgpuctl follow: {}\n", text); }

  Result<CtlJson> Request(const char* method, const std::string& path, const CtlJson& body = {}) const {
    const auto reply = TRY(HttpRequest(control::ControlSocketPath(places_.runtime_dir), method, path,
                                       body.is_null() ? "" : body.dump(), args_.timeout));
    CtlJson json = CtlJson::parse(reply.body, nullptr, false);
    if (reply.ok() && json.is_object()) return json;
    return Fail(std::errc::protocol_error,
                fmt::format("vgpud answers {} {} with {}: {}", method, path, reply.status, reply.Error()));
  }

  Result<std::vector<VfState>> ListVfs() const {
    const CtlJson answer = TRY(Request("GET", "/v1/vfs"));
    std::vector<VfState> vfs;
    for (const CtlJson& vf : answer.value("vfs", CtlJson::array()))
      vfs.push_back({Text(vf, "name"),
                     Text(vf, "uuid"),
                     {Text(vf, "domain"), Text(vf, "domain_uuid")},
                     vf.value("ends_with_domain", false),
                     vf.value("client_connected", false)});
    return vfs;
  }

  Result<std::vector<RunningDomain>> ListRunning() const {
    std::vector<RunningDomain> running;
    for (const std::string& text : TRY(libvirt_->RunningXml())) {
      const auto xml = ParseXml(text, "a domain");
      if (xml) running.push_back({IdOf(xml->root), VfsOf(xml->root, places_)});
    }
    return running;
  }

  Result<void> Do(const OwnershipStep& step) const {
    const std::string path = "/v1/vfs/" + step.vf;
    switch (step.kind) {
      case OwnershipStep::Kind::kGive:
        TRY(Request("POST", path + "/domain", {{"domain", step.domain.name}, {"domain_uuid", step.domain.uuid}}));
        Say(fmt::format("VF {} is that of domain {}", step.vf, step.domain.name));
        break;
      case OwnershipStep::Kind::kTake:
        Say(fmt::format("VF {} is nobody's any more: domain {} has ended", step.vf, step.domain.name));
        TRY(Request("DELETE", path + "/domain"));
        break;
      case OwnershipStep::Kind::kDestroy:
        Say(fmt::format("VF {} is freed: its domain {} has ended", step.vf, step.domain.name));
        TRY(Request("DELETE", path + "?uuid=" + step.vf_uuid));
        break;
    }
    return {};
  }

  const CtlArgs& args_;
  const std::string uri_;
  const Places places_;
  std::optional<Libvirt> libvirt_;
  std::map<std::string, TimePoint> ended_;  // VF and domain: since when it is known
  std::string problem_;
};

}  // namespace

int CmdFollow(const CtlArgs& args) {
  Libvirt::UseEvents();
  Follower follower(args);
  if (!args.once) return follower.Run();
  const auto looked = follower.Look({});
  return looked ? kExitOk : Explain("", looked.error());
}

}  // namespace vgpud::tools
