// SPDX-License-Identifier: Apache-2.0
// The requests of the control API that start processes of VFs, and whose share of new VFs each takes.
#pragma once

#include "vgpud/control/request.h"

namespace vgpud::daemon {

// POST /v1/vfs. ?queue=1: it waits for room. ?dry_run=1&queue=1: could there ever be room?
void CreateVf(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);
// POST /v1/vfs/NAME/reset. Its processes are started anew, as those of a new VF.
void ResetVf(const Control::Served& served, const Request& request, const Control::ExchangePtr& exchange);

}  // namespace vgpud::daemon
