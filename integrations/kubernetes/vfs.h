// SPDX-License-Identifier: Apache-2.0
// The VFs of the plugin in vgpud: makes what the configuration wants and is not there, ends what it does not want any
// more, and says how each of them is.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "integrations/kubernetes/claim.h"
#include "integrations/kubernetes/config.h"

namespace vgpud::kubernetes {

struct OfferedVf {
  std::string name;
  std::string channel_socket;  // empty while there is none
  std::string vfio_user_socket;
  std::string gpu;
  std::optional<int> numa_node;
  std::string profile;
  std::string problem;  // why it can't be used; empty: it can
  bool operator==(const OfferedVf&) const = default;
};

// By Resource::name.
using Offer = std::map<std::string, std::vector<OfferedVf>>;

// A VF that somebody has: it is not ended, and made again just so.
struct HeldVf {
  std::string profile;
  VfSettings settings;
  bool operator==(const HeldVf&) const = default;
};
// By name of the VF.
using Held = std::map<std::string, HeldVf>;

// The VF's sockets may be opened by `user` and root only; nothing: who may is left as it is.
[[nodiscard]] Result<void> GiveSockets(const OfferedVf& vf, std::optional<int> user);

class Vfs {
 public:
  // `runtime_dir`: vgpud's.
  explicit Vfs(const std::string& runtime_dir);

  // Never fails as a whole: while vgpud can't be asked, all VFs have that problem. Says in the log what it makes and
  // ends, and problems that are new. VFs that programs still use are not ended, but are not offered any more.
  Offer Reconcile(const Config& config, const Held& held = {});
  [[nodiscard]] Result<void> Make(const std::string& vf, const std::string& profile, const VfSettings& settings,
                                  const std::string& tenant);
  // One that is not there is fine.
  [[nodiscard]] Result<void> End(const std::string& vf);
  [[nodiscard]] Result<bool> IsThere(const std::string& vf);
  // As it is in vgpud; it has a problem when it is not there or does not work.
  [[nodiscard]] Result<OfferedVf> Find(const std::string& vf);
  // Back to how it was made, whoever used it before.
  [[nodiscard]] Result<void> Reset(const std::string& vf);
  // The answer of vgpud to the last Reconcile: all of its VFs, also those of others (GET /v1/vfs). Empty: none yet.
  const std::string& all() const { return all_; }

 private:
  struct Seen;
  [[nodiscard]] Result<std::string> Ask(const std::string& method, const std::string& path, const std::string& body);
  [[nodiscard]] Result<Seen> Look();
  static OfferedVf Describe(const std::string& name, const Seen& seen);
  void EndOthers(const Config& config, const Held& held, const Seen& seen);
  // What is not there; returns why it failed, by VF.
  std::map<std::string, std::string> MakeMissing(const Config& config, const Held& held, const Seen& seen);
  void Report(const OfferedVf& vf);

  const std::string socket_;
  std::string all_;
  std::map<std::string, std::string> problems_;  // that the log knows of, by VF
};

}  // namespace vgpud::kubernetes
