/* SPDX-License-Identifier: MIT */
/* cli/cmd/cmd_serve.c - the page of a run, served to a browser. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/cmd/commands.h"
#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/serve/serve.h"

static int run_serve(const struct tmk_args *args)
{
    bool is_live = tmk_args_get(args, "live") != NULL;
    const char *port = tmk_args_get(args, "port");
    if (is_live == (args->n_operands > 0)) {
        tmk_say("serve needs a RUN, a PID or --live");
        return TMK_EXIT_USAGE;
    }
    if (is_live && tmk_args_get(args, "rank")) {
        tmk_say("--rank is about a run; --live shows all processes");
        return TMK_EXIT_USAGE;
    }
    if (port && (strspn(port, "0123456789") != strlen(port) || !port[0] || strlen(port) > 5 ||
                 strtoul(port, NULL, 10) > 65535)) {
        tmk_say("--port: '%s' is not a number from 0 to 65535", port);
        return TMK_EXIT_USAGE;
    }
    return tmk_serve_run(&(struct tmk_serve_settings){
        .target = is_live ? NULL : args->operands[0],
        .rank = tmk_args_get(args, "rank"),
        .listen = tmk_args_get(args, "listen"),
        .port = port,
        .base_path = tmk_args_get(args, "base-path"),
        .host = tmk_args_get(args, "host"),
    });
}

static const struct tmk_option options[] = {
    {"live", 0, NULL, NULL, "show the devices and recorded processes of this machine"},
    {"rank", 0, "N", NULL, "show this rank (the one with the largest peak)"},
    TMK_OPTION_HEADING("where it is served"),
    {"port", 0, "N", NULL, "the port; 0: any that is free (0)"},
    {"listen", 0, "ADDR", NULL, "the address to listen on (127.0.0.1)"},
    {"base-path", 0, "PATH", NULL, "the path under which a proxy shows the page (/)"},
    {"host", 0, "NAME", NULL, "one more name by which browsers may call this machine"},
};

static const char *const description[] = {
    "Print a link to the page of a run. It shows what the file of `tidemark report --format html` "
    "shows, and asks for more detail where you zoom in: every block of a window, and what was "
    "allocated at any moment. It also has a console for SQL.",
    "A process that is being recorded is read again while it runs; the page follows. --live lists "
    "the processes of this machine, each with a link to its page.",
    "The link has a random token. Opening it gives the browser a cookie; without one of them "
    "nothing is answered. The server listens on this machine only, unless --listen says "
    "otherwise. It does not encrypt: on another machine, use the ssh command that is printed when "
    "you are logged in by ssh.",
    "Behind a proxy such as Jupyter's or VS Code's, name the path of the page with --base-path, "
    "and the proxy's name with --host where the proxy passes it on.",
    "Ctrl-C ends it.",
    NULL,
};

static const char *const examples[] = {
    "tidemark serve train.tmk",
    "print the link to its page",
    "tidemark serve 4242 --port 8000",
    "follow a running process",
    "tidemark serve --live",
    "all recorded processes of this machine",
    NULL,
};

const struct tmk_command tmk_cmd_serve = {
    .name = "serve",
    .group = TMK_GROUP_UNDERSTAND,
    .summary = "Serve the page of a run, or of a running job, to a browser",
    .usage = "RUN|PID|--live [options]",
    .description = description,
    .options = options,
    .n_options = TMK_N(options),
    .min_operands = 0,
    .max_operands = 1,
    .operand = TMK_OPERAND_RUN,
    .examples = examples,
    .run = run_serve,
};
