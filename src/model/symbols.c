/* SPDX-License-Identifier: MIT */
/* model/symbols.c - see symbols.h. This side asks and remembers; the child process reads the files
 * (symbol_server.c).
 *
 * It fails open: after a child dies or is silent for too long, frames of the module that it was
 * asked about are shown by number, and the next question starts another child. */
#include "model/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/index.h"
#include "kit/arena.h"
#include "kit/grow.h"
#include "model/symbol_server.h"

enum { ANSWER_LIMIT_S = 60 }; /* a slow disk may have a library of gigabytes */

struct symbol_module {
    const char *path; /* in the arena */
    const char *name; /* without folders */
    uint64_t hash;
    bool is_bad; /* a child died or was silent when asked about it */
};

struct symbol_entry { /* a symbol that was looked up before */
    uint64_t address;
    uint32_t module;
    struct tmk_symbol symbol;
};

struct tmk_symbols {
    bool is_off;
    const char *debug_folder;
    struct tmk_arena texts;
    struct symbol_module *modules;
    uint64_t n_modules, module_room;
    struct symbol_entry *entries;
    uint64_t n_entries, entry_room;
    struct tmk_index entry_index; /* of number + 1 */
    pid_t child;                  /* 0: none now */
    int fd;
};

struct tmk_symbols *tmk_symbols_open(void)
{
    struct tmk_symbols *s = calloc(1, sizeof *s);
    const char *off = getenv("TIDEMARK_NO_SYMBOLS");
    const char *folder = getenv("TIDEMARK_DEBUG_DIR");
    if (!s)
        return NULL;
    s->is_off = off && *off && strcmp(off, "0") != 0;
    s->debug_folder = folder && *folder ? folder : "/usr/lib/debug";
    return s;
}

/* ---- the child ---- */

static void end_child(struct tmk_symbols *s)
{
    if (s->child <= 0)
        return;
    close(s->fd);
    kill(s->child, SIGKILL);
    while (waitpid(s->child, NULL, 0) < 0 && errno == EINTR)
        continue;
    s->child = 0;
}

