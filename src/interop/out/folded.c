/* SPDX-License-Identifier: MIT */
/* interop/out/folded.c - writes one stack a line, as flamegraph.pl and related tools read them:
 * frames from the outermost in, semicolons between them, a blank and the bytes. */
#include <inttypes.h>
#include <stdio.h>

#include "interop/out/export.h"
#include "interop/out/stack_sums.h"
#include "kit/utf8.h"
#include "model/run.h"
#include "trace/defs.h"
#include "trace/reader.h"

/* Replace characters that would end a frame or a line. */
static void write_folded_frame(FILE *out, const char *text)
{
    uint32_t c;
    for (const char *from = text; (c = tmk_utf8_next(&text)) != 0; from = text) {
        if (c == TMK_UTF8_BAD)
            fputs("\xef\xbf\xbd", out);
        else if (c == ';' || tmk_utf8_is_unseen(c))
            fputc(c == ';' ? ':' : ' ', out);
        else
            fwrite(from, 1, (size_t)(text - from), out);
    }
}

static void write_stack(FILE *out, const struct tmk_process *p, uint32_t stack)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    char text[TMK_FRAME_TEXT_BYTES];
    if (!tmk_reader_stack(p->reader, stack, &frames) || frames.n_frames == 0) {
        fputs("[no stack]", out);
        return;
    }
    for (uint32_t i = frames.n_frames; i-- > 0;) {
        bool is_known = tmk_process_frame(p, frames.frames[i], &f);
        write_folded_frame(out, tmk_frame_text(is_known ? &f : NULL, true, text));
        if (i > 0)
            fputc(';', out);
    }
}

int tmk_export_folded(const struct tmk_export *x, FILE *out, struct tmk_export_notes *ret,
                      struct tmk_error *err)
{
    struct tmk_stack_sums sums;
    int rc = tmk_stack_sums_make(x, &sums, err);
    *ret = (struct tmk_export_notes){.at_bytes = sums.total.bytes[TMK_EXPORT_AT]};
    if (rc == 0)
        rc = tmk_stack_sums_check(x, &sums, err);
    for (uint32_t i = 0; rc == 0 && i < sums.n; i++) {
        if (sums.stacks[i].bytes[x->what] == 0)
            continue;
        write_stack(out, x->p, i);
        fprintf(out, " %" PRIu64 "\n", sums.stacks[i].bytes[x->what]);
        ret->n_events++;
    }
    tmk_stack_sums_fini(&sums);
    return rc;
}
