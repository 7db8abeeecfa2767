/* SPDX-License-Identifier: MIT */
/* cli/answers/diff_causes.c - see diff_answer.h: says why memory has changed. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/answers/diff_answer.h"
#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "kit/print.h"
#include "model/run.h"
#include "passes/diff/align.h"
#include "passes/diff/diff.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/reader.h"

enum { SHOWN_CAUSES = 12, SHOWN_OWNERS = 4 };

/* Write a factor as people say it: "2", "1.5". */
static void write_factor_text(FILE *out, double factor)
{
    double whole = round(factor);
    if (fabs(factor - whole) < 0.005 && whole > 0)
        tmk_print(out, "%.0f", whole);
    else
        tmk_print(out, factor < 0.1 ? "%.3f" : "%.2f", factor);
}

static bool is_of_batch(uint8_t category)
{
    return category == TIDEMARK_ACTIVATION || category == TIDEMARK_INPUT ||
           category == TIDEMARK_AUTOGRAD_DETAIL || category == TIDEMARK_KV_CACHE;
}

/* Returns what such a change of sizes usually comes from; NULL: it is hard to say. */
static const char *usual_reason(const struct tmk_diff_cause *c, bool is_even)
{
    bool is_adapter = c->owner && strstr(c->owner, "lora_");
    if (!is_even || fabs(c->most_factor - 1) < 0.1)
        return NULL;
    if (is_of_batch(c->category) && is_adapter)
        return NULL; /* both a rank and a batch do */
    if (is_of_batch(c->category))
        return c->most_factor > 1 ? _("as a larger batch or longer sequence does")
                                  : _("as a smaller batch or shorter sequence does");
    if (is_adapter)
        return c->most_factor > 1 ? _("as a higher rank does") : _("as a lower rank does");
    return fabs(c->most_factor - 0.5) < 0.01 ? _("as half the precision does") : NULL;
}

static void write_resized(FILE *out, const struct tmk_diff_cause *c)
{
    char count[TMK_AMOUNT_BYTES];
    bool is_even = c->most_factor - c->least_factor <= 0.01 * c->most_factor;
    const char *reason = usual_reason(c, is_even);
    bool is_all = c->n_resized == c->n_blocks[0] && c->n_blocks[0] == c->n_blocks[1];
    tmk_print(out, "%s%s", is_all ? _("the same ") : "", tmk_count_text(c->n_resized, count));
    if (!is_all)
        tmk_print(out, _(" of %s"), tmk_count_text(c->n_blocks[1], count));
    tmk_print(out, _(" block%s, %s"), c->n_blocks[1] == 1 ? "" : "s",
              c->n_resized > 1 && is_even ? _("each ") : "");
    write_factor_text(out, c->least_factor);
    if (!is_even) {
        tmk_print(out, _(" to "));
        write_factor_text(out, c->most_factor);
    }
    tmk_print(out, _(" times as large%s%s%s"), reason ? " (" : "", reason ? reason : "",
              reason ? ")" : "");
}

static void write_part(FILE *out, const char *what, int64_t bytes, bool *is_first)
{
    char text[TMK_AMOUNT_BYTES];
    if (bytes == 0)
        return;
    tmk_print(out, "%s%s %s", *is_first ? "" : ", ", _(what), tmk_change_text(bytes, text));
    *is_first = false;
}

/* Write what a change of the number of blocks consists of, where that is not obvious. */
static void write_parts(FILE *out, const struct tmk_diff_split *s)
{
    bool is_first = true;
    if (!s->resized && !s->added && !s->gone)
        return;
    tmk_print(out, ": ");
    write_part(out, N_("other sizes"), s->resized, &is_first);
    write_part(out, s->recounted < 0 ? N_("fewer") : N_("more"), s->recounted, &is_first);
    write_part(out, N_("new places"), s->added, &is_first);
    write_part(out, N_("places gone"), s->gone, &is_first);
}

static void write_block_change(FILE *out, uint64_t n)
{
    char count[TMK_AMOUNT_BYTES];
    tmk_print(out, tmk_plural("%s block", "%s blocks", n), tmk_count_text(n, count));
}

/* Write about blocks that only one side has. */
static void write_only(FILE *out, const struct tmk_diff_cause *c, enum tmk_side side)
{
    uint64_t n = c->n_parameters[side];
    write_block_change(out, c->n_blocks[side]);
    if (n && c->n_blocks[side] % n == 0)
        tmk_print(out, _(" (%" PRIu64 " for each of %" PRIu64 " parameters)"),
                  c->n_blocks[side] / n, n);
    tmk_print(out, _(", none in %s"), side == TMK_SIDE_A ? "B" : "A");
}

