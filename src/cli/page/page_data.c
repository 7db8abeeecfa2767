/* SPDX-License-Identifier: MIT */
/* cli/page/page_data.c - see page_data.h. */
#include "cli/page/page_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answers/health.h"
#include "cli/answers/process_answer.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/page/page_columns.h"
#include "cli/page/page_parts.h"
#include "cli/page/page_stacks.h"
#include "kit/language.h"
#include "kit/progress.h"
#include "kit/tree.h"
#include "model/run.h"
#include "passes/oom/explain.h"
#include "trace/replay.h"

struct tmk_page_detail tmk_page_detail_halved(unsigned times)
{
    return (struct tmk_page_detail){
        .merged_bins = UINT32_C(1) << times,
        .n_keys = times == 0 ? 24 : 16,
        .n_blocks = UINT64_C(80000) >> times,
        .n_peak_rows = UINT64_C(20000) >> times,
        .n_steps = UINT64_C(10000) >> times,
        .n_map_blocks = UINT64_C(20000) >> times,
        .n_ranks = UINT64_C(64) >> times,
    };
}

/* Everything drawn; the stacks last, when it is known which are named. */
static void put_drawn(struct tmk_page_parts *p)
{
    tmk_tree_object(p->tree, "drawn");
    tmk_page_put_timeline(p);
    tmk_page_put_blocks(p);
    tmk_page_put_peak(p);
    tmk_page_put_map(p);
    tmk_page_put_steps(p);
    tmk_page_put_processes(p);
    tmk_page_stacks_put(p->stacks, p->columns);
    tmk_page_columns_json(p->columns, p->tree);
    tmk_tree_end(p->tree);
}

/* Explaining takes sweeps: of a long run once, in the language that is chosen. */
enum { MAX_EVENTS_EXPLAINED_AGAIN = 2000000 };

/* Write the report with its sentences in a language. What has been found stays; what is made of
 * words is made anew. */
static int put_report_in(const char *language, const struct tmk_report_answer *r,
                         struct tmk_tree *tree, const char *key)
{
    struct tmk_report_answer told = *r;
    bool is_explained = r->explanation && r->about.n_events <= MAX_EVENTS_EXPLAINED_AGAIN;
    struct tmk_language_state before = tmk_language_begin_people(language);
    tmk_health_init(&told.health, told.run, &r->about, told.ranks);
    if (is_explained && tmk_explanation_open(r->about.p, NULL, &told.explanation, NULL) < 0)
        tmk_die("out of memory");
    int status = tmk_report_json_chosen(&told, tree, key);
    if (is_explained)
        tmk_explanation_close(told.explanation);
    tmk_health_fini(&told.health);
    tmk_language_end_people(&before);
    return status;
}

static int write_page_json(struct tmk_page_parts *p, const struct tmk_page_source *s, FILE *out)
{
    struct tmk_tree *tree = p->tree;
    tmk_tree_init_json(tree, out, 0);
    tmk_tree_object(tree, NULL);
    tmk_tree_u64(tree, "page", 1);
    tmk_tree_text(tree, "language", tmk_language_name());
    int status = put_report_in("en", s->report, tree, "report");
    if (status == 0)
        status = put_report_in("zh", s->report, tree, "report_zh");
    tmk_page_put_settings(p);
    put_drawn(p);
    tmk_tree_end(tree);
    return status;
}

static char *join_bytes(const char *json, size_t n_json, const struct tmk_page_columns *c,
                        size_t *ret_n)
{
    *ret_n = 4 + n_json + (size_t)c->n_bytes;
    uint8_t *bytes = tmk_xcalloc(*ret_n, 1);
    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(n_json >> 8 * i);
    memcpy(bytes + 4, json, n_json);
    if (c->n_bytes > 0)
        memcpy(bytes + 4 + n_json, c->bytes, (size_t)c->n_bytes);
    return (char *)bytes;
}

int tmk_page_data(const struct tmk_page_source *s, const struct tmk_page_detail *d,
                  char **ret_bytes, size_t *ret_n)
{
    struct tmk_page_columns columns = {0};
    struct tmk_page_stacks stacks;
    struct tmk_tree tree;
    tmk_page_stacks_init(&stacks, s->report->about.p);
    struct tmk_page_parts parts = {.source = s,
                                   .detail = d,
                                   .about = &s->report->about,
                                   .tree = &tree,
                                   .columns = &columns,
                                   .stacks = &stacks};
    char *json = NULL;
    size_t n_json = 0;
    FILE *out = tmk_xmemstream(&json, &n_json);
    int status = write_page_json(&parts, s, out);
    if (fclose(out) != 0)
        tmk_die("out of memory");
    *ret_bytes = join_bytes(json, n_json, &columns, ret_n);
    free(json);
    tmk_page_columns_fini(&columns);
    tmk_page_stacks_fini(&stacks);
    return status;
}

void tmk_page_window_data(struct tmk_process *p, const struct tmk_pyramid *y, char **ret_bytes,
                          size_t *ret_n)
{
    struct tmk_page_detail detail = tmk_page_detail_halved(0);
    struct tmk_process_answer about = {.p = p};
    struct tmk_page_source source = {.pyramid = y};
    struct tmk_page_columns columns = {0};
    struct tmk_page_stacks stacks;
    struct tmk_tree tree;
    tmk_page_stacks_init(&stacks, p);
    struct tmk_page_parts parts = {.source = &source,
                                   .detail = &detail,
                                   .about = &about,
                                   .tree = &tree,
                                   .columns = &columns,
                                   .stacks = &stacks};
    char *json = NULL;
    size_t n_json = 0;
    FILE *out = tmk_xmemstream(&json, &n_json);
    tmk_tree_init_json(&tree, out, 0);
    tmk_tree_object(&tree, NULL);
    tmk_tree_u64(&tree, "page", 1);
    tmk_tree_object(&tree, "drawn");
    tmk_page_put_timeline(&parts);
    tmk_page_put_blocks(&parts);
    tmk_page_stacks_put(&stacks, &columns);
    tmk_page_columns_json(&columns, &tree);
    tmk_tree_end(&tree);
    tmk_tree_end(&tree);
    if (fclose(out) != 0)
        tmk_die("out of memory");
    *ret_bytes = join_bytes(json, n_json, &columns, ret_n);
    free(json);
    tmk_page_columns_fini(&columns);
    tmk_page_stacks_fini(&stacks);
}

int tmk_page_sweep(struct tmk_process *p, uint64_t start_ns, uint64_t end_ns, uint32_t n_bins,
                   bool shows_progress, struct tmk_pyramid **ret, struct tmk_error *err)
{
    struct tmk_progress progress;
    struct tmk_replay rp;
    int rc = tmk_pyramid_open_window(p, start_ns, end_ns, n_bins, ret);
    if (rc < 0)
        return rc;
    const struct tmk_visitor visitors[] = {tmk_pyramid_visitor(*ret),
                                           {.arg = &progress, .progress = tmk_progress_tell}};
    if (shows_progress)
        tmk_progress_init(&progress, stderr, p->file);
    rc = tmk_process_sweep(p, visitors, shows_progress ? 2 : 1, &rp, err);
    if (shows_progress)
        tmk_progress_fini(&progress);
    if (rc < 0)
        return rc;
    rc = tmk_pyramid_finish(*ret, &rp, err);
    tmk_replay_fini(&rp);
    return rc;
}
