// SPDX-License-Identifier: Apache-2.0
// VFs that could not be made of their definitions. They are listed with the reason and keep their names until a reset
// by force makes them again or an operator destroys them. Main thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vgpud/model/definition.h"
#include "vgpud/model/report.h"

namespace vgpud::daemon {

class LostVfs {
 public:
  struct Lost {
    std::string file;  // that has its definition; empty: there is none
    std::string why;
    std::string uuid;                        // as far as it is known
    std::optional<VfDefinition> definition;  // none: it could not be read
  };
  void Add(const std::string& name, Lost lost);
  void Remove(const std::string& name) { all_.erase(name); }
  // Calls `added` for each that is added from now on.
  void OnAdded(std::function<void(const std::string& name)> added) { added_ = std::move(added); }

  size_t size() const { return all_.size(); }
  // Null: no VF of that name is lost.
  const Lost* Find(const std::string& name) const;
  // One sentence for clients: which VF is lost, why, and how it comes back. `name` is lost.
  std::string Reason(const std::string& name) const;
  VfReport Report(const std::string& name) const;
  std::vector<VfReport> Reports() const;
  // What they had, as far as it is known.
  std::vector<VfSpec> Specs() const;

 private:
  std::map<std::string, Lost> all_;
  std::function<void(const std::string& name)> added_ = [](const std::string&) {};
};

}  // namespace vgpud::daemon
