/* SPDX-License-Identifier: MIT */
/* cli/cmd/commands.c - all commands. A new one is a file cmd_<name>.c, a line in commands.h and one
 * here. */
#include "cli/cmd/commands.h"

/* By group. A line each, so that two that are added do not meet. */
/* clang-format off */
const struct tmk_command *const tmk_commands[] = {
    &tmk_cmd_run,
    &tmk_cmd_attach,
    &tmk_cmd_detach,
    &tmk_cmd_env,
    &tmk_cmd_sweep,
    &tmk_cmd_report,
    &tmk_cmd_serve,
    &tmk_cmd_explain,
    &tmk_cmd_peak,
    &tmk_cmd_leak,
    &tmk_cmd_frag,
    &tmk_cmd_whatif,
    &tmk_cmd_diff,
    &tmk_cmd_plot,
    &tmk_cmd_query,
    &tmk_cmd_tables,
    &tmk_cmd_top,
    &tmk_cmd_ps,
    &tmk_cmd_eval,
    &tmk_cmd_monitor,
    &tmk_cmd_oom,
    &tmk_cmd_profile,
    &tmk_cmd_agent,
    &tmk_cmd_fleet,
    &tmk_cmd_import,
    &tmk_cmd_export,
    &tmk_cmd_model,
    &tmk_cmd_check,
    &tmk_cmd_demo,
    &tmk_cmd_doctor,
    &tmk_cmd_completion,
    &tmk_cmd_help,
    NULL,
};
/* clang-format on */
