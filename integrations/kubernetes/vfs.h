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
#include "integrations/kubernetes/config.h"

namespace vgpud::kubernetes {

struct OfferedVf {
  std::string name;
  std::string channel_socket;  // empty while there is none
  std::string vfio_user_socket;
  std::string gpu;
  std::optional<int> numa_node;
  std::string problem;  // why it can't be used; empty: it can
};

// By Resource::name.
using Offer = std::map<std::string, std::vector<OfferedVf>>;

class Vfs {
 public:
  // `runtime_dir`: vgpud's.
  explicit Vfs(const std::string& runtime_dir);

  // Never fails as a whole: while vgpud can't be asked, all VFs have that problem. Says in the log what it makes and
  // ends, and problems that are new. VFs that programs still use are not ended, but are not offered any more.
  Offer Reconcile(const Config& config);
  // Back to how it was made, whoever used it before.
  [[nodiscard]] Result<void> Reset(const std::string& vf);
  // The answer of vgpud to the last Reconcile: all of its VFs, also those of others (GET /v1/vfs). Empty: none yet.
  const std::string& all() const { return all_; }

 private:
  struct Seen;
  [[nodiscard]] Result<std::string> Ask(const std::string& method, const std::string& path, const std::string& body);
  [[nodiscard]] Result<Seen> Look();
  [[nodiscard]] Result<void> Make(const Resource& resource, const std::string& vf);
  OfferedVf Describe(const Resource& resource, const std::string& name, const Seen& seen);
  void EndOthers(const Config& config, const Seen& seen);
  void Report(const OfferedVf& vf);

  const std::string socket_;
  std::string all_;
  std::map<std::string, std::string> problems_;  // that the log knows of, by VF
};

}  // namespace vgpud::kubernetes
