// SPDX-License-Identifier: Apache-2.0
// What this node has, as labels of the node, so that pods can choose by them. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "integrations/kubernetes/config.h"

namespace vgpud::kubernetes {

using Labels = std::map<std::string, std::string>;

// All labels whose names begin with this are ours, but for the administrator's, which says where the plugin shall run.
inline constexpr std::string_view kLabelPrefix = "vgpud.dev/";
inline constexpr std::string_view kNodeLabel = "vgpud.dev/node";

// `gpus`, `profiles`: vgpud's answers to GET /v1/gpus and /v1/profiles. Errors: protocol_error.
[[nodiscard]] Result<Labels> LabelsOf(const Config& config, const std::string& gpus, const std::string& profiles);

// The merge patch that gives the node `wanted` and takes away other labels of ours; empty when it has just those.
// `node`: the API server's answer about it. Errors: protocol_error.
[[nodiscard]] Result<std::string> LabelsPatch(const Labels& wanted, const std::string& node);

}  // namespace vgpud::kubernetes