/* Write how the change came about. */
static void write_how(FILE *out, const struct tmk_diff_cause *c)
{
    const struct tmk_diff_split *s = &c->split;
    if (c->n_blocks[0] == 0 || c->n_blocks[1] == 0) {
        write_only(out, c, c->n_blocks[0] ? TMK_SIDE_A : TMK_SIDE_B);
    } else if (!s->recounted && !s->added && !s->gone) {
        write_resized(out, c);
    } else {
        tmk_print(out, "%" PRIu64 " -> ", c->n_blocks[0]);
        write_block_change(out, c->n_blocks[1]);
        write_parts(out, s);
    }
}

/* Returns whether causes differ in their modules only (lora_A and lora_B of q and v). They are
 * shown as one. */
static bool are_alike_but_for_module(const struct tmk_diff_cause *a, const struct tmk_diff_cause *b)
{
    return a->owner && b->owner && a->category == b->category && a->bytes[0] == b->bytes[0] &&
           a->bytes[1] == b->bytes[1] && a->n_blocks[0] == b->n_blocks[0] &&
           a->n_blocks[1] == b->n_blocks[1] && a->n_resized == b->n_resized &&
           memcmp(&a->split, &b->split, sizeof a->split) == 0;
}

/* Returns how many bytes, up to a dot, all n names begin with. */
static size_t common_start(const struct tmk_diff_answer *x, uint64_t i, uint64_t n)
{
    const char *first = tmk_diff_cause(x->diff, i)->owner;
    size_t same = strlen(first);
    for (uint64_t k = 1; k < n; k++) {
        const char *other = tmk_diff_cause(x->diff, i + k)->owner;
        size_t at = 0;
        while (at < same && first[at] == other[at])
            at++;
        same = at;
    }
    while (same > 0 && first[same - 1] != '.')
        same--;
    return same;
}

/* Write "layers.*.q" or, for several modules, "layers.*.{q, v}". */
static void write_owners(FILE *out, const struct tmk_diff_answer *x, uint64_t i, uint64_t n)
{
    const char *first = tmk_diff_cause(x->diff, i)->owner;
    size_t same = n > 1 ? common_start(x, i, n) : 0;
    tmk_print(out, _(" of %.*s%s%s"), (int)same, first, n > 1 ? "{" : "", first + same);
    for (uint64_t k = 1; k < n && k < SHOWN_OWNERS; k++)
        tmk_print(out, ", %s", tmk_diff_cause(x->diff, i + k)->owner + same);
    if (n > SHOWN_OWNERS)
        tmk_print(out, _(" and %" PRIu64 " more"), n - SHOWN_OWNERS);
    tmk_print(out, n > 1 ? "}" : "");
}

static void write_causes(FILE *out, const struct tmk_diff_answer *x, uint64_t i, uint64_t n)
{
    const struct tmk_diff_cause *c = tmk_diff_cause(x->diff, i);
    struct tmk_frame f;
    char frame[TMK_FRAME_TEXT_BYTES];
    bool has_site = tmk_stack_site(x->shown->sides[c->stack_side].p, c->stack, &f);
    bool is_known = c->category != TIDEMARK_UNKNOWN;
    fputs(is_known ? _(tmk_category_name(c->category)) : _("blocks"), out);
    if (c->owner)
        write_owners(out, x, i, n);
    else if (has_site)
        tmk_print(out, _(" from %s"), tmk_frame_text(&f, true, frame));
    else if (!is_known)
        fputs(_(" of unknown origin"), out);
    tmk_print(out, n > 1 ? _(": in each ") : ": ");
    write_how(out, c);
}

static void print_cause(const struct tmk_sheet *sheet, const char *change, const char *text)
{
    char lead[TMK_AMOUNT_BYTES + 8];
    snprintf(lead, sizeof lead, "  %12s  ", change);
    tmk_sheet_wrap(sheet->out, text, lead);
}

/* Print `n` causes that are alike. */
static void print_alike(const struct tmk_sheet *sheet, const struct tmk_diff_answer *x, uint64_t i,
                        uint64_t n, int64_t bytes)
{
    char change[TMK_AMOUNT_BYTES], *text = NULL;
    size_t size = 0;
    FILE *out = tmk_xmemstream(&text, &size);
    write_causes(out, x, i, n);
    fclose(out);
    print_cause(sheet, tmk_change_text(bytes, change), text);
    free(text);
}

/* ---- those that are alike as one, largest first ---- */

struct bunch {
    uint64_t first, count;
    int64_t change;
};

/* Add such that sums are at worst wrong, never undefined: a trace may make up sizes. */
static void add_to_sum(int64_t *sum, int64_t more)
{
    (void)__builtin_add_overflow(*sum, more, sum);
}

