// SPDX-License-Identifier: Apache-2.0
// Requests whose answers may be long: they go out in pieces.
#pragma once

#include "vgpud/control/request.h"

namespace vgpud::daemon {

// GET /v1/report?from=DAY&to=DAY; without them today, with one of them that day alone.
void ReadReport(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);
// GET /v1/trace?last_us=NUMBER&gpu=NAME
void ReadTrace(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);

}  // namespace vgpud::daemon
