// SPDX-License-Identifier: Apache-2.0
// A request of the control API, as those who answer it find it.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "vgpud/control/control.h"
#include "vgpud/control/json.h"
#include "vgpud/registry/changes.h"
#include "vgpud/tenants/users.h"

namespace vgpud::daemon {

// Everything a handler needs: decoded path parts and body.
struct Request {
  std::string name;                          // NAME of /v1/vfs/NAME or /v1/gpus/NAME
  std::map<std::string, std::string> query;  // ?KEY=VALUE&...
  std::string body;
  int client = -1;                                               // its connected socket
  uid_t user = 0;                                                // whose request it is
  Rights rights;                                                 // of the client
  std::function<Rights()> rights_now = [] { return Rights{}; };  // the same, after a reload
  std::string Parameter(const char* key) const {
    const auto it = query.find(key);
    return it != query.end() ? it->second : "";
  }
  bool Is(const char* key) const { return Parameter(key) == "1"; }
  bool dry_run() const { return Is("dry_run"); }  // only say what would change
  std::string by() const { return Sharer::User(user).name; }
  Changes::Order order() const { return {by(), dry_run()}; }
};

inline void AnswerError(const Control::ExchangePtr& exchange, const ApiError& error) {
  exchange->Answer(HttpStatus(error.kind), ToJson(error));
}

inline void AnswerChange(const Control::ExchangePtr& exchange, const ApiResult<ChangeReport>& change) {
  change ? exchange->Answer(200, ToJson(*change)) : AnswerError(exchange, change.error());
}

}  // namespace vgpud::daemon
