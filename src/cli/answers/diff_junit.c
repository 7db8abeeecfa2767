/* SPDX-License-Identifier: MIT */
/* cli/answers/diff_junit.c - see diff_answer.h: gates as the XML that CI systems show as tests. */
#include <stdlib.h>
#include <string.h>

#include "cli/answers/diff_answer.h"
#include "cli/output/output_file.h"
#include "kit/utf8.h"

/* Text of strangers in XML: what means something there is written as an entity; what is not seen
 * (kit/utf8.h), and bytes that are no UTF-8, as U+FFFD. That is all that XML has no place for, but
 * two. */
static void write_text(FILE *out, const char *text)
{
    while (*text) {
        const char *from = text;
        uint32_t c = tmk_utf8_next(&text);
        bool is_odd = tmk_utf8_is_unseen(c) || c == 0xfffe || c == 0xffff;
        if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
            fprintf(out, "&#%u;", (unsigned)c);
        else if (c == TMK_UTF8_BAD || is_odd)
            fputs("\xef\xbf\xbd", out);
        else
            fwrite(from, 1, (size_t)(text - from), out);
    }
}

static void write_case(FILE *out, const struct tmk_gate_verdict *v)
{
    char *text = tmk_verdict_text(v);
    fputs("  <testcase classname=\"tidemark.diff\" name=\"", out);
    write_text(out, v->gate.text);
    fputs("\">\n", out);
    if (!v->passed) {
        fputs("    <failure message=\"", out);
        write_text(out, v->gate.text);
        fputs(": ", out);
        write_text(out, text);
        fputs("\"/>\n", out);
    }
    fputs("    <system-out>", out);
    write_text(out, text);
    fputs("</system-out>\n  </testcase>\n", out);
    free(text);
}

static void write_suite(FILE *out, const void *arg)
{
    const struct tmk_diff_answer *c = arg;
    unsigned n_failed = 0;
    for (unsigned i = 0; i < c->n_verdicts; i++)
        n_failed += !c->verdicts[i].passed;
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tidemark diff ");
    write_text(out, c->paths[0]);
    fputc(' ', out);
    write_text(out, c->paths[1]);
    fprintf(out, "\" tests=\"%u\" failures=\"%u\" errors=\"0\">\n", c->n_verdicts, n_failed);
    for (unsigned i = 0; i < c->n_verdicts; i++)
        write_case(out, &c->verdicts[i]);
    fputs("</testsuite>\n", out);
}

int tmk_diff_junit(const struct tmk_diff_answer *c, const char *path)
{
    return tmk_output_file_write(path, write_suite, c);
}
