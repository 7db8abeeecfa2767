/* SPDX-License-Identifier: MIT */
/* cli/sweep/sweep_cell.c - see sweep_cell.h. */
#include "cli/sweep/sweep_cell.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/lines.h"
#include "cli/output/say.h"
#include "cli/output/xalloc.h"
#include "cli/run/summary.h"
#include "cli/run/watch.h"
#include "kit/amount.h"
#include "kit/arena.h"
#include "kit/kernel_files.h"
#include "kit/utf8.h"
#include "sweep/last_words.h"
#include "sweep/measure.h"
#include "sweep/params.h"
#include "sweep/results.h"
#include "sweep/words.h"

enum {
    TAIL_BYTES = 8192,
    TAIL_LINES = 6,
    LINE_BYTES = 200,
    VMSTAT_BYTES = 16384,
    MORE_SETTINGS = 3,
    LEAST_FREE_BYTES = 1 << 16
};

static const char *keep_text(struct tmk_results *r, const char *text)
{
    const char *kept = text ? tmk_arena_text(r->arena, text, strlen(text)) : NULL;
    if (text && !kept)
        tmk_die("out of memory");
    return kept;
}

/* ---- begin ---- */

static char **fill_words(const struct tmk_sweep_plan *p, const struct tmk_cell *c)
{
    unsigned n = 0;
    while (p->command[n])
        n++;
    char **words = tmk_xcalloc(n + 1, sizeof *words);
    for (unsigned i = 0; i < n; i++)
        if (!(words[i] = tmk_word_fill(p->command[i], p->results, c)))
            tmk_die("out of memory");
    return words;
}

static void free_words(char **words)
{
    for (unsigned i = 0; words[i]; i++)
        free(words[i]);
    free(words);
}

char *tmk_sweep_cell_command(const struct tmk_sweep_plan *p, const struct tmk_cell *c)
{
    char *text = NULL;
    size_t n;
    struct tmk_arena arena = {0};
    char **words = fill_words(p, c);
    FILE *f = tmk_xmemstream(&text, &n);
    for (unsigned i = 0; words[i]; i++) {
        char *shown =
            tmk_sweep_redacted(p, words[i]); /* unquoted, because quotes would hide a secret */
        fprintf(f, "%s%s", i ? " " : "", tmk_xshell_word(&arena, shown));
        free(shown);
    }
    fclose(f);
    tmk_arena_fini(&arena);
    free_words(words);
    return text;
}

/* Make the settings: TIDEMARK_SEQ=128 and so on, and the device. */
static unsigned make_settings(const struct tmk_sweep_plan *p, uint32_t number, unsigned slot,
                              struct tmk_setting *to)
{
    const struct tmk_results *r = p->results;
    const struct tmk_cell *c = &r->cells[number];
    unsigned n = 0;
    for (uint32_t i = 0; i < r->n_params; i++) {
        char *name = tmk_xformat("TIDEMARK_%s", r->params[i].name);
        for (char *at = name; *at; at++)
            *at = (char)toupper((unsigned char)*at);
        to[n++] = (struct tmk_setting){name, tmk_xstrdup(r->params[i].values[c->choice[i]])};
    }
    to[n++] = (struct tmk_setting){tmk_xstrdup("TIDEMARK_REPEAT"), tmk_xformat("%u", c->repeat)};
    to[n++] = (struct tmk_setting){tmk_xstrdup("TIDEMARK_CELL"), tmk_xformat("%u", number + 1)};
    if (p->devices)
        to[n++] = (struct tmk_setting){tmk_xstrdup(p->devices_name), tmk_xstrdup(p->devices[slot])};
    return n;
}

/* Remove what an interrupted attempt left. A run's folder has no subfolders. */
static void remove_cell_run(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(path);
}

/* Open the log and write its head; -1 after a message. */
static int open_log(const struct tmk_sweep_plan *p, const struct tmk_cell *c,
                    struct tmk_sweep_cell *f)
{
    char text[512];
    int fd = open(f->log, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) {
        tmk_say("cannot write %s: %s", f->log, strerror(errno));
        return -1;
    }
    char *command = tmk_sweep_cell_command(p, c);
    f->head_bytes =
        dprintf(fd, "# %s\n# %s\n", tmk_cell_text(p->results, c, text, sizeof text), command);
    free(command);
    return fd;
}

/* Count the processes that the kernel's OOM killer has ended in our control group (v2), or else on
 * this machine. UINT64_MAX: not known. */
static uint64_t count_oom_kills(void)
{
    char text[VMSTAT_BYTES], group[VMSTAT_BYTES];
    const char *path = tmk_kernel_file_read(group, sizeof group, "/proc/self/cgroup") < 0
                           ? NULL
                           : tmk_lines_field(group, "0::");
    int n = path ? (int)strcspn(path, "\n") : 0;
    if ((path && tmk_kernel_file_read(text, sizeof text, "/sys/fs/cgroup%.*s/memory.events", n,
                                      path) > 0) ||
        tmk_kernel_file_read(text, sizeof text, "/proc/vmstat") > 0)
        return tmk_lines_bytes(tmk_lines_field(text, "oom_kill "));
    return UINT64_MAX;
}

