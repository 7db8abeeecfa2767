/* SPDX-License-Identifier: MIT */
/* model/run.c - see run.h. */
#include "model/run.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "model/cells.h"
#include "model/components.h"
#include "model/owners.h"
#include "model/run_clock.h"
#include "model/symbols.h"
#include "tidemark/tidemark.h"
#include "trace/defs.h"
#include "trace/events.h"
#include "trace/merge.h"
#include "trace/reader.h"
#include "trace/state.h"

struct tmk_run {
    char *path;
    struct tmk_process *processes;
    uint32_t n_processes, room;
    uint32_t n_unreadable;
    struct tmk_error first_unreadable;
    struct tmk_symbols *symbols;
    struct tmk_components *components;
    struct tmk_error components_problem;
    struct tmk_clock_match clock;
};

/* ---- opening ---- */

static int64_t info_number(const struct tmk_reader *r, const char *key)
{
    uint64_t value;
    return tmk_reader_info_u64(r, key, &value) && value <= INT64_MAX ? (int64_t)value : -1;
}

static const char *info_text(const struct tmk_reader *r, const char *key)
{
    const char *text = tmk_reader_info(r, key);
    return text ? text : "";
}

static uint64_t trace_end_ns(const struct tmk_reader *r)
{
    uint64_t end = tmk_reader_status(r)->end_ns;
    for (uint32_t i = 0; i < tmk_reader_n_chunks(r); i++)
        if (tmk_reader_chunk(r, i)->header.end_ns > end)
            end = tmk_reader_chunk(r, i)->header.end_ns;
    return end;
}

static void describe_trace(struct tmk_process *p)
{
    struct tmk_reader *r = p->reader;
    const char *path = tmk_reader_path(r);
    const char *slash = strrchr(path, '/');
    int64_t pid = info_number(r, "pid"), start = info_number(r, "start_realtime_ns");
    p->file = slash ? slash + 1 : path;
    p->host = info_text(r, "host");
    p->command = info_text(r, "command");
    p->pid = pid < 0 ? 0 : (uint64_t)pid;
    p->rank = info_number(r, "rank");
    p->world_size = info_number(r, "world_size");
    p->role = tmk_reader_info(r, "role");
    p->start_realtime_ns = start < 0 ? 0 : (uint64_t)start;
    p->end_ns = trace_end_ns(r);
}

/* Add a trace. `ring_path` NULL: the trace says where its ring is. */
static int add_trace(struct tmk_run *run, const char *path, const char *ring_path,
                     struct tmk_error *err)
{
    if (run->n_processes == run->room) {
        uint32_t room = run->room ? 2 * run->room : 8;
        struct tmk_process *bigger = realloc(run->processes, room * sizeof *bigger);
        if (!bigger)
            return tmk_fail(err, TMK_ENOMEM, "out of memory");
        run->processes = bigger;
        run->room = room;
    }
    struct tmk_process p = {0};
    int rc = ring_path ? tmk_merge_open_beside(path, ring_path, &p.reader, &p.live, err)
                       : tmk_merge_open(path, &p.reader, &p.live, err);
    if (rc < 0)
        return rc;
    if ((rc = tmk_cells_open(p.reader, &p.cells)) < 0 ||
        (rc = tmk_owners_open(p.reader, run->components, &p.owners)) < 0) {
        tmk_cells_close(p.cells);
        tmk_reader_close(p.reader);
        return tmk_fail(err, rc, "out of memory");
    }
    describe_trace(&p);
    p.symbols = &run->symbols;
    run->processes[run->n_processes++] = p;
    return 0;
}

static bool is_trace_name(const char *name)
{
    static const char suffix[] = ".trace";
    size_t n = strlen(name);
    return n > sizeof suffix - 1 && strcmp(name + n - (sizeof suffix - 1), suffix) == 0;
}

static int add_folder(struct tmk_run *run, const char *path, struct tmk_error *err)
{
    DIR *folder = opendir(path);
    if (!folder)
        return tmk_fail_os(err, TMK_EIO, errno, "cannot open %s", path);
    int rc = 0;
    for (struct dirent *entry; rc != TMK_ENOMEM && (entry = readdir(folder)) != NULL;) {
        if (!is_trace_name(entry->d_name))
            continue;
        char *file = NULL;
        struct tmk_error e = {0};
        if (asprintf(&file, "%s/%s", path, entry->d_name) < 0)
            rc = TMK_ENOMEM;
        else
            rc = add_trace(run, file, NULL, &e);
        if (rc < 0 && run->n_unreadable++ == 0)
            tmk_fail(&run->first_unreadable, rc, "%s: %s", entry->d_name, e.text);
        free(file);
    }
    closedir(folder);
    if (run->n_processes > 0)
        return 0;
    if (run->n_unreadable > 0) {
        if (err)
            *err = run->first_unreadable;
        return rc < 0 ? rc : TMK_EDAMAGED;
    }
    return tmk_fail(err, TMK_ENOENT, "%s holds no trace: nothing was recorded there", path);
}

