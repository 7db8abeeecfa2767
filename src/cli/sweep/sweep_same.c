/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_same.c - compare the sweep in a folder with the one that the user asks for now:
 * see sweep_plan.h. */
#include <string.h>

#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/sweep/sweep_plan.h"
#include "kit/language.h"
#include "sweep/params.h"
#include "sweep/results.h"

static bool same_texts(const char *const *a, uint32_t n_a, const char *const *b, uint32_t n_b)
{
    bool same = n_a == n_b;
    for (uint32_t i = 0; i < n_a && same; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

static void say_texts(const char *what, const char *const *texts, uint32_t n, const char *between)
{
    fprintf(stderr, "    %s", what);
    for (uint32_t i = 0; i < n; i++)
        fprintf(stderr, "%s%s", i ? between : "", texts[i]);
    fputs(n ? "\n" : _("(none)\n"), stderr);
}

static int say_differs(const struct tmk_results *then, const char *what)
{
    tmk_say(
        "%s belongs to another sweep: %s differs. Give another folder with -o, or go on with that "
        "one by: tidemark sweep --resume %s",
        then->folder, _(what), tmk_xshell_word(then->arena, then->folder));
    return TMK_EXIT_USAGE;
}

static int compare_text_lists(const struct tmk_results *then, const char *what,
                              const char *const *a, uint32_t n_a, const char *const *b,
                              uint32_t n_b, const char *between)
{
    if (same_texts(a, n_a, b, n_b))
        return 0;
    say_differs(then, what);
    say_texts("then: ", a, n_a, between);
    say_texts("now:  ", b, n_b, between);
    return TMK_EXIT_USAGE;
}

static int compare_params(const struct tmk_results *then, const struct tmk_results *now)
{
    const char *a[TMK_SWEEP_MAX_PARAMS], *b[TMK_SWEEP_MAX_PARAMS];
    for (uint32_t i = 0; i < then->n_params; i++)
        a[i] = then->params[i].name;
    for (uint32_t i = 0; i < now->n_params; i++)
        b[i] = now->params[i].name;
    int status = compare_text_lists(then, "which parameters there are", a, then->n_params, b,
                                    now->n_params, " ");
    for (uint32_t i = 0; i < then->n_params && status == 0; i++) {
        const struct tmk_sweep_param *x = &then->params[i], *y = &now->params[i];
        status =
            compare_text_lists(then, x->name, x->values, x->n_values, y->values, y->n_values, ",");
    }
    return status;
}

int tmk_sweep_compare(const struct tmk_results *then, const struct tmk_results *now)
{
    int status = compare_text_lists(then, "the command", then->command, then->n_command,
                                    now->command, now->n_command, " ");
    if (status == 0)
        status = compare_params(then, now);
    if (status == 0)
        status = compare_text_lists(then, "--where", then->wheres, then->n_wheres, now->wheres,
                                    now->n_wheres, "; ");
    if (status == 0 && then->n_repeats != now->n_repeats)
        status = say_differs(then, "--repeats");
    return status;
}