int tmk_sweep_cell_start(const struct tmk_sweep_plan *p, uint32_t number, unsigned slot,
                         struct tmk_sweep_cell *f, struct tmk_keeper *ret_keeper)
{
    const struct tmk_cell *c = &p->results->cells[number];
    struct tmk_setting settings[TMK_SWEEP_MAX_PARAMS + MORE_SETTINGS];
    *f = (struct tmk_sweep_cell){
        .run = tmk_xformat("%s/runs/%04u.tmk", p->results->folder, number + 1),
        .log = tmk_xformat("%s/logs/%04u.log", p->results->folder, number + 1),
        .n_oom_kills = count_oom_kills(),
    };
    int log = open_log(p, c, f);
    if (log < 0)
        return TMK_EXIT_FINDING;
    remove_cell_run(f->run);
    char **words = fill_words(p, c);
    struct tmk_watch watch = p->watch;
    watch.argv = words;
    watch.folder = f->run;
    unsigned n = make_settings(p, number, slot, settings);
    struct tmk_keeping how = {&watch, settings, n, log};
    int reason = tmk_keeper_start(&how, ret_keeper);
    close(log);
    free_words(words);
    for (unsigned i = 0; i < n; i++) {
        free((char *)settings[i].name);
        free(settings[i].value);
    }
    if (reason)
        tmk_say("cannot start a process: %s", strerror(reason));
    return reason ? TMK_EXIT_FINDING : 0;
}

void tmk_sweep_cell_forget(struct tmk_sweep_cell *f)
{
    free(f->run);
    free(f->log);
    *f = (struct tmk_sweep_cell){0};
}

/* ---- last output ---- */

