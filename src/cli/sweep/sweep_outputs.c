/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_outputs.c - see sweep_outputs.h. */
#include "cli/sweep/sweep_outputs.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/output/output_file.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/sweep/sweep_answer.h"
#include "kit/arena.h"
#include "kit/language.h"
#include "sweep/advice.h"
#include "sweep/fit.h"

/* ---- the answer ---- */

static void open_answer(struct tmk_sweep_answer *v, const struct tmk_survey *g,
                        const struct tmk_sweep_outputs_options *o)
{
    *v = (struct tmk_sweep_answer){.g = g, .r = g->r};
    if (tmk_fit_make(g->r, TMK_FIT_RESERVED, &v->reserved, NULL) == TMK_ENOMEM ||
        tmk_advice_make(g, v->reserved, o->capacity, &v->arena, &v->advice) != 0)
        tmk_die("out of memory");
    v->largest_text = tmk_sweep_say_largest(v);
    v->look_command = tmk_sweep_look_command(v);
    v->fit_text = tmk_sweep_say_fit(v);
    if (!v->fit_text)
        tmk_die("out of memory");
}

static void close_answer(struct tmk_sweep_answer *v)
{
    tmk_fit_close(v->reserved);
    tmk_arena_fini(&v->arena);
}

/* ---- files ---- */

typedef void writer(FILE *out, const struct tmk_sweep_answer *v);

struct output_write {
    writer *write;
    const struct tmk_sweep_answer *v;
};

static void write_sweep_answer(FILE *out, const void *arg)
{
    const struct output_write *w = arg;
    w->write(out, w->v);
}

/* Write one file. 0, or an exit status after a message. */
static int write_output(const struct tmk_sweep_answer *v, const char *name, writer *write)
{
    char *path = tmk_xformat("%s/%s", v->r->folder, name);
    int status = tmk_output_file_write(path, write_sweep_answer, &(struct output_write){write, v});
    free(path);
    return status;
}

static const struct {
    const char *name;
    writer *write;
    bool is_detailed;
} files[] = {
    {"memory_profile_results.json", tmk_sweep_write_json, false},
    {"memory_profile_summary.csv", tmk_sweep_write_csv, false},
    {"detailed_memory_results.json", tmk_sweep_write_detailed, true},
    {"index.html", tmk_sweep_write_page, false},
};

/* Write the files, which have no language. 0, or an exit status after a message. */
static int write_files(const struct tmk_survey *g, const struct tmk_sweep_outputs_options *o)
{
    struct tmk_sweep_answer v;
    int status = 0;
    tmk_language_begin_data();
    open_answer(&v, g, o);
    for (size_t i = 0; i < TMK_N(files); i++)
        if (o->detailed || !files[i].is_detailed) {
            int own = write_output(&v, files[i].name, files[i].write);
            status = status ? status : own;
        }
    close_answer(&v);
    tmk_language_end_data();
    return status;
}

int tmk_sweep_outputs(const struct tmk_survey *g, const struct tmk_sweep_outputs_options *o)
{
    struct tmk_sweep_answer v;
    int status = write_files(g, o);
    if (!o->console)
        return status;
    open_answer(&v, g, o); /* once more, in the reader's language */
    tmk_sweep_write_text(o->console, &v);
    close_answer(&v);
    return status;
}
