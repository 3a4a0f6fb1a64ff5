// SPDX-License-Identifier: Apache-2.0
// What the DRA driver does with a claim: makes its VFs as the claim says, describes them as devices of containers, and
// ends them. It can be asked twice, and be killed in between: a file for each claim says what there is. Any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "integrations/kubernetes/api_server.h"
#include "integrations/kubernetes/claim.h"
#include "integrations/kubernetes/prepared_claims.h"
#include "integrations/kubernetes/vfs.h"

namespace vgpud::kubernetes {

// Of devices of containers (CDI): all VFs of a claim's request together.
inline constexpr const char* kClaimCdiKind = "vgpud.dev/claim";

class ClaimDriver {
 public:
  struct Options {
    std::string node;         // which is the name of its pool, too
    std::string runtime_dir;  // vgpud's
    std::string claims_dir;   // for PreparedClaims
    std::string cdi_file;     // where devices are described
    std::string library;      // libcuda.so.1 of vgpud on the host
  };
  [[nodiscard]] static Result<std::unique_ptr<ClaimDriver>> Open(Options options, ApiServer server);

  // As Vfs::Reconcile, and no claim gets or gives back VFs meanwhile. What claims have stays as it is.
  Offer Reconcile(const Config& config, Vfs* vfs);

  struct Given {
    std::string request;
    std::string device;
    std::vector<std::string> cdi;  // of a request's first device all of its VFs; of the others nothing
  };
  // The claim has its VFs when it returns, each as it was just made; one that had them before has them as they are.
  // Errors are in words for the user; nothing is changed then.
  [[nodiscard]] Result<std::vector<Given>> Prepare(const ClaimId& id);
  // The claim has no VFs; one that had none is fine. Errors: vgpud could not be asked.
  [[nodiscard]] Result<void> Unprepare(const ClaimId& id);

 private:
  ClaimDriver(Options options, ApiServer server, std::unique_ptr<PreparedClaims> claims);
  [[nodiscard]] Result<PreparedClaim> Plan(const ClaimId& id, const std::vector<AllocatedVf>& vfs,
                                           const std::string& profiles) const;
  const Resource* ResourceOf(const std::string& vf) const;
  [[nodiscard]] Result<void> Make(PreparedClaim claim);
  [[nodiscard]] Result<void> MakeVf(PreparedVf* vf);
  [[nodiscard]] Result<std::vector<Given>> Deliver(const ClaimId& id);
  [[nodiscard]] Result<void> WriteCdi();

  const Options options_;
  const ApiServer server_;
  const std::string vgpud_;
  std::mutex mutex_;
  Vfs vfs_;
  Config config_;
  const std::unique_ptr<PreparedClaims> claims_;
  bool cdi_written_ = false;  // by this process
};

}  // namespace vgpud::kubernetes
