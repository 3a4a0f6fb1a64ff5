// SPDX-License-Identifier: Apache-2.0
#include "vgpud/containers/cdi_keeper.h"

#include <memory>
#include <utility>

#include "base/log.h"
#include "vgpud/host/private_dir.h"

namespace vgpud::daemon {
namespace {

constexpr Ns kDiskLimit = std::chrono::seconds{1};
constexpr size_t kMostTasks = 2;  // one that writes, and the one that removes the file

// What is wrong; empty: nothing.
std::string Put(const std::string& file, const std::string& text) {
  const auto written = WriteCdi(file, text);
  return written ? "" : written.error().context;
}

}  // namespace

Result<std::unique_ptr<CdiKeeper>> CdiKeeper::Open(EventLoop& loop, TaskQueue& replies, std::string file, Vfs vfs) {
  const size_t slash = file.rfind('/');
  TRY(OpenPrivateDir(slash == std::string::npos ? "." : file.substr(0, slash + 1), 0755, "directory of the CDI file",
                     "--cdi-file"));
  return std::unique_ptr<CdiKeeper>(new CdiKeeper(loop, replies, std::move(file), std::move(vfs)));
}

CdiKeeper::CdiKeeper(EventLoop& loop, TaskQueue& replies, std::string file, Vfs vfs)
    : loop_(loop), file_(std::move(file)), vfs_(std::move(vfs)), writer_("vgpud-cdi", kMostTasks, replies) {
  soon_ = loop_.Timer([this] { Write(); });
}

CdiKeeper::~CdiKeeper() {
  (void)writer_.Post([file = file_] { (void)Put(file, ""); });
  if (!writer_.Leave(kDiskLimit)) LOG(kWarning, "{}: the disk does not answer, the file stays", file_);
}

void CdiKeeper::Changed() { soon_->Arm(Ns{0}); }

void CdiKeeper::Write() {
  again_ = writing_;
  if (writing_) return;
  const auto library = FindCudaLibrary("");
  if (!library) return Finish("", library.error().context);
  const CdiFile described = CdiFileOf(vfs_(), *library);
  if (described.text == written_ && problem_.empty()) return;
  for (const std::string& name : described.left_out)
    LOG(kWarning, "vf={}: containers can't get it: names of their devices end with a letter or a digit", name);
  const auto problem = std::make_shared<std::string>();
  writing_ = writer_.Post([problem, file = file_, text = described.text] { *problem = Put(file, text); },
                          [this, problem, text = described.text] { Finish(text, *problem); });
}

void CdiKeeper::Finish(const std::string& text, const std::string& problem) {
  writing_ = false;
  if (problem.empty()) written_ = text;
  if (problem != problem_ && !problem.empty()) LOG(kError, "containers can't get VFs: {}", problem);
  problem_ = problem;
  if (std::exchange(again_, false)) Changed();
}

}  // namespace vgpud::daemon
