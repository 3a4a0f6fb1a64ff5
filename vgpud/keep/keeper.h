// SPDX-License-Identifier: Apache-2.0
// vgpud's end of vgpud-keep (keep_link.h): finds the one that an earlier vgpud has left, or starts one, and hands it
// what must outlive this process. Main thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/message.h"
#include "vgpud/host/child.h"
#include "vgpud/keep/keep_link.h"

namespace vgpud::daemon {

class Keeper {
 public:
  struct Kept {
    std::string name;
    std::vector<std::byte> note;
    std::vector<UniqueFd> fds;
    template <class T>
    [[nodiscard]] Result<T> Note() const {
      return Message{note, {}}.As<T>();
    }
  };
  // Takes over the one that listens in `runtime_dir`, which is private and locked by this process, after each has
  // proven itself to the other: by its user, and this one by the secret in the directory. None there, or one that does
  // not answer within 2 s: starts `program`. `kept` gets what an earlier vgpud has left.
  [[nodiscard]] static Result<std::unique_ptr<Keeper>> Open(const std::string& runtime_dir, const std::string& program,
                                                            std::vector<Kept>* kept);

  // From here on the descriptors outlive this process, whatever happens to it. `grant_page`: 1 + which of them is a
  // writable grant page. They stay the caller's. False: vgpud-keep is gone or does not take them, which is logged once.
  bool Store(const std::string& name, std::span<const std::byte> note, std::span<const int> fds,
             uint32_t grant_page = 0);
  template <class T>
  bool Store(const std::string& name, const T& note, std::span<const int> fds, uint32_t grant_page = 0) {
    return Store(name, std::as_bytes(std::span{&note, 1}), fds, grant_page);
  }
  // `name`, and what begins with it and a '/', is given up.
  void Forget(const std::string& name);
  // Was it there before this process?
  bool is_taken_over() const { return process_ == nullptr; }
  // It gives up everything and ends; its files go.
  void End();

 private:
  Keeper(std::string runtime_dir, UniqueFd session)
      : runtime_dir_(std::move(runtime_dir)), session_(std::move(session)) {}
  bool Send(keep::Entry entry, const std::string& name, std::span<const int> fds);

  const std::string runtime_dir_;
  UniqueFd session_;
  std::unique_ptr<Child> process_;  // one that this vgpud has started
  bool lost_ = false;
};

}  // namespace vgpud::daemon