static int by_rank(const void *va, const void *vb)
{
    const struct tmk_process *a = va, *b = vb;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->start_realtime_ns != b->start_realtime_ns)
        return a->start_realtime_ns < b->start_realtime_ns ? -1 : 1;
    return strcmp(a->file, b->file);
}

static struct tmk_run *make_run(const char *path, struct tmk_error *err)
{
    struct tmk_run *run = calloc(1, sizeof *run);
    if (run && (run->path = strdup(path)) &&
        tmk_components_open(&run->components, &run->components_problem) == 0)
        return run;
    tmk_run_close(run);
    tmk_fail(err, TMK_ENOMEM, "out of memory");
    return NULL;
}

/* Finish opening after all traces were added, or fail with `rc`. */
static int finish_open(struct tmk_run *run, int rc, struct tmk_run **ret_run)
{
    if (rc == 0)
        rc = tmk_run_clock_match(run->processes, run->n_processes, &run->clock);
    if (rc < 0) {
        tmk_run_close(run);
        return rc;
    }
    if (run->n_processes > 1)
        qsort(run->processes, run->n_processes, sizeof *run->processes, by_rank);
    *ret_run = run;
    return 0;
}

int tmk_run_open_watched(const struct tmk_watched *w, struct tmk_run **ret_run,
                         struct tmk_error *err)
{
    char name[TMK_WATCHED_NAME_BYTES];
    struct tmk_run *run = make_run(tmk_watched_name(w->pid, name), err);
    if (!run)
        return TMK_ENOMEM;
    return finish_open(run, add_trace(run, w->trace_path, w->ring_path, err), ret_run);
}

static int open_pid(uint32_t pid, struct tmk_run **ret_run, struct tmk_error *err)
{
    struct tmk_watched w;
    int rc = tmk_watched_find(pid, &w, err);
    return rc < 0 ? rc : tmk_run_open_watched(&w, ret_run, err);
}

int tmk_run_open(const char *target, struct tmk_run **ret_run, struct tmk_error *err)
{
    struct stat st;
    if (stat(target, &st) < 0) {
        int reason = errno;
        uint32_t pid = tmk_watched_parse(target);
        if (reason == ENOENT && pid != 0)
            return open_pid(pid, ret_run, err);
        return tmk_fail_os(err, reason == ENOENT ? TMK_ENOENT : TMK_EIO, reason, "cannot open %s",
                           target);
    }
    struct tmk_run *run = make_run(target, err);
    if (!run)
        return TMK_ENOMEM;
    int rc = S_ISDIR(st.st_mode) ? add_folder(run, target, err) : add_trace(run, target, NULL, err);
    return finish_open(run, rc, ret_run);
}

struct tmk_run *tmk_run_close(struct tmk_run *run)
{
    if (!run)
        return NULL;
    for (uint32_t i = 0; i < run->n_processes; i++) {
        tmk_owners_close(run->processes[i].owners);
        tmk_cells_close(run->processes[i].cells);
        tmk_reader_close(run->processes[i].reader);
    }
    tmk_components_close(run->components);
    tmk_symbols_close(run->symbols);
    free(run->processes);
    free(run->path);
    free(run);
    return NULL;
}

const char *tmk_run_path(const struct tmk_run *run)
{
    return run->path;
}

uint32_t tmk_run_n_processes(const struct tmk_run *run)
{
    return run->n_processes;
}

struct tmk_process *tmk_run_process(struct tmk_run *run, uint32_t i)
{
    return &run->processes[i];
}

const struct tmk_clock_match *tmk_run_clock(const struct tmk_run *run)
{
    return &run->clock;
}

uint32_t tmk_run_n_unreadable(const struct tmk_run *run, struct tmk_error *ret_first)
{
    if (ret_first)
        *ret_first = run->first_unreadable;
    return run->n_unreadable;
}

const char *tmk_run_components_problem(const struct tmk_run *run)
{
    return run->components_problem.text[0] ? run->components_problem.text : NULL;
}

