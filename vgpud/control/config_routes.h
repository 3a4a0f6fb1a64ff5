// SPDX-License-Identifier: Apache-2.0
// The requests about the configuration: GET /v1/config, GET /v1/config/diff, POST /v1/config/reload (?dry_run=1).
#pragma once

#include <string>

#include "vgpud/control/control.h"
#include "vgpud/live/configuration.h"

namespace vgpud::daemon {

// Answers, now or later, if it is one of them.
bool AnswerConfig(Configuration& configuration, const std::string& method, const std::string& path,
                  const std::string& query, const Control::ExchangePtr& exchange);

}  // namespace vgpud::daemon
