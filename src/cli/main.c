/* SPDX-License-Identifier: MIT */
/* cli/main.c - the program: find the command, take its arguments apart, run it. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/front/command.h"
#include "cli/front/manual.h"
#include "cli/front/messages.h"
#include "cli/front/usage.h"
#include "cli/front/version.h"
#include "cli/output/pager.h"
#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/remote/remote.h"
#include "cli/remote/remote_end.h"
#include "cli/remote/ssh.h"
#include "cli/run/watch.h"
#include "kit/language.h"

/* Take an option about the terminal that stands before the command. Returns how many arguments it
 * has, 0: it is none, or -1 after a message. */
static int take_terminal_option(char **argv)
{
    static const char colour[] = "--color";
    size_t n = strlen(colour);
    if (strcmp(argv[0], "--no-pager") == 0) {
        tmk_pager_forbid();
        return 1;
    }
    if (strncmp(argv[0], colour, n) != 0 || (argv[0][n] != '\0' && argv[0][n] != '='))
        return 0;
    const char *when = argv[0][n] == '=' ? argv[0] + n + 1 : argv[1];
    if (when && tmk_terminal_choose_colour(when))
        return argv[0][n] == '=' ? 1 : 2;
    if (when)
        tmk_say("--color: '%s' is not one of %s", when, "always|never|auto");
    else
        tmk_say("--color wants always, never or auto");
    return -1;
}

/* Take the options that stand before the command. Returns the command, or NULL after a message. */
static char **take_global_options(char **argv)
{
    while (argv[0]) {
        int n = tmk_take_language(argv);
        if (n == 0)
            n = take_terminal_option(argv);
        if (n < 0)
            return NULL;
        if (n == 0)
            break;
        argv += n;
    }
    return argv;
}

static int run_command(const struct tmk_command *c, char **argv)
{
    struct tmk_args args;
    int status = tmk_args_parse(c, argv, &args);
    if (status != 0)
        return status;
    if (args.wants_help || c->is_paged)
        tmk_pager_begin();
    if (args.wants_help) {
        tmk_help_command(stdout, c);
        return TMK_EXIT_OK;
    }
    if (tmk_args_want_data(&args))
        tmk_language_begin_data();
    return !c->asks_there && tmk_remote_run(&args, &status) ? status : c->run(&args);
}

/* Take a command line apart and do no more. Returns 0, or an exit status after a message. */
static int parse_only(char **argv)
{
    struct tmk_args args;
    const struct tmk_command *c = argv[0] ? tmk_command_find(argv[0]) : NULL;
    return c ? tmk_args_parse(c, argv + 1, &args) : TMK_EXIT_USAGE;
}

/* Do what `help` does for the build and for tests, and no manual names. False: something else. */
static bool help_for_us(char **argv, int *ret_status)
{
    *ret_status = TMK_EXIT_OK;
    if (strcmp(argv[0], "--markdown") == 0)
        tmk_help_markdown(stdout);
    else if (strcmp(argv[0], "--messages") == 0)
        tmk_messages_write(stdout);
    else if (strcmp(argv[0], "--write") == 0 && argv[1])
        *ret_status = tmk_manual_write(argv[1]);
    else if (strcmp(argv[0], "--parse") == 0)
        *ret_status = parse_only(argv + 1);
    else
        return false;
    return true;
}

static int dispatch_command(char **argv)
{
    int status;
    tmk_language_from_environment();
    argv = take_global_options(argv);
    if (!argv)
        return TMK_EXIT_USAGE;
    if (!argv[0]) {
        tmk_help_all(stderr);
        return TMK_EXIT_USAGE;
    }
    if (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        tmk_help_all(stdout);
        return TMK_EXIT_OK;
    }
    if (strcmp(argv[0], "--version") == 0) {
        tmk_version_write(stdout, argv[1] && strcmp(argv[1], "--json") == 0);
        return TMK_EXIT_OK;
    }
    if (strcmp(argv[0], "help") == 0 && argv[1] && help_for_us(argv + 1, &status))
        return status;
    if (strcmp(argv[0], TMK_REMOTE_END) == 0)
        return tmk_remote_end(dispatch_command);
    const struct tmk_command *c = tmk_command_find(argv[0]);
    return c ? run_command(c, argv + 1) : tmk_usage_unknown_command(argv);
}

/* Where stdin, stdout or stderr is closed, the next file that is opened would take its number, and
 * be written to in its stead. What stands there instead can be neither read nor written the wrong
 * way, and a program that we start finds it closed, as it was. */
static void occupy_standard_files(void)
{
    struct stat st;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fstat(fd, &st) == 0 || errno != EBADF)
            continue;
        int other = open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
        if (other >= 0 && other != fd)
            close(other);
    }
}

int main(int argc, char **argv)
{
    if (argc < 1)
        return TMK_EXIT_USAGE;
    occupy_standard_files();
    tmk_terminal_init();
    tmk_watch_prepare();
    int status = dispatch_command(argv + 1);
    return tmk_close_output(stdout, N_("the output"), status); /* a pager may have changed stdout */
}