/* Read up to TAIL_BYTES from the end of the log, without its head; returns the length. */
static size_t read_log_end(const struct tmk_sweep_cell *f, char *to)
{
    int fd = open(f->log, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return 0;
    off_t size = fstat(fd, &st) == 0 ? st.st_size : 0;
    off_t start = size - f->head_bytes > TAIL_BYTES ? size - TAIL_BYTES : f->head_bytes;
    ssize_t n = pread(fd, to, TAIL_BYTES, start);
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* Read the last lines, including those that a progress bar wrote over each other; the caller's.
 * NULL: there is no output. */
static char *read_tail(const struct tmk_sweep_plan *p, const struct tmk_sweep_cell *f)
{
    char bytes[TAIL_BYTES + 1];
    size_t n = read_log_end(f, bytes);
    for (size_t i = 0; i < n; i++)
        bytes[i] = bytes[i] == '\r' ? '\n' : bytes[i] == '\0' ? ' ' : bytes[i];
    while (n > 0 && isspace((unsigned char)bytes[n - 1]))
        n--;
    bytes[n] = '\0';
    size_t at = n;
    for (unsigned lines = 0; at > 0; at--)
        if (bytes[at - 1] == '\n' && ++lines == TAIL_LINES)
            break;
    return n > 0 ? tmk_sweep_redacted(p, bytes + at) : NULL;
}

static const char *last_line(const char *tail)
{
    const char *newline = tail ? strrchr(tail, '\n') : NULL;
    return newline ? newline + 1 : tail;
}

/* ---- end ---- */

/* Make "ended with status 3: LAST LINE". */
static char *tell_status(const struct tmk_outcome *o, const char *tail)
{
    char line[LINE_BYTES] = "";
    const char *last = last_line(tail);
    if (last)
        tmk_utf8_repair(last, line, sizeof line);
    if (o->signal)
        return tmk_xformat("was ended by signal %d (%s)%s%s", o->signal, strsignal(o->signal),
                           last ? "; it last said: " : "", line);
    return tmk_xformat("ended with status %d%s%s", o->status, last ? ": " : "", line);
}

/* Whether the kernel's OOM killer has killed this program or, as far as its output says, one of its
 * processes. */
static bool was_oom_killed(const struct tmk_outcome *o, const struct tmk_sweep_cell *f,
                           const char *tail)
{
    uint64_t now = count_oom_kills();
    if (now == UINT64_MAX || f->n_oom_kills == UINT64_MAX || now == f->n_oom_kills)
        return false;
    return o->status == 128 + SIGKILL || (o->status != 0 && tmk_last_words_tell_kill(tail));
}

static void judge_cell(const struct tmk_sweep_plan *p, struct tmk_cell *c,
                       const struct tmk_outcome *o, const struct tmk_measured *m,
                       const struct tmk_sweep_cell *f, const char *tail)
{
    char *message = NULL, time[TMK_AMOUNT_BYTES];
    c->exit_status = o->status;
    if (f->timed_out) {
        c->outcome = TMK_CELL_TIMEOUT;
        message = tmk_xformat("took longer than --timeout, %s", tmk_time_text(p->timeout_ns, time));
    } else if (m->ran_out && !m->went_on) {
        c->outcome = TMK_CELL_OOM;
        message = tmk_xstrdup(m->oom);
    } else if (was_oom_killed(o, f, tail)) {
        c->outcome = TMK_CELL_OOM;
        message = tmk_xstrdup("the kernel's OOM killer ended it: the host's memory ran out");
    } else if (o->status != 0) {
        c->outcome = tmk_last_words_tell_oom(tail) ? TMK_CELL_OOM : TMK_CELL_FAILED;
        message = tell_status(o, tail);
    } else {
        c->outcome = TMK_CELL_DONE;
        message = m->ran_out ? tmk_xformat("went on after it %s", m->oom) : NULL;
    }
    if (message)
        tmk_message_clean(message);
    c->message = keep_text(p->results, message);
    free(message);
}

static const char *add_message_sentence(struct tmk_results *r, const char *text, const char *more)
{
    char *both = text ? tmk_xformat("%s; %s", text, more) : tmk_xstrdup(more);
    const char *kept = keep_text(r, both);
    free(both);
    return kept;
}

/* Whether the disk is full. Then a trace may not even have begun. */
static bool is_folder_full(const char *folder)
{
    struct statvfs fs;
    return statvfs(folder, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < LEAST_FREE_BYTES;
}

static struct tmk_measured measure_cell(const struct tmk_sweep_plan *p, struct tmk_cell *c,
                                        const struct tmk_sweep_cell *f)
{
    struct tmk_measured m = {0};
    struct tmk_error err = {0};
    if (!tmk_summary_settle(f->run))
        m.incomplete =
            is_folder_full(p->results->folder) ? "nothing was recorded: the disk is full" : NULL;
    else if (tmk_measure_run(f->run, p->results->arena, c, &m, &err) < 0)
        m.incomplete = keep_text(p->results, err.text);
    return m;
}

/* Note the files' paths in the folder, but not those of files that are gone. */
static void note_files(const struct tmk_sweep_plan *p, struct tmk_cell *c, bool has_run,
                       const struct tmk_sweep_cell *f)
{
    size_t n = strlen(p->results->folder) + 1;
    bool is_kept =
        p->keep == TMK_KEEP_ALL || (p->keep == TMK_KEEP_FAILED && c->outcome != TMK_CELL_DONE);
    if (!is_kept)
        remove_cell_run(f->run);
    c->run = has_run && is_kept ? keep_text(p->results, f->run + n) : NULL;
    c->log = keep_text(p->results, f->log + n);
}

char *tmk_sweep_cell_end(const struct tmk_sweep_plan *p, uint32_t number,
                         const struct tmk_kept *kept, const struct tmk_sweep_cell *f)
{
    struct tmk_cell *at = &p->results->cells[number];
    struct tmk_cell c = {
        .choice = at->choice,
        .repeat = at->repeat,
        .seconds = f->seconds,
        .peak_step = -1,
        .capacity = TMK_BYTES_UNKNOWN,
        .peak_allocated = TMK_BYTES_UNKNOWN,
        .peak_reserved = TMK_BYTES_UNKNOWN,
        .peak_device = TMK_BYTES_UNKNOWN,
    };
    struct tmk_outcome o = tmk_watch_outcome(kept->wait_status);
    char *tail = read_tail(p, f);
    struct tmk_measured m = measure_cell(p, &c, f);
    judge_cell(p, &c, &o, &m, f, tail);
    if (m.incomplete)
        c.message = add_message_sentence(p->results, c.message, m.incomplete);
    else if (c.outcome == TMK_CELL_DONE && !m.found)
        c.message = "reported no allocation";
    note_files(p, &c, m.found || m.ran_out || m.incomplete, f);
    *at = c;
    bool says_more = c.outcome == TMK_CELL_TIMEOUT || (tail && strchr(tail, '\n'));
    if (says_more && (c.outcome == TMK_CELL_FAILED || c.outcome == TMK_CELL_TIMEOUT))
        return tail;
    free(tail);
    return NULL;
}

void tmk_sweep_cell_hopeless(struct tmk_results *r, uint32_t number, double low, uint64_t capacity)
{
    char needs[TMK_AMOUNT_BYTES], has[TMK_AMOUNT_BYTES];
    struct tmk_cell *c = &r->cells[number];
    char *message =
        tmk_xformat("not tried: by what was measured it needs at least %s, of %s",
                    tmk_size_text(tmk_size_whole(low), needs), tmk_size_text(capacity, has));
    c->outcome = TMK_CELL_HOPELESS;
    c->message = keep_text(r, message);
    free(message);
}