/* ---- sweeping ---- */

enum { N_KINDS = 32 }; /* the bits of a visitor's set of kinds */

/* Several visitors as one. Most passes hear few kinds of events, so the visitors of each kind are
 * listed and no visitor is called in vain. */
struct event_audience {
    const struct tmk_visitor *visitors;
    uint32_t n;
    uint32_t n_hearing[N_KINDS];
    const struct tmk_visitor **hearing; /* n places for each kind */
};

static bool visitor_hears(const struct tmk_visitor *v, unsigned kind)
{
    return v->event && (!v->kinds || v->kinds >> kind & 1);
}

static int audience_init(struct event_audience *a, const struct tmk_visitor *visitors, uint32_t n)
{
    *a = (struct event_audience){.visitors = visitors, .n = n};
    a->hearing = calloc((size_t)N_KINDS * (n ? n : 1), sizeof(const struct tmk_visitor *));
    if (!a->hearing)
        return TMK_ENOMEM;
    for (unsigned kind = 0; kind < N_KINDS; kind++)
        for (uint32_t i = 0; i < n; i++)
            if (visitor_hears(&visitors[i], kind))
                a->hearing[kind * n + a->n_hearing[kind]++] = &visitors[i];
    return 0;
}

static void tell_visitor_event(void *arg, const struct tmk_replay *rp, const struct tmk_event *ev,
                               struct tmk_block *b)
{
    const struct event_audience *a = arg;
    const struct tmk_visitor *const *v = &a->hearing[ev->kind * a->n];
    for (uint32_t i = 0; i < a->n_hearing[ev->kind]; i++)
        v[i]->event(v[i]->arg, rp, ev, b);
}

static void tell_visitor_restored(void *arg, const struct tmk_replay *rp)
{
    const struct event_audience *a = arg;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->visitors[i].restored)
            a->visitors[i].restored(a->visitors[i].arg, rp);
}

static void tell_visitor_progress(void *arg, uint32_t done, uint32_t total)
{
    const struct event_audience *a = arg;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->visitors[i].progress)
            a->visitors[i].progress(a->visitors[i].arg, done, total);
}

int tmk_process_sweep(struct tmk_process *p, const struct tmk_visitor *visitors, uint32_t n,
                      struct tmk_replay *rp, struct tmk_error *err)
{
    struct tmk_replay own = {0};
    struct tmk_replay *use = rp ? rp : &own;
    struct event_audience audience;
    int rc = audience_init(&audience, visitors, n);
    if (rc == 0)
        rc = tmk_replay_init(use, &tmk_state_limits_tool);
    if (rc < 0) {
        free(audience.hearing);
        return tmk_fail(err, rc, "no memory to replay %s", p->file);
    }
    struct tmk_visitor all = {
        .arg = &audience,
        .event = tell_visitor_event,
        .restored = tell_visitor_restored,
        .progress = tell_visitor_progress,
    };
    rc = tmk_replay_run(use, p->reader, n == 1 ? visitors : &all, err);
    free(audience.hearing);
    if (rc < 0 || !rp)
        tmk_replay_fini(use);
    return rc;
}

/* ---- names ---- */

const char *tmk_category_name(uint8_t category)
{
    static const char *const names[] = {
        [TIDEMARK_UNKNOWN] = "unknown",       [TIDEMARK_PARAMETER] = "parameter",
        [TIDEMARK_GRADIENT] = "gradient",     [TIDEMARK_OPTIMIZER_STATE] = "optimizer_state",
        [TIDEMARK_ACTIVATION] = "activation", [TIDEMARK_INPUT] = "input",
        [TIDEMARK_TEMPORARY] = "temporary",   [TIDEMARK_AUTOGRAD_DETAIL] = "autograd_detail",
        [TIDEMARK_BUFFER] = "buffer",         [TIDEMARK_OTHER] = "other",
        [TIDEMARK_KV_CACHE] = "kv_cache",
    };
    return category < TMK_N(names) ? names[category] : "unknown";
}

const char *tmk_device_name(uint16_t device, char *buffer)
{
    static const struct {
        unsigned type;
        const char *name;
    } types[] = {{1, "cuda"}, {6, "hip"}, {12, "xpu"}};
    unsigned type = device >> 8, index = device & 0xff;
    if (device == TIDEMARK_HOST)
        return strcpy(buffer, "cpu");
    for (size_t i = 0; i < TMK_N(types); i++) {
        if (types[i].type == type) {
            snprintf(buffer, 24, "%s:%u", types[i].name, index);
            return buffer;
        }
    }
    snprintf(buffer, 24, "device%u:%u", type, index);
    return buffer;
}

