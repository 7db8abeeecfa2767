/* SPDX-License-Identifier: MIT */
/* cli/query/line_editor.c - see line_editor.h.
 *
 * libedit edits; what a user has in ~/.editrc holds. The terminal gives us ^C as a key while a line
 * is edited, so no signal can come in the middle of it. The file of the history is ours: a
 * statement a line, appended at once, so that two shells at a time lose nothing, and cut to its
 * last lines when it has become long. */
#include "cli/query/line_editor.h"

#include <errno.h>
#include <fcntl.h>
#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output/say.h"
#include "cli/output/terminal.h"
#include "cli/output/xalloc.h"
#include "cli/query/query_complete.h"

enum { HISTORY_MOST = 1000, FILE_LINES_MOST = 2 * HISTORY_MOST };

struct tmk_line_editor {
    EditLine *edit;
    History *history;
    FILE *screen;
    char *history_path; /* NULL: there is no folder for it */
    sqlite3 *db;
    const char *before;
    bool is_dropped;
};

/* ---- what libedit calls ---- */

static struct tmk_line_editor *editor_of(EditLine *edit)
{
    struct tmk_line_editor *e = NULL;
    el_get(edit, EL_CLIENTDATA, &e);
    return e;
}

static char *prompt_of_line(EditLine *edit)
{
    static char first[] = "tidemark> ", next[] = "     ...> ";
    return *editor_of(edit)->before ? next : first;
}

static unsigned char drop_line(EditLine *edit, int key)
{
    struct tmk_line_editor *e = editor_of(edit);
    (void)key;
    fputs("^C\n", e->screen);
    e->is_dropped = true;
    return CC_NEWLINE;
}

/* ^Z: libedit's handler gives the terminal back, and takes it again when we go on. */
static unsigned char suspend_shell(EditLine *edit, int key)
{
    (void)edit, (void)key;
    raise(SIGTSTP);
    return CC_REDISPLAY;
}

/* Show the words in columns, as the shell does. */
static void show_words(struct tmk_line_editor *e, const struct tmk_completions *c)
{
    size_t widest = 0, width = tmk_screen_width();
    for (uint64_t i = 0; i < c->n; i++)
        widest = strlen(c->words[i]) > widest ? strlen(c->words[i]) : widest;
    uint64_t n_across = width / (widest + 2) ? width / (widest + 2) : 1;
    uint64_t n_down = (c->n + n_across - 1) / n_across;
    fputc('\n', e->screen);
    for (uint64_t row = 0; row < n_down; row++) {
        for (uint64_t i = row; i < c->n; i += n_down)
            fprintf(e->screen, "%-*s", i + n_down < c->n ? (int)widest + 2 : 0, c->words[i]);
        fputc('\n', e->screen);
    }
}

/* Put what all words share in place of what is typed. Returns whether that made the text longer. */
static bool insert_common(EditLine *edit, const struct tmk_completions *c)
{
    size_t n = tmk_completions_common(c);
    bool is_whole = c->n_likely == 1;
    const char *word = c->words[0], *space = is_whole && word[n - 1] != '(' ? " " : "";
    if (n < c->n_typed || (n == c->n_typed && !is_whole))
        return false;
    char *text = tmk_xformat("%.*s%s", (int)n, word, space);
    el_deletestr(edit, (int)c->n_typed);
    el_insertstr(edit, text);
    free(text);
    return true;
}

static unsigned char complete_word(EditLine *edit, int key)
{
    struct tmk_line_editor *e = editor_of(edit);
    const LineInfo *line = el_line(edit);
    struct tmk_completions c;
    (void)key;
    char *typed =
        tmk_xformat("%s%.*s", e->before, (int)(line->cursor - line->buffer), line->buffer);
    char *rest = tmk_xformat("%.*s", (int)(line->lastchar - line->cursor), line->cursor);
    tmk_completions_find(&c, e->db, typed, rest);
    unsigned char result = CC_ERROR;
    if (c.n > 0 && insert_common(edit, &c)) {
        result = CC_REFRESH;
    } else if (c.n > 0) {
        show_words(e, &c);
        result = CC_REDISPLAY;
    }
    tmk_completions_fini(&c);
    free(typed);
    free(rest);
    return result;
}

/* ---- the history ---- */

/* Make the folders above the last part of `path`, for the user alone. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
}

static char *find_history_path(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    if (state && *state == '/')
        path = tmk_xformat("%s/tidemark/history", state);
    else if (home && *home == '/')
        path = tmk_xformat("%s/.local/state/tidemark/history", home);
    if (path)
        make_folders(path);
    return path;
}

static FILE *open_history(const char *path, int flags, const char *mode)
{
    struct stat st;
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return NULL;
    FILE *file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fchmod(fd, 0600) == 0
                     ? fdopen(fd, mode)
                     : NULL;
    if (!file)
        close(fd);
    return file;
}

/* Write the last lines anew. On any error the file stays as it is. */
static void shorten_history(const struct tmk_line_editor *e)
{
    char *path = tmk_xformat("%s.new", e->history_path);
    FILE *to = open_history(path, O_WRONLY | O_CREAT | O_TRUNC, "w");
    HistEvent event;
    bool good = to != NULL;
    for (int rc = history(e->history, &event, H_LAST); good && rc >= 0;
         rc = history(e->history, &event, H_PREV))
        good = fputs(event.str, to) >= 0 && fputc('\n', to) >= 0;
    if (to)
        good &= fclose(to) == 0;
    if (!good || rename(path, e->history_path) < 0)
        unlink(path);
    free(path);
}

