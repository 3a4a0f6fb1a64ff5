// SPDX-License-Identifier: Apache-2.0
// Requests that take a share beyond that of a request: answers that go out in pieces, or when something has
// come to pass, and new processes of VFs, which may wait for room.
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

// What happened: GET /v1/events?vf=NAME&after=NUMBER&follow=1. Followers get each record as it comes, one JSON object
// in a line, and {"missed": NUMBER} where some were pushed out before the client took them; an empty line now and then
// shows that vgpud lives.
void ReadEvents(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);
// The same of lines that the VF's processes logged, also of a VF that is gone, as long as its lines are kept:
// GET /v1/vfs/NAME/log?after=NUMBER&follow=1
void ReadLog(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);
// GET /v1/vfs/NAME/wait?for=ready|idle|gone&timeout_ms=NUMBER. Answers when it is so: with the VF, or with its name
// alone when it is gone. An error: it will not be so without an act of somebody, or it was not within the time.
void WaitForVf(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);

}  // namespace vgpud::daemon