static const char *context_name(const struct tmk_process *p, const struct tmk_state *s,
                                uint32_t context)
{
    return context ? tmk_reader_string(p->reader, s->contexts[context].name) : NULL;
}

const char *tmk_context_module(const struct tmk_process *p, const struct tmk_state *s,
                               uint32_t context)
{
    return context_name(p, s, s->contexts[context].module);
}

const char *tmk_context_stage(const struct tmk_process *p, const struct tmk_state *s,
                              uint32_t context)
{
    return context_name(p, s, s->contexts[context].stage);
}

static void add_symbol(const struct tmk_process *p, const struct tmk_native *native,
                       struct tmk_frame *frame)
{
    struct tmk_symbol symbol;
    struct tmk_code_address where = {native->path, native->build_id, native->build_id_bytes,
                                     native->address};
    if (!*p->symbols)
        *p->symbols = tmk_symbols_open();
    if (!*p->symbols || tmk_symbols_find(*p->symbols, &where, &symbol) < 0 || !symbol.is_known)
        return;
    frame->function = symbol.function;
    if (symbol.file) {
        frame->file = symbol.file;
        frame->line = symbol.line;
    }
}

bool tmk_process_written_frame(const struct tmk_process *p, uint32_t frame, struct tmk_frame *ret)
{
    if (!tmk_reader_frame(p->reader, frame, ret))
        return false;
    ret->file = tmk_cells_name(p->cells, ret->file);
    return true;
}

bool tmk_process_frame(const struct tmk_process *p, uint32_t frame, struct tmk_frame *ret)
{
    struct tmk_native native;
    if (!tmk_process_written_frame(p, frame, ret))
        return false;
    if (tmk_reader_native(p->reader, frame, &native))
        add_symbol(p, &native, ret);
    return true;
}

bool tmk_frame_is_native(const struct tmk_frame *f)
{
    return f->address != 0 ||
           (f->file && strncmp(f->file, TMK_CPP_FILE, strlen(TMK_CPP_FILE)) == 0);
}

/* Whether a path is in the standard library: ".../lib/python3.11/copy.py", but not what is
 * installed below it. */
static bool is_standard_library(const char *file)
{
    static const char *const folders[] = {"/lib/python3", "/lib64/python3"};
    for (size_t i = 0; i < TMK_N(folders); i++) {
        const char *found = strstr(file, folders[i]);
        if (!found)
            continue;
        found += strlen(folders[i]);
        found += strspn(found, ".0123456789t"); /* "t": built without the GIL */
        if (*found == '/')
            return true;
    }
    return false;
}

enum tmk_frame_kind tmk_frame_kind(const struct tmk_frame *f)
{
    static const char *const inner[] = {"site-packages/torch/", "dist-packages/torch/", "<frozen ",
                                        "<tidemark>", TMK_CPP_FILE};
    static const char *const installed[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; f->file && i < TMK_N(inner); i++)
        if (strstr(f->file, inner[i]))
            return TMK_FRAME_INNER;
    if (tmk_frame_is_native(f))
        return TMK_FRAME_INNER;
    for (size_t i = 0; f->file && i < TMK_N(installed); i++)
        if (strstr(f->file, installed[i]))
            return TMK_FRAME_LIBRARY;
    return f->file && is_standard_library(f->file) ? TMK_FRAME_LIBRARY : TMK_FRAME_USERS;
}

bool tmk_frame_is_users(const struct tmk_frame *f)
{
    return tmk_frame_kind(f) == TMK_FRAME_USERS;
}

/* Find the frame to show if the stack has none of the user's: the operation of autograd or torch,
 * not the allocator's functions that it called. 0: the innermost frame. */
static uint32_t operation_of(const struct tmk_process *p, const struct tmk_stack *frames)
{
    static const char *const names[] = {"Backward", "at::_ops::"};
    struct tmk_frame f;
    for (size_t k = 0; k < TMK_N(names); k++)
        for (uint32_t i = 0; i < frames->n_frames; i++)
            if (tmk_reader_frame(p->reader, frames->frames[i], &f) && f.file && f.function &&
                strncmp(f.file, TMK_CPP_FILE, strlen(TMK_CPP_FILE)) == 0 &&
                strstr(f.function, names[k]))
                return i;
    return 0;
}

