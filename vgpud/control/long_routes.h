// SPDX-License-Identifier: Apache-2.0
// Requests that take a share beyond that of a request: answers that go out in pieces, and new processes of VFs, which
// may wait for room.
#pragma once

#include "vgpud/control/request.h"

namespace vgpud::daemon {

// GET /v1/report?from=DAY&to=DAY; without them today, with one of them that day alone.
void ReadReport(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);
// GET /v1/trace?last_us=NUMBER&gpu=NAME
void ReadTrace(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);
// POST /v1/vfs. ?queue=1: it waits for room. ?dry_run=1&queue=1: could there ever be room?
void CreateVf(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);
// POST /v1/vfs/NAME/reset. Its processes are started anew, as those of a new VF.
void ResetVf(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);

}  // namespace vgpud::daemon