static uint64_t magnitude_of_change(int64_t change)
{
    return change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
}

static int by_cause_change(const void *va, const void *vb)
{
    const struct bunch *a = va, *b = vb;
    uint64_t size_a = magnitude_of_change(a->change), size_b = magnitude_of_change(b->change);
    if (size_a != size_b)
        return size_a > size_b ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

/* Find the causes that have changed anything; the caller's. */
static struct bunch *find_bunches(const struct tmk_diff_answer *x, uint64_t *ret_n)
{
    uint64_t n_causes = tmk_diff_n_causes(x->diff), n = 0;
    struct bunch *bunches = tmk_xcalloc(n_causes + 1, sizeof *bunches);
    for (uint64_t i = 0; i < n_causes; i++) {
        const struct tmk_diff_cause *c = tmk_diff_cause(x->diff, i);
        int64_t change = tmk_diff_change(c->bytes[0], c->bytes[1]);
        struct bunch *last = n ? &bunches[n - 1] : NULL;
        if (change == 0)
            continue;
        if (last && are_alike_but_for_module(tmk_diff_cause(x->diff, last->first), c)) {
            last->count++;
            add_to_sum(&last->change, change);
        } else {
            bunches[n++] = (struct bunch){.first = i, .count = 1, .change = change};
        }
    }
    qsort(bunches, n, sizeof *bunches, by_cause_change);
    *ret_n = n;
    return bunches;
}

/* Print in one line the causes that do not fit. */
static void print_others(const struct tmk_sheet *sheet, const struct bunch *bunches, uint64_t n)
{
    char change[TMK_AMOUNT_BYTES], up[TMK_AMOUNT_BYTES], down[TMK_AMOUNT_BYTES];
    int64_t more = 0, less = 0, both = 0;
    for (uint64_t i = 0; i < n; i++)
        add_to_sum(bunches[i].change > 0 ? &more : &less, bunches[i].change);
    if (n == 0)
        return;
    char *text = tmk_xformat(_("%" PRIu64 " smaller changes: %s, %s"), n, tmk_change_text(more, up),
                             tmk_change_text(less, down));
    add_to_sum(&both, more);
    add_to_sum(&both, less);
    print_cause(sheet, tmk_change_text(both, change), text);
    free(text);
}

static void print_heading(struct tmk_sheet *sheet, double attributed)
{
    double percent = floor(1000 * attributed) / 10;
    char *text = tmk_xformat(percent == 100 ? _("Why (%.0f %% of the change is attributed)")
                                            : _("Why (%.1f %% of the change is attributed)"),
                             percent);
    tmk_sheet_heading(sheet, text);
    free(text);
}

/* Returns whether backward recomputes activations. */
static bool recomputes_forward(const struct tmk_process *p)
{
    struct tmk_frame f;
    for (uint32_t i = 1; i <= tmk_reader_n_frames(p->reader); i++)
        if (tmk_reader_frame(p->reader, i, &f) && f.file && f.address == 0 &&
            strstr(f.file, "/torch/utils/checkpoint.py"))
            return true;
    return false;
}

static void print_notes(struct tmk_sheet *sheet, const struct tmk_diff_answer *x)
{
    bool a = recomputes_forward(x->shown->sides[0].p), b = recomputes_forward(x->shown->sides[1].p);
    if (a != b)
        tmk_sheet_text(sheet,
                       "%s recomputes activations in backward (torch.utils.checkpoint), %s "
                       "does not.",
                       a ? "A" : "B", a ? "B" : "A");
    if (tmk_diff_unwraps(x->diff))
        tmk_sheet_text(sheet, "Names are compared without what wrappers add (module, _orig_mod, "
                              "base_model.model, base_layer ...): more of them match so.");
}

void tmk_diff_causes_text(const struct tmk_diff_answer *x, struct tmk_sheet *sheet)
{
    char change[TMK_AMOUNT_BYTES];
    int64_t rest = tmk_diff_answer_unexplained(x);
    uint64_t n;
    struct bunch *bunches = find_bunches(x, &n);
    if (n > 0 || rest != 0)
        print_heading(sheet, tmk_diff_answer_attributed(x));
    for (uint64_t i = 0; i < n && i < SHOWN_CAUSES; i++)
        print_alike(sheet, x, bunches[i].first, bunches[i].count, bunches[i].change);
    if (n > SHOWN_CAUSES)
        print_others(sheet, bunches + SHOWN_CAUSES, n - SHOWN_CAUSES);
    free(bunches);
    if (rest != 0)
        print_cause(sheet, tmk_change_text(rest, change),
                    _("in blocks that the trace no longer has, or could not follow"));
    print_notes(sheet, x);
}
