/* SPDX-License-Identifier: MIT */
/* cli/cmd/doctor_screen.c - doctor's rows about what people see: the terminal, the locale, pictures
 * and their fonts.
 *
 * Fonts are looked for by file name, as far as needed, without fontconfig, which may not be there.
 */
#include <dirent.h>
#include <langinfo.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "cli/cmd/doctor.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "draw/cairo_writer.h"
#include "kit/language.h"

/* ---- the terminal ---- */

static void check_terminal(struct tmk_doctor_row *r)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    if (!isatty(STDOUT_FILENO)) {
        tmk_doctor_say(r, TMK_GRADE_GOOD, "none: the output goes elsewhere");
        return;
    }
    const char *inside = getenv("TMUX") ? _(" in tmux") : getenv("STY") ? _(" in screen") : "";
    bool has_no_colour = no_colour && *no_colour;
    tmk_doctor_say(r, TMK_GRADE_GOOD, "%s%s, %ux%u, %s",
                   term && *term ? term : _("TERM is not set"), inside, tmk_screen_width(),
                   tmk_screen_height(),
                   has_no_colour              ? _("no colours (NO_COLOR)")
                   : tmk_wants_colour(stdout) ? "colours"
                                              : _("no colours"));
    if (!has_no_colour && !tmk_wants_colour(stdout)) {
        r->grade = TMK_GRADE_FAIR;
        tmk_doctor_fix(r, "export TERM=xterm-256color (in tmux: tmux-256color)");
    }
}

/* ---- the locale ---- */

static const char *locale_name(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < TMK_N(names); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return value;
    }
    return "C";
}

static void check_locale(struct tmk_doctor_row *r)
{
    const char *name = locale_name();
    locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    if (!locale) {
        tmk_doctor_say(r, TMK_GRADE_FAIR, "%.40s is not installed on this machine", name);
        tmk_doctor_fix(r, "export LC_ALL=C.UTF-8");
        return;
    }
    const char *codes = nl_langinfo_l(CODESET, locale);
    bool is_utf8 = strcmp(codes, "UTF-8") == 0;
    tmk_doctor_say(r, is_utf8 ? TMK_GRADE_GOOD : TMK_GRADE_FAIR, "%.40s%s%s%s", name,
                   is_utf8 ? "" : " (", is_utf8 ? "" : codes,
                   is_utf8 ? "" : _("): lines and graphs of top may be drawn in ASCII"));
    if (!is_utf8)
        tmk_doctor_fix(r, "export LC_ALL=C.UTF-8");
    freelocale(locale);
}

/* ---- pictures ---- */

static void check_pictures(struct tmk_doctor_row *r)
{
    struct tmk_error err = {0};
    if (tmk_cairo_load(&err) == 0) {
        tmk_doctor_say(r, TMK_GRADE_GOOD, "SVG, PNG and PDF");
        return;
    }
    tmk_doctor_say(r, TMK_GRADE_FAIR, "SVG only: %s", err.text);
    tmk_doctor_fix(r, "sudo apt-get install " TMK_CAIRO_PACKAGE);
}

/* ---- fonts ---- */

enum { FOLDERS_DEEP = 5, ENTRIES_MOST = 20000 };

struct fonts {
    unsigned n_entries;
    bool has_any, has_chinese;
};

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), n_ending = strlen(ending);
    return n > n_ending && strcasecmp(name + n - n_ending, ending) == 0;
}

static void look_at_font(struct fonts *f, const char *name)
{
    static const char *const endings[] = {".ttf", ".otf", ".ttc", ".pfb", ".t1"};
    static const char *const chinese[] = {
        "CJK", "wqy", "DroidSansFallback", "SourceHan", "uming", "ukai", "simsun", "msyh"};
    bool is_font = false;
    for (size_t i = 0; i < TMK_N(endings); i++)
        is_font |= ends_in(name, endings[i]);
    f->has_any |= is_font;
    for (size_t i = 0; is_font && i < TMK_N(chinese); i++)
        f->has_chinese |= strcasestr(name, chinese[i]) != NULL;
}

static void look_into_fonts(struct fonts *f, const char *folder, unsigned depth)
{
    struct dirent *entry;
    DIR *dir = depth < FOLDERS_DEEP ? opendir(folder) : NULL;
    while (dir && !f->has_chinese && f->n_entries++ < ENTRIES_MOST &&
           (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        look_at_font(f, entry->d_name);
        if (entry->d_type == DT_REG) /* some file systems say what is a folder, some do not */
            continue;
        char *path = tmk_xformat("%s/%s", folder, entry->d_name);
        look_into_fonts(f, path, depth + 1);
        free(path);
    }
    if (dir)
        closedir(dir);
}

static void check_fonts(struct tmk_doctor_row *r)
{
    static const char *const of_home[] = {".local/share/fonts", ".fonts"};
    struct fonts f = {0};
    const char *home = getenv("HOME");
    look_into_fonts(&f, "/usr/share/fonts", 0);
    look_into_fonts(&f, "/usr/local/share/fonts", 0);
    for (size_t i = 0; home && *home == '/' && i < TMK_N(of_home); i++) {
        char *path = tmk_xformat("%s/%s", home, of_home[i]);
        look_into_fonts(&f, path, 0);
        free(path);
    }
    if (!f.has_any) {
        tmk_doctor_say(r, TMK_GRADE_FAIR, "none: texts in PNG and PDF pictures are missing");
        tmk_doctor_fix(r, "sudo apt-get install fonts-dejavu-core; SVG pictures need none");
    } else {
        tmk_doctor_say(r, TMK_GRADE_GOOD, "%s",
                       f.has_chinese
                           ? _("Latin and Chinese")
                           : _("no Chinese ones (fonts-noto-cjk), which only Chinese names "
                               "in PNG and PDF pictures need"));
    }
}

void tmk_doctor_screen(struct tmk_doctor *d)
{
    check_terminal(tmk_doctor_add(d, "terminal"));
    check_locale(tmk_doctor_add(d, "locale"));
    check_pictures(tmk_doctor_add(d, "pictures"));
    check_fonts(tmk_doctor_add(d, "fonts"));
}
