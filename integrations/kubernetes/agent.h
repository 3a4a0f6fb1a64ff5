// SPDX-License-Identifier: Apache-2.0
// What the plugin does with the API server, in a thread of its own, so that a slow one delays nothing else: the node's
// labels, the weights that pods ask for by annotation, and the slices of what claims can have.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "integrations/kubernetes/api_server.h"
#include "integrations/kubernetes/config.h"
#include "integrations/kubernetes/vfs.h"
#include "integrations/kubernetes/weights.h"

namespace vgpud::kubernetes {

class Agent {
 public:
  struct Options {
    std::string node;           // its name in the cluster
    std::string runtime_dir;    // vgpud's
    std::string pod_resources;  // kubelet's socket
    std::chrono::milliseconds period{5000};
  };
  Agent(ApiServer server, Options options, Config config);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // What is offered from now on. Any thread.
  void Update(const Config& config, const Offer& offer);

 private:
  void Run();
  [[nodiscard]] Result<void> Label(const Config& config);
  [[nodiscard]] Result<void> Weigh(const Config& config);
  // Only where claims were offered once: a cluster may not know of them.
  [[nodiscard]] Result<void> Publish(const Config& config, const Offer& offer);
  [[nodiscard]] Result<PodOfVf> PodsOfVfs(const Config& config) const;
  // Says it in the log when it is new.
  void Report(std::string* known, const char* what, const Result<void>& done);

  const ApiServer server_;
  const Options options_;
  const std::string vgpud_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Config config_;
  Offer offer_;
  bool ends_ = false;
  bool published_ = false;  // something, once
  std::string label_problem_, weight_problem_, slice_problem_;
  std::map<std::string, std::string> refused_;  // that the log knows of, by pod
  std::thread thread_;
};

// The name under which this node is known: NODE_NAME of the environment, or the host's.
[[nodiscard]] std::string NodeName();

}  // namespace vgpud::kubernetes
