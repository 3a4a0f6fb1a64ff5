// SPDX-License-Identifier: Apache-2.0
// Reads the list of pods of Alibaba's cluster-trace-gpu-v2023, a CSV file (docs/fleet-simulation.md, "A trace").
#pragma once

#include <istream>
#include <string>

#include "base/result.h"
#include "tools/sim/fleet/job.h"

namespace vgpud::tools::fleet {

// All jobs of `path` that ran on a GPU, by arrival. A file with anything wrong in it is refused as a whole: the error
// names the first ten wrong lines, one each, as "file:line:column: reason"; the column counts characters from 1.
Result<JobList> ReadTrace(const std::string& path);
// The same from a stream; `name` stands for the file in errors.
Result<JobList> ReadTrace(std::istream& in, const std::string& name);

}  // namespace vgpud::tools::fleet