/* The child has no output and makes no core file, and ends when we end. */
static __attribute__((noreturn)) void be_child(int fd, const char *debug_folder)
{
    const struct rlimit none = {0, 0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    int null = open("/dev/null", O_RDWR);
    for (int i = 0; null >= 0 && i <= 2; i++)
        dup2(null, i);
    tmk_symbol_server_main(fd, debug_folder);
    _exit(0);
}

static bool start_child(struct tmk_symbols *s)
{
    int pair[2];
    const struct timeval limit = {.tv_sec = ANSWER_LIMIT_S};
    if (s->child > 0)
        return true;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return false;
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    pid_t child = fork();
    if (child == 0) {
        close(pair[0]);
        be_child(pair[1], s->debug_folder);
    }
    close(pair[1]);
    if (child < 0) {
        close(pair[0]);
        return false;
    }
    s->child = child;
    s->fd = pair[0];
    return true;
}

/* Ask the child. 1: *ret is an answer with checked texts. 0: there is none. */
static int ask_symbol_server(struct tmk_symbols *s, const struct tmk_code_address *where,
                             struct tmk_symbol_reply *ret)
{
    static struct tmk_symbol_request request;
    size_t n = strlen(where->path);
    if (n >= sizeof request.path || where->build_id_bytes > sizeof request.build_id ||
        !start_child(s))
        return 0;
    request = (struct tmk_symbol_request){.address = where->address,
                                          .build_id_bytes = where->build_id_bytes};
    memcpy(request.path, where->path, n);
    if (where->build_id_bytes > 0)
        memcpy(request.build_id, where->build_id, where->build_id_bytes);
    ssize_t got = -1;
    if (send(s->fd, &request, sizeof request, MSG_NOSIGNAL) == (ssize_t)sizeof request)
        while ((got = recv(s->fd, ret, sizeof *ret, 0)) < 0 && errno == EINTR)
            continue;
    if (got != (ssize_t)sizeof *ret || ret->file_at >= sizeof ret->text) {
        end_child(s);
        return 0;
    }
    ret->text[sizeof ret->text - 1] = '\0';
    return 1;
}

struct tmk_symbols *tmk_symbols_close(struct tmk_symbols *s)
{
    if (!s)
        return NULL;
    end_child(s);
    free(s->modules);
    free(s->entries);
    free(s->entry_index.slots);
    tmk_arena_fini(&s->texts);
    free(s);
    return NULL;
}

/* ---- modules ---- */

static uint64_t module_hash(const struct tmk_code_address *where)
{
    uint64_t hash = tmk_hash_bytes(where->path, strlen(where->path));
    return where->build_id_bytes
               ? tmk_hash_fold(hash, tmk_hash_bytes(where->build_id, where->build_id_bytes))
               : hash;
}

/* The number of the module; <0: TMK_ENOMEM. */
static int64_t code_module_of(struct tmk_symbols *s, const struct tmk_code_address *where)
{
    uint64_t hash = module_hash(where);
    for (uint64_t i = 0; i < s->n_modules; i++)
        if (s->modules[i].hash == hash && strcmp(s->modules[i].path, where->path) == 0)
            return (int64_t)i;
    if (TMK_GROW(s->modules, s->n_modules + 1, s->module_room) < 0)
        return TMK_ENOMEM;
    const char *path = tmk_arena_text(&s->texts, where->path, strlen(where->path));
    if (!path)
        return TMK_ENOMEM;
    const char *slash = strrchr(path, '/');
    struct symbol_module *m = &s->modules[s->n_modules];
    *m = (struct symbol_module){.path = path, .name = slash ? slash + 1 : path, .hash = hash};
    return (int64_t)s->n_modules++;
}

/* ---- looking up ---- */

static int look_up_symbol(struct tmk_symbols *s, struct symbol_module *m,
                          const struct tmk_code_address *where, struct tmk_symbol *ret)
{
    static struct tmk_symbol_reply reply;
    struct tmk_symbol found = {0};
    bool is_asked = !s->is_off && !m->is_bad && ask_symbol_server(s, where, &reply);
    m->is_bad = m->is_bad || !is_asked;
    if (is_asked && reply.text[0]) {
        const char *file = reply.text + reply.file_at;
        found.function = tmk_arena_text(&s->texts, reply.text, strlen(reply.text));
        found.file = reply.file_at ? tmk_arena_text(&s->texts, file, strlen(file)) : NULL;
        found.line = reply.file_at ? reply.line : 0;
        found.is_known = true;
        if (reply.file_at && !found.file)
            return TMK_ENOMEM;
    } else {
        found.function = tmk_arena_format(&s->texts, "%s+%#" PRIx64, m->name, where->address);
    }
    if (!found.function)
        return TMK_ENOMEM;
    *ret = found;
    return 0;
}

/* ---- known symbols ---- */

static const struct symbol_entry *find_symbol_entry(const struct tmk_symbols *s, uint64_t hash,
                                                    uint32_t module, uint64_t address)
{
    struct tmk_probe probe = tmk_index_probe(&s->entry_index, hash);
    for (uint32_t i; (i = tmk_probe_next(&probe)) != 0;)
        if (s->entries[i - 1].module == module && s->entries[i - 1].address == address)
            return &s->entries[i - 1];
    return NULL;
}

int tmk_symbols_find(struct tmk_symbols *s, const struct tmk_code_address *where,
                     struct tmk_symbol *ret)
{
    int64_t module = code_module_of(s, where);
    if (module < 0)
        return TMK_ENOMEM;
    uint64_t hash = tmk_hash_mix((uint64_t)module, where->address);
    const struct symbol_entry *known = find_symbol_entry(s, hash, (uint32_t)module, where->address);
    if (known) {
        *ret = known->symbol;
        return 0;
    }
    if (TMK_GROW(s->entries, s->n_entries + 1, s->entry_room) < 0 ||
        tmk_grow_index(&s->entry_index) < 0)
        return TMK_ENOMEM;
    struct symbol_entry *e = &s->entries[s->n_entries];
    *e = (struct symbol_entry){.module = (uint32_t)module, .address = where->address};
    int rc = look_up_symbol(s, &s->modules[module], where, &e->symbol);
    if (rc < 0)
        return rc;
    tmk_index_add(&s->entry_index, hash, (uint32_t)++s->n_entries);
    *ret = e->symbol;
    return 0;
}
