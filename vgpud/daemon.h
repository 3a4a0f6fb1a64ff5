// SPDX-License-Identifier: Apache-2.0
// The composition root: builds and wires everything in start-up order. Main thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "vgpud/config/config.h"
#include "vgpud/config/read_config.h"
#include "vgpud/containers/cdi_keeper.h"
#include "vgpud/control/control.h"
#include "vgpud/live/calendar_world.h"
#include "vgpud/live/configuration.h"
#include "vgpud/registry/vf_service.h"
#include "vgpud/service/reports.h"

namespace vgpud::daemon {

class Daemon {
 public:
  using ReadAgain = std::function<Result<Told>()>;
  // Takes the runtime directory (one daemon per directory), makes the GPU and the VFs that were there before, and
  // serves the control socket. An error leaves nothing behind. `told`: its config is resolved. `read_again`: on SIGHUP.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> Start(const Told& told, ReadAgain read_again);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  // Serves until SIGTERM or SIGINT, then ends all VFs and removes the sockets. With keep_vfs until SIGUSR1, too: then
  // the process ends here and leaves its VFs to the next vgpud.
  void Run();

 private:
  Daemon(const Told& told, ReadAgain read_again);
  Result<void> TakeRuntimeDir();
  Result<void> Confine();
  Result<void> OpenKeeper();
  Result<void> Wire();
  Result<void> KeepCdiFile();
  // All steps of a start. Once it has taken over VFs, an error ends the process, not them.
  Result<void> Begin();
  void LeaveVfs();
  // What was changed live of the GPUs' settings, for the next vgpud.
  void KeepSettings();
  void KeepSettingsOf(const ServedGpu& gpu);
  void TakeSettings(std::vector<Keeper::Kept>* all);
  // Until the VFs of the daemon before are there again, or lost.
  void Restore();
  Result<void> Serve();
  // Reads what it is told again; what is different and can take effect does so at once, or nothing at all.
  void Reload();
  void Stop(const char* why);
  // The end of Stop, when the last VF is gone.
  void Finish();

  Config config_;
  const Told told_;  // at start
  const ReadAgain read_again_;
  VfConfinement confinement_;
  Topology topology_;
  UniqueFd lock_;
  UniqueFd replies_event_;
  EventLoop loop_;
  std::unique_ptr<TaskQueue> replies_;
  std::unique_ptr<Keeper> keeper_;
  KeptVfs kept_;  // until they are restored
  std::unique_ptr<CgroupTree> cgroups_;
  std::unique_ptr<Worker> mover_;
  std::unique_ptr<VfService> vfs_;
  std::unique_ptr<CdiKeeper> cdi_;  // null: no file was asked for
  std::unique_ptr<CalendarWorld> calendar_world_;
  std::unique_ptr<CalendarKeeper> calendar_;
  std::unique_ptr<Configuration> configuration_;
  std::unique_ptr<Control> control_;
  std::unique_ptr<Control> own_control_;  // of root and of this user
  std::unique_ptr<Control> metrics_;
  std::unique_ptr<ServiceReports> service_;
  std::vector<EventLoop::WatchPtr> watches_;
  bool stopping_ = false;
  bool finished_ = false;
};

}  // namespace vgpud::daemon