static void add_to_history(const struct tmk_line_editor *e, const char *text)
{
    HistEvent event;
    history(e->history, &event, H_ENTER, text);
}

static void load_history(struct tmk_line_editor *e)
{
    char *line = NULL;
    size_t room = 0, n_lines = 0;
    FILE *in = e->history_path ? open_history(e->history_path, O_RDONLY, "r") : NULL;
    if (!in)
        return;
    for (; getline(&line, &room, in) > 0; n_lines++) {
        line[strcspn(line, "\n")] = '\0';
        if (*line)
            add_to_history(e, line);
    }
    free(line);
    fclose(in);
    if (n_lines > FILE_LINES_MOST)
        shorten_history(e);
}

/* Remember `text` in one line. A comment up to the end of a line would swallow the next: such lines
 * are remembered one by one. */
void tmk_line_editor_remember(struct tmk_line_editor *e, const char *text)
{
    bool is_split = strstr(text, "--") != NULL;
    char *lines = tmk_xstrdup(text), *state = NULL;
    for (char *end = lines + strlen(lines); end > lines && strchr(" \t\n", end[-1]); end--)
        end[-1] = '\0';
    for (char *c = lines; !is_split && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    FILE *to =
        e->history_path ? open_history(e->history_path, O_WRONLY | O_CREAT | O_APPEND, "a") : NULL;
    for (char *line = strtok_r(lines, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
        add_to_history(e, line);
        if (to)
            fprintf(to, "%s\n", line);
    }
    if (to)
        fclose(to);
    free(lines);
}

/* ---- the editor ---- */

static void set_up_editor(struct tmk_line_editor *e)
{
    HistEvent event;
    history(e->history, &event, H_SETSIZE, HISTORY_MOST);
    history(e->history, &event, H_SETUNIQUE, 1);
    el_set(e->edit, EL_CLIENTDATA, e);
    el_set(e->edit, EL_SIGNAL, 1); /* while a line is edited: a window's size, stops, ends */
    el_set(e->edit, EL_PROMPT, prompt_of_line);
    el_set(e->edit, EL_EDITOR, "emacs");
    el_set(e->edit, EL_HIST, history, e->history);
    el_set(e->edit, EL_ADDFN, "tidemark-complete", "Complete a name", complete_word);
    el_set(e->edit, EL_ADDFN, "tidemark-drop", "Drop the line", drop_line);
    el_set(e->edit, EL_ADDFN, "tidemark-suspend", "Stop as a job", suspend_shell);
    el_set(e->edit, EL_BIND, "^I", "tidemark-complete", NULL);
    el_set(e->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
    el_source(e->edit, NULL);
    el_set(e->edit, EL_SETTY, "-d", "-isig", NULL);
    el_set(e->edit, EL_BIND, "^C", "tidemark-drop", NULL);
    el_set(e->edit, EL_BIND, "^Z", "tidemark-suspend", NULL);
}

struct tmk_line_editor *tmk_line_editor_open(void)
{
    struct tmk_line_editor *e = tmk_xcalloc(1, sizeof *e);
    setlocale(LC_CTYPE, ""); /* what is typed may be UTF-8 */
    e->screen = isatty(STDOUT_FILENO) ? stdout : stderr;
    e->before = "";
    e->history = history_init();
    e->edit = el_init("tidemark", stdin, e->screen, stderr);
    if (!e->history || !e->edit)
        tmk_die("out of memory");
    set_up_editor(e);
    e->history_path = find_history_path();
    load_history(e);
    return e;
}

struct tmk_line_editor *tmk_line_editor_close(struct tmk_line_editor *e)
{
    if (e) {
        el_end(e->edit);
        history_end(e->history);
        free(e->history_path);
        free(e);
    }
    return NULL;
}

enum tmk_line tmk_line_editor_read(struct tmk_line_editor *e, sqlite3 *db, const char *before,
                                   const char **ret_line)
{
    int n = 0;
    e->db = db;
    e->before = before;
    e->is_dropped = false;
    const char *line = el_gets(e->edit, &n);
    fflush(e->screen);
    if (e->is_dropped)
        return TMK_LINE_DROPPED;
    if (!line || n <= 0)
        return TMK_LINE_END;
    *ret_line = line;
    return TMK_LINE_TYPED;
}
