/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_secrets.c - words that must not appear anywhere (--redact): see sweep_plan.h. */
#include <stdlib.h>
#include <string.h>

#include "cli/front/command.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/sweep/sweep_plan.h"
#include "sweep/results.h"

/* Read secrets: a word, or "env:NAME" for the value of that variable, which then appears in no list
 * of processes. */
int tmk_sweep_read_secrets(struct tmk_sweep_plan *p, const struct tmk_args *args)
{
    const char *words[TMK_MAX_VALUES];
    unsigned n = tmk_args_list(args, "redact", words);
    for (unsigned i = 0; i < n; i++) {
        bool is_variable = strncmp(words[i], "env:", 4) == 0;
        const char *secret = is_variable ? getenv(words[i] + 4) : words[i];
        if (!secret || !*secret)
            continue; /* an empty secret */
        if (p->n_secrets == TMK_SWEEP_MAX_SECRETS) {
            tmk_say("--redact: more than %d words", TMK_SWEEP_MAX_SECRETS);
            return TMK_EXIT_USAGE;
        }
        p->secrets[p->n_secrets++] = tmk_xstrdup(secret);
    }
    return 0;
}

/* The length of the longest secret that `at` begins with; 0: none. */
static size_t secret_at(const struct tmk_sweep_plan *p, const char *at)
{
    size_t longest = 0;
    for (unsigned i = 0; i < p->n_secrets; i++) {
        size_t n = strlen(p->secrets[i]);
        if (n > longest && strncmp(at, p->secrets[i], n) == 0)
            longest = n;
    }
    return longest;
}

bool tmk_sweep_has_secret(const struct tmk_sweep_plan *p, const char *text)
{
    for (; *text; text++)
        if (secret_at(p, text) > 0)
            return true;
    return false;
}

char *tmk_sweep_redacted(const struct tmk_sweep_plan *p, const char *text)
{
    char *out = NULL;
    size_t n;
    FILE *f = tmk_xmemstream(&out, &n);
    for (const char *at = text; *at;) {
        size_t n_secret = secret_at(p, at);
        if (n_secret)
            fputs("***", f);
        else
            fputc(*at, f);
        at += n_secret ? n_secret : 1;
    }
    fclose(f);
    return out;
}

/* Check texts that the journal must contain unchanged, so that the sweep can be resumed. */
int tmk_sweep_check_secrets(const struct tmk_sweep_plan *p)
{
    const struct tmk_results *r = p->results;
    const char *where = NULL;
    for (uint32_t i = 0; i < r->n_params; i++)
        for (uint32_t v = 0; v < r->params[i].n_values; v++)
            if (tmk_sweep_has_secret(p, r->params[i].values[v]))
                where = "a value of --param";
    for (uint32_t i = 0; i < r->n_wheres; i++)
        if (tmk_sweep_has_secret(p, r->wheres[i]))
            where = "--where";
    if (!where)
        return 0;
    tmk_say(
        "--redact: %s has a word that may be written nowhere, but names configurations in every "
        "file; pass secrets by the environment",
        where);
    return TMK_EXIT_USAGE;
}
