/* SPDX-License-Identifier: MIT */
/* cli/front/version.c - see version.h.
 *
 * Libraries are asked, where they can be, so that what is said is true of the one that is loaded.
 */
#include "cli/front/version.h"

#include <elfutils/version.h>
#include <event2/event.h>
#include <gnu/libc-version.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <zlib.h>

#include "cli/output/sheet.h"
#include "cli/output/xalloc.h"
#include "kit/tree.h"
#include "trace/layout.h"

/* What the recorder knows (src/record/python/pylayout.h, docs/python.md). */
#define FIRST_PYTHON "3.9"
#define FIRST_TORCH "1.13"

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

struct library {
    const char *name, *version;
};

enum { N_LIBRARIES = 6 };

static void list_libraries(struct library to[N_LIBRARIES], char elfutils[16])
{
    snprintf(elfutils, 16, "%d.%d", _ELFUTILS_VERSION / 1000, _ELFUTILS_VERSION % 1000);
    to[0] = (struct library){"sqlite", sqlite3_libversion()};
    to[1] = (struct library){"zlib", zlibVersion()};
    to[2] = (struct library){"elfutils", elfutils};
    to[3] = (struct library){"libevent", event_get_version()};
    to[4] = (struct library){"openssl", OpenSSL_version(OPENSSL_VERSION_STRING)};
    to[5] = (struct library){"glibc", gnu_get_libc_version()};
}

static void version_text(FILE *out, const struct library *libraries, const char *machine)
{
    fprintf(out, "tidemark %s\n", TMK_VERSION);
    if (*tmk_version_commit)
        fprintf(out, "commit     %s\n", tmk_version_commit);
    fprintf(out, "platform   Linux %s, compiled by %s\n", machine, COMPILER);
    fprintf(out, "records    Python " FIRST_PYTHON "+, torch " FIRST_TORCH
                 "+, JAX, the CUDA driver, annotated C\n");
    fprintf(out, "trace      format %d\n", TMK_FORMAT_VERSION);
    char *text = tmk_xstrdup("");
    for (size_t i = 0; i < N_LIBRARIES; i++) {
        char *longer =
            tmk_xformat("%s%s%s %s", text, i ? ", " : "", libraries[i].name, libraries[i].version);
        free(text);
        text = longer;
    }
    tmk_sheet_wrap(out, text, "libraries  ");
    free(text);
}

static void version_json(FILE *out, const struct library *libraries, const char *machine)
{
    struct tmk_tree t;
    tmk_tree_init_json(&t, out, 2);
    tmk_tree_object(&t, NULL);
    tmk_tree_text(&t, "version", TMK_VERSION);
    tmk_tree_text(&t, "commit", *tmk_version_commit ? tmk_version_commit : NULL);
    tmk_tree_text(&t, "machine", machine);
    tmk_tree_text(&t, "compiler", COMPILER);
    tmk_tree_u64(&t, "trace_format", TMK_FORMAT_VERSION);
    tmk_tree_text(&t, "first_python", FIRST_PYTHON);
    tmk_tree_text(&t, "first_torch", FIRST_TORCH);
    tmk_tree_object(&t, "libraries");
    for (size_t i = 0; i < N_LIBRARIES; i++)
        tmk_tree_text(&t, libraries[i].name, libraries[i].version);
    tmk_tree_end(&t);
    tmk_tree_end(&t);
}

void tmk_version_write(FILE *out, bool as_json)
{
    struct library libraries[N_LIBRARIES];
    struct utsname system;
    char elfutils[16];
    list_libraries(libraries, elfutils);
    const char *machine = uname(&system) == 0 ? system.machine : "";
    if (as_json)
        version_json(out, libraries, machine);
    else
        version_text(out, libraries, machine);
}
