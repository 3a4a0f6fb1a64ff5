// SPDX-License-Identifier: Apache-2.0
// What each subcommand does: takes its world as arguments, returns an exit status. Data go to stdout, messages to
// stderr.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/vgpuctl/contact.h"
#include "tools/vgpuctl/new_vf.h"
#include "tools/vgpuctl/view.h"

namespace vgpud::tools {

// 0 ok, then:
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,       // the operation failed
  kExitUsage = 2,        // bad arguments or values
  kExitUnreachable = 3,  // no daemon there
  kExitNotFound = 4,     // no such VF
  kExitRefused = 5,      // not possible in this state, or not permitted
  kExitTimedOut = 6,
  kExitDiffers = 7,  // config diff, assert, lint: not as it should be; apply --detailed-exitcode: something was changed
};

// What was typed, of all subcommands together: name, knobs and gpu may be those of something else than a new VF. What
// does not care who typed takes a Contact or a NewVf.
struct CtlArgs : Contact, NewVf {
  View view;
  bool json = false;                               // view.is_data()
  std::optional<std::chrono::milliseconds> watch;  // the command is run again so much later
  std::vector<std::string> names;                  // of VFs, where a command takes several
  bool all = false;                                // all VFs, instead
  bool force = false;                              // of destroy and reset
  bool if_exists = false;                          // of destroy
  bool if_missing = false;                         // of create
  bool detailed_exitcode = false;                  // of apply
  std::vector<std::string> group_weights;          // "3=200"
  std::vector<std::string> vfs;                    // "guest-a:weight=300,limit=50%"
  std::string policy;
  std::string idle;
  bool dry_run = false;
  bool queue = false;
  std::optional<uint64_t> if_revision;
  bool total = false;         // of stats
  std::string wait_for;       // of wait: a state
  std::string sort = "util";  // of top: a column
  std::string every = "1s";   // of top; main() makes `interval` of it
  std::chrono::milliseconds interval{1000};
  bool batch = false;       // of top
  unsigned count = 0;       // of top: frames; 0: without end
  std::string last = "5s";  // of trace
  std::string file;         // of trace: "-" = stdout; of apply and assert: "-" = stdin
  bool prune = false;
  // Of libvirt's domains, whose name is `name`:
  std::string connect;  // URI; empty = libvirt's default
  std::string vf;
  bool unmanaged = false;
  bool live = false;
  bool config = false;
  bool print = false;
  bool fix = false;
  bool install = false;
  bool once = false;  // of follow
  std::string hooks_dir = "/etc/libvirt/hooks/qemu.d";
  std::string files_dir = "/run/vgpud-slurm";
  std::optional<unsigned> gpu_node;  // of NUMA
  std::vector<std::string> words;    // of hook
  std::string library;               // of cdi: libcuda.so.1 of vgpud
  bool update_ldcache = false;       // of cdi
  std::string day;                   // of report
  std::string from;
  std::string to;
};

int CmdCreate(const CtlArgs& args);
int CmdDestroy(const CtlArgs& args);
int CmdList(const CtlArgs& args);
int CmdShow(const CtlArgs& args);
int CmdSet(const CtlArgs& args);
int CmdPause(const CtlArgs& args);
int CmdResume(const CtlArgs& args);
int CmdProfiles(const CtlArgs& args);
int CmdConfig(const CtlArgs& args);
int CmdGpu(const CtlArgs& args);
int CmdGpus(const CtlArgs& args);
int CmdTopo(const CtlArgs& args);
int CmdSetGpu(const CtlArgs& args);
int CmdApply(const CtlArgs& args);
int CmdExport(const CtlArgs& args);
int CmdAssert(const CtlArgs& args);
// Of apply, which has changed something.
inline int ExitOfChanged(const CtlArgs& args) { return args.detailed_exitcode ? kExitDiffers : kExitOk; }
// apply --file
int ApplyFile(const CtlArgs& args);
int CmdReset(const CtlArgs& args);
int CmdStats(const CtlArgs& args);
int CmdMetrics(const CtlArgs& args);
int CmdReport(const CtlArgs& args);
int CmdAttach(const CtlArgs& args);
int CmdDetach(const CtlArgs& args);
int CmdDefine(const CtlArgs& args);
int CmdDumpxml(const CtlArgs& args);
int CmdEdit(const CtlArgs& args);
int CmdLint(const CtlArgs& args);
int CmdHook(const CtlArgs& args);
int CmdFollow(const CtlArgs& args);
int CmdTrace(const CtlArgs& args);
int CmdCdi(const CtlArgs& args);
int CmdSlurm(const CtlArgs& args);
int CmdTenants(const CtlArgs& args);
int CmdCalendar(const CtlArgs& args);
int CmdEvents(const CtlArgs& args);
int CmdLogs(const CtlArgs& args);
int CmdTop(const CtlArgs& args);
int CmdDoctor(const CtlArgs& args);
int CmdPs(const CtlArgs& args);
int CmdWait(const CtlArgs& args);

}  // namespace vgpud::tools
