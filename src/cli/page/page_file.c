/* SPDX-License-Identifier: MIT */
/* cli/page/page_file.c - see page_file.h. */
#include "cli/page/page_file.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "cli/answers/report_answer.h"
#include "cli/front/target.h"
#include "cli/output/chart.h"
#include "cli/output/html.h"
#include "cli/output/output_file.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/page/page_data.h"
#include "kit/base64.h"
#include "model/run.h"
#include "passes/pyramid/pyramid.h"

/* web/dist/page.js and page.css, built from web/. */
extern const char tmk_page_program[];
extern const char tmk_page_style[];

enum { MAX_HALVINGS = 6, SHELL_BYTES = 4096 };

/* ---- data ---- */

static char *pack_bytes(const char *bytes, size_t n)
{
    uLongf packed_n = compressBound(n);
    Bytef *packed = tmk_xcalloc(packed_n, 1);
    if (compress2(packed, &packed_n, (const Bytef *)bytes, n, 6) != Z_OK)
        tmk_die("out of memory");
    char *text = tmk_xcalloc(tmk_base64_length(packed_n) + 1, 1);
    tmk_base64_encode(packed, packed_n, text);
    free(packed);
    return text;
}

static size_t shell_bytes(void)
{
    return strlen(tmk_page_program) + strlen(tmk_page_style) + SHELL_BYTES;
}

static int make_data(struct tmk_page_file *f, const struct tmk_page_source *s)
{
    int status = 0;
    for (unsigned times = 0; times <= MAX_HALVINGS && status == 0; times++) {
        struct tmk_page_detail detail = tmk_page_detail_halved(times);
        char *bytes = NULL;
        size_t n = 0;
        free(f->data);
        f->data = NULL;
        status = tmk_page_data(s, &detail, &bytes, &n);
        if (status == 0)
            f->data = pack_bytes(bytes, n);
        free(bytes);
        if (f->data && strlen(f->data) + shell_bytes() <= TMK_PAGE_MAX_BYTES)
            break;
    }
    return status;
}

int tmk_page_file_init(struct tmk_page_file *f, struct tmk_report_answer *report)
{
    struct tmk_error err = {0};
    struct tmk_pyramid *y = NULL;
    *f = (struct tmk_page_file){.report = report};
    struct tmk_process *p = report->about.p;
    int rc = tmk_page_sweep(p, 0, p->end_ns, TMK_PAGE_BINS, true, &y, &err);
    int status = 0;
    if (rc < 0) {
        tmk_say("%s: %s", report->about.p->file, err.text[0] ? err.text : tmk_result_text(rc));
        status = rc == TMK_ENOMEM ? TMK_EXIT_FINDING : TMK_EXIT_BAD_TRACE;
    } else {
        status = make_data(f, &(struct tmk_page_source){report, y});
    }
    tmk_pyramid_close(y);
    return status;
}

void tmk_page_file_fini(struct tmk_page_file *f)
{
    free(f->data);
    *f = (struct tmk_page_file){0};
}

/* ---- markup ---- */

static void write_hash(FILE *out, const char *directive, const char *text)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    char shown[64];
    SHA256((const unsigned char *)text, strlen(text), hash);
    tmk_base64_encode(hash, sizeof hash, shown);
    fprintf(out, "; %s 'sha256-%s'", directive, shown);
}

static void write_page_head(const struct tmk_page_file *f, FILE *out)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n"
          "<meta name=\"referrer\" content=\"no-referrer\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'",
          out);
    write_hash(out, "script-src", tmk_page_program);
    write_hash(out, "style-src", tmk_page_style);
    fputs("; base-uri 'none'; form-action 'none'\">\n", out);
    tmk_html_element(out, "title", "%s - tidemark", tmk_run_path(f->report->run));
    fprintf(out, "<style>%s</style>\n</head>\n", tmk_page_style);
}

void tmk_page_file_write(const struct tmk_page_file *f, FILE *out)
{
    write_page_head(f, out);
    fputs("<body>\n<div id=\"page\">\n", out);
    tmk_html_element(out, "h1", "%s", tmk_run_path(f->report->run));
    fputs("<noscript><p>This page draws its pictures with JavaScript, which is switched off. "
          "<code>tidemark report</code> says the same in text.</p></noscript>\n</div>\n"
          "<script type=\"application/octet-stream\" id=\"data\">",
          out);
    fputs(f->data, out);
    fprintf(out, "</script>\n<script>%s</script>\n</body>\n</html>\n", tmk_page_program);
}

/* ---- both ---- */

static void write_page_to(FILE *out, const void *arg)
{
    tmk_page_file_write(arg, out);
}

int tmk_page_report(const char *target, const char *path)
{
    struct tmk_run *run = NULL;
    struct tmk_report_answer report;
    struct tmk_page_file page = {0};
    int status = tmk_target_open(target, &run);
    if (status != 0)
        return status;
    status = tmk_report_answer_init(&report, run, NULL, TMK_CHART_COLUMNS);
    if (status == 0)
        status = tmk_page_file_init(&page, &report);
    if (status == 0)
        status = tmk_output_file_write(path, write_page_to, &page);
    tmk_page_file_fini(&page);
    tmk_report_answer_fini(&report);
    tmk_run_close(run);
    return status;
}
