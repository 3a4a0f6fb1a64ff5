// SPDX-License-Identifier: Apache-2.0
// What the replies of the control API have in common. For the sources that write them only.
#pragma once

#include <string>
#include <vector>

#include "vgpud/events/record.h"
#include "vgpud/json/vf_fields.h"
#include "vgpud/model/gpu_facts.h"
#include "vgpud/model/report.h"

namespace vgpud::daemon {

// The knobs of a VF in the order of their table, the slice as it is in force.
void PutKnobs(const VfReport& vf, OrderedJson* json);
// Of a GPU as the PCI bus has it.
OrderedJson Describe(const PciGpu& gpu);
// A list of "vf" (none: of the GPU), "field", "old" and "new".
OrderedJson Describe(const std::vector<Change>& changes);
// How often each error came that came at all, like {"700": 2}.
OrderedJson Describe(const KernelFaults& faults);
// One event, or one line of a log.
OrderedJson Describe(const Record& record);
OrderedJson DescribeRecords(const std::vector<Record>& records);
// A part of the GPU, 0..1, as replies have it.
double Rounded(double part);
// The text of a reply, with the version of the API.
std::string Finish(OrderedJson json);

}  // namespace vgpud::daemon
