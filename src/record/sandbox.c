/* SPDX-License-Identifier: MIT */
/* record/sandbox.c - see sandbox.h. */
#include "record/sandbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/filters.h"
#include "record/refusal.h"
#include "record/seal.h"

static struct {
    char said[TMK_FILTERS_SAID_BYTES]; /* by the environment; "": nothing */
    bool is_launched;
    bool is_refused;
} sandbox;

void tmk_sandbox_prepare(void)
{
    const char *said = getenv(TMK_FILTERS_VARIABLE);
    if (said && strlen(said) < sizeof sandbox.said)
        strcpy(sandbox.said, said);
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

/* Without /proc nothing is known. */
bool tmk_sandbox_allows(void)
{
    struct tmk_filters own = {0};
    bool is_trusted = tmk_sandbox_is_trusted();
    bool has_own = is_trusted || tmk_filters_read("/proc/self/status", &own);
    int os_error = has_own ? 0 : errno;
    sandbox.is_refused = !is_trusted && !(has_own && are_known(&own));
    if (sandbox.is_refused) {
        tmk_seal_refuse(true);
        tmk_refusal_note_as(own.pid, TMK_STOP_SANDBOX, os_error);
    }
    return !sandbox.is_refused;
}

bool tmk_sandbox_is_refused(void)
{
    return sandbox.is_refused;
}
