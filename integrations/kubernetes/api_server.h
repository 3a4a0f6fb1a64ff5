// SPDX-License-Identifier: Apache-2.0
// The API server of the cluster: JSON over HTTPS, by libcurl.
#pragma once

#include <string>

#include "base/result.h"

namespace vgpud::kubernetes {

class ApiServer {
 public:
  struct Place {
    std::string url;         // "https://10.0.0.1:443"; http only for an address of this machine. Empty: none is asked
    std::string token_file;  // read again for each question, as it is replaced from time to time; empty: no token
    std::string ca_file;     // empty: those that this machine trusts
  };
  // As Kubernetes tells the programs of a pod; without url outside of one.
  static Place OfPod();

  // invalid_argument when the token would go over a network that everybody can read.
  [[nodiscard]] static Result<ApiServer> At(Place place);

  // The body of the answer, at most 64 MiB, within 5 s. Errors say what the server said.
  [[nodiscard]] Result<std::string> Get(const std::string& path) const;
  // `body`: a JSON merge patch (RFC 7396).
  [[nodiscard]] Result<void> Patch(const std::string& path, const std::string& body) const;
  // POST, PUT or DELETE, with a whole object or without.
  [[nodiscard]] Result<void> Change(const std::string& method, const std::string& path, const std::string& body) const;

 private:
  explicit ApiServer(Place place) : place_(std::move(place)) {}
  struct Body {
    const char* type;
    const std::string& text;
  };
  [[nodiscard]] Result<std::string> Ask(const std::string& method, const std::string& path, const Body* body) const;

  Place place_;
};

}  // namespace vgpud::kubernetes
