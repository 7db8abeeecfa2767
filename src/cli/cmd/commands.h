/* SPDX-License-Identifier: MIT */
/* cli/cmd/commands.h - the entries that cli/cmd/commands.c lists; each is in cmd_<name>.c. */
#ifndef TMK_CLI_CMD_COMMANDS_H
#define TMK_CLI_CMD_COMMANDS_H

#include "cli/front/command.h"

extern const struct tmk_command tmk_cmd_run;
extern const struct tmk_command tmk_cmd_attach;
extern const struct tmk_command tmk_cmd_detach;
extern const struct tmk_command tmk_cmd_env;
extern const struct tmk_command tmk_cmd_ps;
extern const struct tmk_command tmk_cmd_eval;
extern const struct tmk_command tmk_cmd_report;
extern const struct tmk_command tmk_cmd_serve;
extern const struct tmk_command tmk_cmd_explain;
extern const struct tmk_command tmk_cmd_peak;
extern const struct tmk_command tmk_cmd_frag;
extern const struct tmk_command tmk_cmd_diff;
extern const struct tmk_command tmk_cmd_query;
extern const struct tmk_command tmk_cmd_sweep;
extern const struct tmk_command tmk_cmd_tables;
extern const struct tmk_command tmk_cmd_export;
extern const struct tmk_command tmk_cmd_top;
extern const struct tmk_command tmk_cmd_plot;
extern const struct tmk_command tmk_cmd_profile;
extern const struct tmk_command tmk_cmd_oom;
extern const struct tmk_command tmk_cmd_leak;
extern const struct tmk_command tmk_cmd_monitor;
extern const struct tmk_command tmk_cmd_agent;
extern const struct tmk_command tmk_cmd_fleet;
extern const struct tmk_command tmk_cmd_whatif;
extern const struct tmk_command tmk_cmd_model;
extern const struct tmk_command tmk_cmd_check;
extern const struct tmk_command tmk_cmd_import;
extern const struct tmk_command tmk_cmd_doctor;
extern const struct tmk_command tmk_cmd_demo;
extern const struct tmk_command tmk_cmd_completion;
extern const struct tmk_command tmk_cmd_help;

#endif
