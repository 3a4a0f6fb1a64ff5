// SPDX-License-Identifier: Apache-2.0
// VFs that could not be made of their definitions. They are listed with the reason and keep their names until a reset
// by force makes them again or an operator destroys them. Main thread.
#pragma once

#include <map>
#include <optional>
#include <string>
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
};

}  // namespace vgpud::daemon
