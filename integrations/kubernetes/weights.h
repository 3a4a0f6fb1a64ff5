// SPDX-License-Identifier: Apache-2.0
// The weights that pods ask for by annotation, for the VFs that they have. Pure.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "integrations/kubernetes/config.h"

namespace vgpud::kubernetes {

inline constexpr const char* kWeightAnnotation = "vgpud.dev/weight";

// "NAMESPACE/NAME" of the pod, by VF.
using PodOfVf = std::map<std::string, std::string>;
// What the annotation says, by "NAMESPACE/NAME"; pods without one are not there.
using Annotations = std::map<std::string, std::string>;

// `pods`: the API server's answer. Errors: protocol_error.
[[nodiscard]] Result<Annotations> AnnotationsIn(const std::string& pods);

struct Wishes {
  std::map<std::string, int> weights;          // of all VFs of resources with max_weight, by name
  std::map<std::string, std::string> refused;  // why an annotation is not followed, by pod
};

// A VF has the weight that its pod asks for, at most max_weight of its resource; without a pod or an annotation the
// weight of its resource. `profiles`: vgpud's answer to GET /v1/profiles, for resources without a weight; what can't be
// found out is left as it is.
[[nodiscard]] Wishes WishesOf(const Config& config, const PodOfVf& pods, const Annotations& annotations,
                              const std::string& profiles);

}  // namespace vgpud::kubernetes
