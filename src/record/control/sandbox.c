/* SPDX-License-Identifier: MIT */
/* record/control/sandbox.c - see sandbox.h. */
#include "record/control/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/filters.h"
#include "record/core/seal.h"

static struct {
    char said[TMK_FILTERS_SAID_BYTES]; /* by the environment; "": nothing */
    char shown_at[512]; /* the file that `run` watches; "": none, or it was shown already */
    bool is_launched;
    bool is_refused;
} sandbox;

void tmk_sandbox_prepare(void)
{
    const char *said = getenv(TMK_FILTERS_VARIABLE);
    if (said && strlen(said) < sizeof sandbox.said)
        strcpy(sandbox.said, said);
    const char *shown_at = getenv(TMK_REFUSALS_VARIABLE);
    if (shown_at && *shown_at == '/' && strlen(shown_at) < sizeof sandbox.shown_at)
        strcpy(sandbox.shown_at, shown_at);
    sandbox.is_launched = getenv("TIDEMARK_RUN") != NULL;
}

void tmk_sandbox_hear(const char *said)
{
    if (strlen(said) < sizeof sandbox.said)
        strcpy(sandbox.said, said);
    tmk_seal_refuse(false);
}

bool tmk_sandbox_is_trusted(void)
{
    return strcmp(sandbox.said, TMK_FILTERS_TRUST) == 0;
}

static bool are_known(const struct tmk_filters *own)
{
    struct tmk_filters first;
    const char *said = sandbox.said[0] ? sandbox.said : NULL;
    if (own->n == 0) /* mostly: one file is read, not two */
        return true;
    bool has_first = tmk_filters_read_first("/proc/self", &first);
    return tmk_filters_are_known(own, has_first ? &first : NULL, said, sandbox.is_launched);
}

/* Tell `run`, by two calls that the loader makes for each library. Writing a line anywhere would
 * need others: a filter may look at how a file is opened, and at what is written to. */
static void show_refusal(void)
{
    int before = errno;
    int fd = sandbox.shown_at[0] ? open(sandbox.shown_at, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0)
        close(fd);
    sandbox.shown_at[0] = '\0';
    errno = before;
}

/* Without /proc nothing is known. */
bool tmk_sandbox_allows(void)
{
    struct tmk_filters own = {0};
    bool is_known = tmk_sandbox_is_trusted() ||
                    (tmk_filters_read("/proc/self/status", &own) && are_known(&own));
    sandbox.is_refused = !is_known;
    if (!is_known) {
        tmk_seal_refuse(true);
        show_refusal();
    }
    return !sandbox.is_refused;
}

bool tmk_sandbox_is_refused(void)
{
    return sandbox.is_refused;
}
