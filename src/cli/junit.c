/* SPDX-License-Identifier: MIT */
/* cli/junit.c - see comparison.h: gates as the XML that CI systems show as tests. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "cli/comparison.h"
#include "cli/output_file.h"
#include "kit/utf8.h"

/* Text of strangers in XML: what means something there is written as an entity; what XML has no
 * place for at all (control characters, bytes that are no UTF-8) as U+FFFD. */
static void write_text(FILE *out, const char *text)
{
    while (*text) {
        const char *from = text;
        uint32_t c = tmk_utf8_next(&text);
        bool is_control = c < 0x20 && c != '\n' && c != '\t';
        if (c == '<' || c == '>' || c == '&' || c == '"' || c == '\'')
            fprintf(out, "&#%u;", (unsigned)c);
        else if (c == TMK_UTF8_BAD || is_control || c == 0x7f || c == 0xfffe || c == 0xffff)
            fputs("\xef\xbf\xbd", out);
        else
            fwrite(from, 1, (size_t)(text - from), out);
    }
}

static void write_case(FILE *out, const struct tmk_verdict *v)
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

static void write_suite(FILE *out, const struct tmk_comparison *c)
{
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

int tmk_comparison_junit(const struct tmk_comparison *c, const char *path)
{
    struct tmk_output_file o;
    int status = tmk_output_file_open(&o, path);
    if (status != 0)
        return status;
    int fd = fcntl(o.fd, F_DUPFD_CLOEXEC, 0);
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    status = TMK_EXIT_FINDING;
    if (out) {
        write_suite(out, c);
        status = tmk_close_output(out, path, 0);
    } else {
        tmk_say("cannot write %s: %s", path, strerror(errno));
    }
    int closed = tmk_output_file_close(&o, status == 0);
    return status ? status : closed;
}
