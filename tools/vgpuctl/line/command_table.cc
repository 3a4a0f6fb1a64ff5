// SPDX-License-Identifier: Apache-2.0
#include "tools/vgpuctl/line/command_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <string>

#include "tools/vgpuctl/knobs.h"
#include "tools/vgpuctl/line/values.h"
#include "vgpud/model/knobs.h"

namespace vgpud::tools {
namespace {

// By control::Unit. "auto", "none" and "off" stand for the default as well.
constexpr const char* kUnitNames[] = {"NUMBER", "TIME", "25%|0.25", "PERCENT"};

void AddKnobs(CLI::App& command, bool per_vf, CtlArgs& args) {
  for (const auto& knob : control::Knobs()) {
    if (knob.per_vf != per_vf) continue;
    const std::string help = fmt::format("{} ({})", knob.about, RangeText(knob));
    if (knob.per_group)
      command.add_option("--" + knob.option, args.group_weights, help)->type_name("GROUP=WEIGHT");
    else
      command.add_option("--" + knob.option, args.knobs[knob.field], help)
          ->type_name(knob.is_switch() ? "yes|no" : kUnitNames[static_cast<int>(knob.unit)]);
  }
}

void AddVfName(CLI::App& command, CtlArgs& args) { command.add_option("name", args.name, "The VF's name")->required(); }

void AddVfNames(CLI::App& command, CtlArgs& args) {
  command.add_option("name", args.names, "Names of VFs")->type_name("VF");
  command.add_flag("--all", args.all, "All VFs, instead of names");
}

void AddForce(CLI::App& command, CtlArgs& args) {
  command.add_flag("--force", args.force, "Also a VF that a VM or a program uses now");
  command.add_flag("--if-exists", args.if_exists, "It is no error if there is no VF of that name");
}

void AddOptionalName(CLI::App& command, CtlArgs& args) {
  command.add_option("name", args.name, "The VF's name (default: all)")->type_name("VF");
}

void AddConfigVerb(CLI::App& command, CtlArgs& args) {
  command.add_option("what", args.name, "check, show, diff or reload")
      ->required()
      ->check(OneOf({"check", "show", "diff", "reload"}));
}

void AddVfKnobs(CLI::App& command, CtlArgs& args) { AddKnobs(command, true, args); }

void AddManyVfs(CLI::App& command, CtlArgs& args) {
  command.add_option("vfs", args.vfs, "What to change of a VF: the options of vgpuctl set, without --")
      ->type_name("NAME:OPTION=VALUE,...");
}

void AddCdi(CLI::App& command, CtlArgs& args) {
  command.add_option("--file", args.file, "Where to write it (default: standard output)")->type_name("FILE");
  command.add_option("--library", args.library, "libcuda.so.1 of vgpud (default: the installed one)")
      ->type_name("FILE");
  command.add_flag(
      "--update-ldcache", args.update_ldcache,
      "Only for container engines, which call it as the file says: makes a new container's dynamic linker know "
      "the libraries");
}

void AddStateFile(CLI::App& command, CtlArgs& args) {
  command.add_option("--file", args.file, "What everything should be like (see: vgpuctl export); - = standard input")
      ->type_name("FILE");
  command.add_flag("--prune", args.prune,
                   "VFs that are not in the file should not be there, but for transient ones; VFs in use end, too");
}

void AddAppliedStateFile(CLI::App& command, CtlArgs& args) {
  AddStateFile(command, args);
  command.add_flag("--detailed-exitcode", args.detailed_exitcode,
                   "Exit code 7 if something was changed, or with --dry-run would be; else 0 for both");
}

void AddNeededStateFile(CLI::App& command, CtlArgs& args) {
  AddStateFile(command, args);
  command.get_option("--file")->required();
}

void AddGpuSettings(CLI::App& command, CtlArgs& args) {
  command.add_option("--policy", args.policy, control::AboutPolicies())->type_name("NAME");
  command
      .add_option("--idle", args.idle,
                  "what happens to the turn of a VF without work: yield gives it away, hold keeps it")
      ->type_name("yield|hold");
  AddKnobs(command, false, args);
}

void AddSlurm(CLI::App& command, CtlArgs& args) {
  command.add_option("what", args.name, "gres.conf")->required()->check(OneOf({"gres.conf"}));
  command.add_option("--profile", args.profile, "The size of a VF that Slurm counts as one (default: 1/1)")
      ->type_name("PROFILE");
  command.add_option("--files", args.files_dir, "Where the files are that stand for the VFs")->capture_default_str();
}

void AddForceReset(CLI::App& command, CtlArgs& args) {
  command.add_flag("--force", args.force, "Makes a failed or lost VF again, with its settings");
}

void AddDryRun(CLI::App& command, CtlArgs& args) {
  command.add_flag("--dry-run", args.dry_run, "Only say what would change, or why it would be refused");
}

void AddDays(CLI::App& command, CtlArgs& args) {
  command.add_option("--day", args.day, "One day, like 2026-11-20");
  command.add_option("--from", args.from, "First day");
  command.add_option("--to", args.to, "Last day");
}

void AddTraceFile(CLI::App& command, CtlArgs& args) {
  command.add_option("--last", args.last, "How far back, like 5s or 200ms, at most 10 minutes")->capture_default_str();
  command.add_option("-o,--output", args.file, "The file; - = standard output")->required()->type_name("FILE");
}

// Of lists. -o itself is among the options of all commands.
void AddView(CLI::App& command, CtlArgs& args) {
  command
      .add_option(
          "--filter", args.view.filters,
          "Only rows with this in a column, like state=ready, vram=1GiB, name=guest-* or domain!=-; several: all "
          "of them")
      ->type_name("COLUMN=VALUE")
      ->expected(1)
      ->take_all();
  command.add_option("--sort", args.view.sort, "By which column, the least first")->type_name("COLUMN");
  command.add_flag("--reverse", args.view.reverse, "The last row first");
  command.add_flag(
      "--no-headers", [&args](int64_t) { args.view.headings = false; }, "Only the rows");
}

void AddWatch(CLI::App& command, CtlArgs& args) {
  command
      .add_option_function<std::string>(
          "-w,--watch", [&args](const std::string& text) { args.watch = *ParsePatience(text); },
          "Print it again after each such time, until it is interrupted")
      ->check(Patience())
      ->type_name("TIME");
}

void AddTotal(CLI::App& command, CtlArgs& args) {
  command.add_flag("--total", args.total, "Since the VFs were created, instead of the last second");
}

void AddFollowing(CLI::App& command, CtlArgs& args) {
  command.add_flag("-f,--follow", args.follow, "Then print what comes, until vgpud ends or this is interrupted");
}

void AddTop(CLI::App& command, CtlArgs& args) {
  command.add_flag("--batch", args.batch,
                   "Print text instead of drawing on the terminal; with -o json a line of JSON each time");
  command.add_option("--count", args.count, "With --batch: end after so many times (default: never)")
      ->check(NumberUpTo(1'000'000))
      ->type_name("NUMBER");
  command.add_option("--every", args.every, "How often to look")
      ->check(Patience())
      ->type_name("TIME")
      ->capture_default_str();
  command.add_option("--sort", args.sort, "The VFs with the highest figure come first; name: from a on")
      ->check(OneOf({"util", "name", "share", "wait", "vram", "programs"}))
      ->type_name("COLUMN")
      ->capture_default_str();
}

void AddGoal(CLI::App& command, CtlArgs& args) {
  command
      .add_option("--for", args.wait_for,
                  "ready: it takes programs, also if it is not there yet; idle: no program uses it; gone: there is no "
                  "such VF")
      ->required()
      ->check(OneOf({"ready", "idle", "gone"}))
      ->type_name("STATE");
}

void AddNewMemory(CLI::App& command, CtlArgs& args) {
  command.add_option("--vram", args.vram, "Memory of the VF, like 2GiB");
  command.add_option("--host-memory", args.host_memory,
                     "Memory of the host that the VF's programs may take beside that, as for vgpuctl create");
}

// What only a new VF can be given, but for its memory.
void AddMakings(CLI::App& command, CtlArgs& args) {
  command.add_option("--vram", args.vram, "Memory of the VF, like 1GiB (the default)");
  command.add_option("--host-memory", args.host_memory,
                     "Memory of the host that the VF's programs may take beside that, for code, queues, local memory "
                     "and pinned buffers; by default 256 MiB and half of --vram");
  command
      .add_option("--profile", args.profile,
                  "A size by name, like 1/4 (all: vgpuctl profiles); other options count more")
      ->type_name("PROFILE");
  command.add_option("--tenant", args.tenant, "Whose it is (all: vgpuctl tenants)")->type_name("TENANT");
}

void AddLifeAndOwner(CLI::App& command, CtlArgs& args) {
  command.add_flag("--if-missing", args.if_missing,
                   "It is no error if there is a VF of that name; it stays as it is, with its own settings");
  command.add_flag("--transient", args.transient,
                   "It ends with vgpud; others are there again after a restart of vgpud or of the host");
  command
      .add_option("--owner", args.owner,
                  "Who may run programs on it without a VM, besides root: a user, a group, or both, by name or number")
      ->type_name("USER|:GROUP|USER:GROUP");
}

void AddGpuName(CLI::App& command, CtlArgs& args) {
  command.add_option("name", args.gpu, "The GPU's name; needed where there are several")->type_name("GPU");
}

void AddOneGpu(CLI::App& command, CtlArgs& args) {
  command.add_option("--gpu", args.gpu, "A GPU of several (all: vgpuctl gpus)")->type_name("GPU");
}

void AddPlace(CLI::App& command, CtlArgs& args) {
  AddOneGpu(command, args);
  command
      .add_option("--placement", args.placement,
                  "How a GPU is chosen: spread (fewest VFs), pack (the fullest with room), most-free-vram, or numa "
                  "(at --numa-node); default: as vgpud is configured")
      ->type_name("NAME")
      ->excludes("--gpu");
  command
      .add_option("--numa-node", args.numa_node, "NUMA node of the virtual machine; GPUs of that node are preferred")
      ->check(NumberUpTo(1023));
  command.add_flag("--queue", args.queue,
                   "Wait until a GPU has room: those of higher priority first, then those who came first; as long as "
                   "--timeout says, or for ever");
}

void AddRevision(CLI::App& command, CtlArgs& args) {
  command
      .add_option(
          "--if-revision", args.if_revision,
          "Only if it still has this revision, as show or gpu said it; exit code 5: somebody else has changed it")
      ->type_name("NUMBER");
}

void AddLibvirtsName(CLI::App& command, CtlArgs& args, const char* help) {
  command.add_option("domain", args.name, help)->required();
  command.add_option("--connect", args.connect, "libvirt's URI, like qemu:///system (default: libvirt's own)");
}

void AddDomain(CLI::App& command, CtlArgs& args) { AddLibvirtsName(command, args, "The domain's name, or its UUID"); }

void AddDomainFile(CLI::App& command, CtlArgs& args) {
  AddLibvirtsName(command, args, "A file; - = standard input");
  command.add_flag("--print", args.print, "Only print what would be defined; needs no libvirt");
}

void AddVfToAttach(CLI::App& command, CtlArgs& args) {
  command.add_option("--vf", args.vf, "A VF that is there, or the name of the one to be made")->type_name("VF");
  command.add_flag("--unmanaged", args.unmanaged, "The hook leaves the VF alone: you look after its socket");
}

void AddVfToDetach(CLI::App& command, CtlArgs& args) {
  command.add_option("--vf", args.vf, "The VF's name or alias, like vgpud0")->required()->type_name("VF");
}

void AddWhere(CLI::App& command, CtlArgs& args) {
  command.add_flag("--live", args.live, "The running domain");
  command.add_flag("--config", args.config, "The domain as it will be started");
}

void AddHooksDir(CLI::App& command, CtlArgs& args) {
  command.add_option("--hooks-dir", args.hooks_dir, "Where libvirt looks for hooks")
      ->capture_default_str()
      ->type_name("DIRECTORY");
}

void AddLint(CLI::App& command, CtlArgs& args) {
  command.add_flag("--fix", args.fix, "Put right what can be put right in the XML");
  command.add_option("--gpu-node", args.gpu_node, "NUMA node of the GPU, to find vCPUs that are kept away from it");
  AddHooksDir(command, args);
}

void AddFollow(CLI::App& command, CtlArgs& args) {
  command.add_option("--connect", args.connect, "libvirt's URI (default: qemu:///system)");
  command.add_flag("--once", args.once, "Look once, then end");
}

void AddHook(CLI::App& command, CtlArgs& args) {
  AddHooksDir(command, args);
  command.add_flag("--install", args.install, "Write the script that libvirt calls");
  command.add_option("words", args.words, "DOMAIN OPERATION SUB-OPERATION EXTRA, as libvirt gives them");
}

// What makes a subcommand take its options, in the order of its help.
using AddOptions = void(CLI::App& command, CtlArgs& args);
using Options = std::array<AddOptions*, 6>;
constexpr Options Takes(std::same_as<AddOptions> auto*... add) { return {add...}; }

struct Row {
  const char* name;
  const char* help;
  const char* example;
  Options takes;
  int (*run)(const CtlArgs&);
  const char* also = nullptr;    // another name
  const char* prints = nullptr;  // what it prints if that is neither a table nor JSON
  bool Has(AddOptions* add) const { return std::find(takes.begin(), takes.end(), add) != takes.end(); }
};
constexpr Row kCommands[] = {
    {"create", "Make a VF and print where a VM or a program finds it.",
     "vgpuctl create guest-a --vram 1GiB --weight 100",
     Takes(AddVfName, AddVfKnobs, AddDryRun, AddMakings, AddLifeAndOwner, AddPlace), &CmdCreate},
    {"destroy", "End VFs. With --force also those in use: a VM sees its device go, programs end with an error.",
     "vgpuctl destroy guest-a guest-b", Takes(AddVfNames, AddForce, AddRevision), &CmdDestroy, "rm"},
    {"list", "Show all VFs.", "vgpuctl list --filter state=ready --sort name -o wide", Takes(AddView, AddWatch),
     &CmdList, "ls"},
    {"show", "Show VFs with their sockets.", "vgpuctl show guest-a", Takes(AddVfNames), &CmdShow, "describe"},
    {"set",
     "Change the share and the memory of VFs while they run, of all of them or none. A share takes effect between two "
     "turns. Memory grows at once; it shrinks to what programs leave of it, or is refused.",
     "vgpuctl set guest-a guest-b --weight 300 --dry-run",
     Takes(AddVfNames, AddVfKnobs, AddNewMemory, AddDryRun, AddRevision), &CmdSet},
    {"pause", "Take the GPU from VFs until they are resumed. Their programs wait, what they owe stays.",
     "vgpuctl pause guest-a", Takes(AddVfNames, AddDryRun, AddRevision), &CmdPause},
    {"resume", "Let paused VFs run again.", "vgpuctl resume --all", Takes(AddVfNames, AddDryRun, AddRevision),
     &CmdResume},
    {"profiles", "Show the sizes that a VF can be made with.", "vgpuctl profiles", Takes(AddOneGpu, AddView),
     &CmdProfiles},
    {"tenants", "Show how much the VFs of each tenant have and may have.", "vgpuctl tenants", Takes(), &CmdTenants},
    {"calendar", "Show the periods of the calendar, which of them hold now, and what they change.", "vgpuctl calendar",
     Takes(), &CmdCalendar},
    {"gpus", "Show all GPUs, and how much of each is promised to VFs.", "vgpuctl gpus", Takes(AddView), &CmdGpus},
    {"topo", "Show NUMA nodes, where the GPUs are that are served, and the GPUs on the PCI bus.", "vgpuctl topo",
     Takes(), &CmdTopo},
    {"gpu", "Show a GPU, its policy and its settings.", "vgpuctl gpu -o json", Takes(AddGpuName), &CmdGpu},
    {"set-gpu", "Change the policy and the settings that all VFs share, while they run.",
     "vgpuctl set-gpu --policy reserve --base-slice 1ms --dry-run",
     Takes(AddGpuSettings, AddDryRun, AddGpuName, AddRevision), &CmdSetGpu},
    {"export", "Print the settings of the GPUs and all VFs but transient ones, as apply --file and assert take them.",
     "vgpuctl export > vgpu-state.toml", Takes(), &CmdExport, nullptr, "TOML"},
    {"assert",
     "Is everything as a file says? Prints what is not. Exit code 0: it is, 7: it is not. What the file does not "
     "mention may be as it likes.",
     "vgpuctl assert --file vgpu-state.toml", Takes(AddNeededStateFile), &CmdAssert},
    {"apply",
     "Change several VFs, and the GPU with them, between the same two turns; all of it or nothing. With --file: make "
     "everything as the file says, and VFs that are not there yet.",
     "vgpuctl apply --policy reserve guest-a:guarantee=25%,limit=75% guest-b:weight=300 --dry-run",
     Takes(AddManyVfs, AddAppliedStateFile, AddGpuSettings, AddDryRun, AddOneGpu), &CmdApply},
    {"config",
     "What the daemon is told by its files and flags. check: are the files right? show: what holds, and where each "
     "value is from; diff: what the files say now, where it is not what holds; reload: read them again.",
     "vgpuctl config diff", Takes(AddConfigVerb), &CmdConfig},
    {"reset", "Reset VFs and, if they were parked after repeated hangs, let them run again.",
     "vgpuctl reset guest-a --force", Takes(AddVfNames, AddForceReset), &CmdReset},
    {"stats", "Show who has the GPU now, in the last second, and what each VF is entitled to.", "vgpuctl stats --total",
     Takes(AddOptionalName, AddOneGpu, AddTotal, AddView, AddWatch), &CmdStats},
    {"events",
     "Show what happened: VFs created, changed (by whom), reset, lost and destroyed, kernels that failed, executors "
     "that "
     "were killed, alarms.",
     "vgpuctl events guest-a --follow", Takes(AddOptionalName, AddFollowing), &CmdEvents},
    {"logs", "Show what the processes of a VF logged.", "vgpuctl logs guest-a --follow", Takes(AddVfName, AddFollowing),
     &CmdLogs},
    {"top",
     "Show all GPUs and VFs as they are, again and again. Keys: s sorts, p pauses or resumes the selected VF and w "
     "changes "
     "its weight, both after a question; space freezes, q quits.",
     "vgpuctl top --batch --count 1", Takes(AddTop), &CmdTop},
    {"doctor",
     "Check this host, vgpud, permissions, containers, libvirt, QEMU and Slurm: one line per check, with the fix. Exit "
     "code 0: no FAIL, 7: there is one.",
     "vgpuctl doctor", Takes(AddHooksDir), &CmdDoctor},
    {"ps", "Show the programs that use VFs: pid, user, domain, memory, time on the GPU.", "vgpuctl ps guest-a",
     Takes(AddOptionalName, AddView), &CmdPs},
    {"wait",
     "Wait until a VF is in a state, for ever or as long as --timeout says. Exit code 0: it is, 5: it will not be "
     "without "
     "your act, 6: it was not within that time.",
     "vgpuctl wait guest-a --for idle --timeout 30s", Takes(AddVfName, AddGoal), &CmdWait},
    {"metrics", "Print all figures as Prometheus reads them.", "vgpuctl metrics", Takes(), &CmdMetrics, nullptr,
     "text for Prometheus"},
    {"report", "Show what each VF used per day (UTC), today or on the days given.",
     "vgpuctl report --from 2026-11-01 --to 2026-11-30 -o json", Takes(AddDays, AddView), &CmdReport},
    {"trace", "Write the last turns on the GPU to a file that Perfetto opens.", "vgpuctl trace --last 5s -o trace.json",
     Takes(AddTraceFile, AddOneGpu), &CmdTrace},
    {"cdi",
     "Describe all VFs as devices of containers (CDI): with --file /run/cdi/vgpud.json a container gets one with "
     "podman run --device vgpud.dev/vf=NAME.",
     "vgpuctl cdi --file /run/cdi/vgpud.json", Takes(AddCdi), &CmdCdi},
    {"attach",
     "Put a VF into a domain of libvirt, with all that the domain needs for it; into a running one, too. Without "
     "--live and "
     "--config: into both, where there are both.",
     "vgpuctl attach guest-a --profile 1/4 --weight 300",
     Takes(AddVfKnobs, AddMakings, AddDomain, AddVfToAttach, AddWhere), &CmdAttach},
    {"detach", "Take a VF out of a domain, and what attach added for it.", "vgpuctl detach guest-a --vf vgpud0",
     Takes(AddDomain, AddVfToDetach, AddWhere), &CmdDetach},
    {"define", "As virsh define, for a file that may have <hostdev mode='subsystem' type='vfio-user'>.",
     "vgpuctl define guest-a.xml", Takes(AddDomainFile), &CmdDefine},
    {"dumpxml", "As virsh dumpxml, with VFs shown as <hostdev>.", "vgpuctl dumpxml guest-a", Takes(AddDomain, AddWhere),
     &CmdDumpxml},
    {"edit", "As virsh edit, with VFs shown as <hostdev>.", "vgpuctl edit guest-a", Takes(AddDomain), &CmdEdit},
    {"lint",
     "What keeps the VFs of a domain, or of a file (a path, or a name that ends with .xml), from working? Exit code 0: "
     "nothing, 7: each line has one defect and its fix.",
     "vgpuctl lint guest-a --fix", Takes(AddDomain, AddLint), &CmdLint},
    {"slurm", "Print gres.conf for Slurm: as many GPUs of type vgpud as VFs of a profile fit on this host.",
     "vgpuctl slurm gres.conf --profile 1/4", Takes(AddSlurm), &CmdSlurm},
    {"hook", "What libvirt calls when domains start and end; --install puts it there.", "vgpuctl hook --install",
     Takes(AddHook), &CmdHook},
    {"follow",
     "Follow libvirt's domains for as long as it runs: vgpud knows whose VF is whose, and VFs of domains that ended "
     "without their hook are freed. Does without root: the group vgpu will do.",
     "vgpuctl follow --connect qemu:///system", Takes(AddFollow), &CmdFollow},
};

}  // namespace

void AddCommands(CLI::App& app, CtlArgs& args, Run** run) {
  for (const Row& row : kCommands) {
    CLI::App* command = AddCommand(app, row.name, row.help, row.example);
    if (row.also != nullptr) command->alias(row.also);
    for (AddOptions* const add : row.takes)
      if (add != nullptr) add(*command, args);
    command->callback([run, f = row.run] { *run = f; });
  }
}

std::string WhyNotIn(const std::string& command, const std::string& format) {
  const auto* const row =
      std::find_if(std::begin(kCommands), std::end(kCommands), [&](const Row& each) { return command == each.name; });
  if (row == std::end(kCommands) || format == "table") return "";
  if (row->prints != nullptr) return fmt::format("{} prints {}: leave -o {} out", command, row->prints, format);
  if (row->Has(&AddView) || format == "json" || format == "yaml") return "";
  std::string lists;
  for (const Row& each : kCommands)
    if (each.Has(&AddView)) lists += (lists.empty() ? "" : ", ") + std::string(each.name);
  return fmt::format("{} prints no list, so it has no -o {}: json and yaml it has; lists are {}", command, format,
                     lists);
}

CLI::App* AddCommand(CLI::App& app, const char* name, const char* help, const char* example) {
  CLI::App* command = app.add_subcommand(name, help);
  command->footer(std::string("Example: ") + example);
  command->fallthrough();
  return command;
}

}  // namespace vgpud::tools
