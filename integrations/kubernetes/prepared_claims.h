// SPDX-License-Identifier: Apache-2.0
// Which claims have which VFs, in a file for each: whoever comes after this process knows it. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "integrations/kubernetes/claim.h"
#include "integrations/kubernetes/vfs.h"
#include "vgpud/state/state_files.h"

namespace vgpud::kubernetes {

struct PreparedVf {
  std::string request;
  std::string name;
  HeldVf held;
  std::string channel_socket;  // once it is made
  bool operator==(const PreparedVf&) const = default;
};

struct PreparedClaim {
  ClaimId id;
  std::vector<PreparedVf> vfs;
  bool made = false;  // all of them; else this process, or one before, was interrupted
  bool operator==(const PreparedClaim&) const = default;
};

// What stands in its file, and back. Errors: invalid_argument.
[[nodiscard]] std::string ToText(const PreparedClaim& claim);
[[nodiscard]] Result<PreparedClaim> ParsePreparedClaim(const std::string& text);

class PreparedClaims {
 public:
  // `directory`: for these files and this process alone; it is made if it is not there. A file that is damaged is said
  // in the log and left out. Errors: those of StateFiles::Open.
  [[nodiscard]] static Result<std::unique_ptr<PreparedClaims>> Open(const std::string& directory);

  // By UID; null: there is none. Good until the next Put or Remove.
  const PreparedClaim* Find(const std::string& uid) const;
  // The claim that has this VF.
  const PreparedClaim* HolderOf(const std::string& vf) const;
  const std::map<std::string, PreparedClaim>& all() const { return claims_; }
  Held held() const;

  // On the disk when it returns.
  [[nodiscard]] Result<void> Put(PreparedClaim claim);
  [[nodiscard]] Result<void> Remove(const std::string& uid);

 private:
  explicit PreparedClaims(std::unique_ptr<daemon::StateFiles> files) : files_(std::move(files)) {}

  const std::unique_ptr<daemon::StateFiles> files_;
  std::map<std::string, PreparedClaim> claims_;  // by UID
};

}  // namespace vgpud::kubernetes