/* Find the innermost frame of a kind. */
static bool innermost_frame(const struct tmk_process *p, const struct tmk_stack *frames,
                            enum tmk_frame_kind kind, struct tmk_frame *ret)
{
    for (uint32_t i = 0; i < frames->n_frames; i++)
        if (tmk_process_written_frame(p, frames->frames[i], ret) && tmk_frame_kind(ret) == kind)
            return true;
    return false;
}

bool tmk_stack_site(const struct tmk_process *p, uint32_t stack, struct tmk_frame *ret)
{
    struct tmk_stack frames;
    if (!tmk_reader_stack(p->reader, stack, &frames))
        return false;
    if (innermost_frame(p, &frames, TMK_FRAME_USERS, ret) ||
        innermost_frame(p, &frames, TMK_FRAME_LIBRARY, ret))
        return true;
    return frames.n_frames > 0 &&
           tmk_process_frame(p, frames.frames[operation_of(p, &frames)], ret);
}

bool tmk_stack_library_line(const struct tmk_process *p, uint32_t stack, struct tmk_frame *ret)
{
    struct tmk_stack frames;
    struct tmk_frame f;
    if (!tmk_reader_stack(p->reader, stack, &frames))
        return false;
    for (uint32_t i = 0; i < frames.n_frames; i++) {
        if (!tmk_process_written_frame(p, frames.frames[i], &f))
            continue;
        enum tmk_frame_kind kind = tmk_frame_kind(&f);
        if (kind == TMK_FRAME_USERS)
            return false;
        if (kind == TMK_FRAME_LIBRARY && innermost_frame(p, &frames, TMK_FRAME_USERS, ret)) {
            *ret = f;
            return true;
        }
    }
    return false;
}

/* Shorten "torch::autograd::generated::MulBackward0::apply(std::vector<..." to
 * "MulBackward0::apply". */
static const char *short_cpp_text(const char *function, char *buffer)
{
    static const char anonymous[] = "(anonymous namespace)::";
    const char *inner = strstr(function, anonymous);
    function = inner ? inner + strlen(anonymous) : function;
    size_t n = strcspn(function, "(<");
    unsigned n_colons = 0;
    const char *start = function + n;
    for (; start > function; start--)
        if (start - function >= 2 && start[-1] == ':' && start[-2] == ':' && ++n_colons == 2)
            break;
    snprintf(buffer, TMK_FRAME_TEXT_BYTES, "%.*s " TMK_CPP_FILE ">", (int)(function + n - start),
             start);
    return buffer;
}

const char *tmk_frame_file(const char *file, char *buffer)
{
    static const char input[] = "<ipython-input-";
    bool is_input = strncmp(file, input, strlen(input)) == 0;
    const char *number = is_input ? file + strlen(input) : "";
    size_t n = strspn(number, "0123456789");
    if (n > 0 && n < TMK_FRAME_FILE_BYTES / 2 && number[n] == '-') {
        snprintf(buffer, TMK_FRAME_FILE_BYTES, "In [%.*s]", (int)n, number);
        return buffer;
    }
    const char *slash = strrchr(file, '/'), *cell = strstr(file, "/ipykernel_");
    if (cell && strchr(cell + 1, '/') == slash && strncmp(slash, "/In [", 5) != 0)
        return cell + 1;
    return slash ? slash + 1 : file;
}

const char *tmk_frame_text(const struct tmk_frame *f, bool short_file, char *buffer)
{
    static const struct tmk_frame unknown = {0};
    if (!f)
        f = &unknown;
    if (short_file && f->function && f->address == 0 && tmk_frame_is_native(f))
        return short_cpp_text(f->function, buffer);
    const char *function = f->function ? f->function : "?";
    const char *file = f->file ? f->file : f->function ? "" : "?";
    char cell[TMK_FRAME_FILE_BYTES];
    file = short_file ? tmk_frame_file(file, cell) : file;
    if (f->address && !f->function)
        snprintf(buffer, TMK_FRAME_TEXT_BYTES, "%s+0x%" PRIx64, file, f->address);
    else if (!*file)
        snprintf(buffer, TMK_FRAME_TEXT_BYTES, "%s", function);
    else if (f->line == 0)
        snprintf(buffer, TMK_FRAME_TEXT_BYTES, f->address || file[0] == '<' ? "%s %s" : "%s:? %s",
                 file, function);
    else
        snprintf(buffer, TMK_FRAME_TEXT_BYTES, "%s:%u %s", file, (unsigned)f->line, function);
    return buffer;
}
