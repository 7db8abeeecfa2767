/* SPDX-License-Identifier: MIT */
/* model/symbol_server.c - see symbol_server.h.
 *
 * C++ names are demangled by a function of binutils' libiberty: it needs no other library, knows
 * every name that gcc and clang make, and limits its recursion. The usual __cxa_demangle() would
 * bring libstdc++ into a program that is to need nothing but glibc. Arguments are left out, because
 * with them one of torch's names fills the screen. */
#include "model/symbol_server.h"

#include <inttypes.h>
#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "kit/grow.h"
#include "model/elf_file.h"
#include "model/symbols.h"

enum { MAX_MANGLED_BYTES = 4000, MAX_NAME_BYTES = TMK_SYMBOL_TEXT_BYTES / 2 - 64 };

struct served_module {
    char *path;
    uint32_t build_id_bytes;
    uint8_t build_id[TMK_SYMBOL_ID_BYTES];
    struct tmk_elf *elf; /* NULL: it could not be opened */
};

struct symbol_server {
    struct served_module *modules;
    uint64_t n_modules, room;
    const char *debug_folder;
};

/* The file of a request, opened once; NULL: there is none. */
static struct tmk_elf *requested_file(struct symbol_server *s, const struct tmk_symbol_request *r)
{
    for (uint64_t i = 0; i < s->n_modules; i++) {
        const struct served_module *m = &s->modules[i];
        if (strcmp(m->path, r->path) == 0 && m->build_id_bytes == r->build_id_bytes &&
            memcmp(m->build_id, r->build_id, r->build_id_bytes) == 0)
            return m->elf;
    }
    if (TMK_GROW(s->modules, s->n_modules + 1, s->room) < 0)
        return NULL;
    struct served_module *m = &s->modules[s->n_modules];
    *m = (struct served_module){.path = strdup(r->path), .build_id_bytes = r->build_id_bytes};
    if (!m->path)
        return NULL;
    memcpy(m->build_id, r->build_id, r->build_id_bytes);
    m->elf = tmk_elf_open(m->path, m->build_id, m->build_id_bytes, s->debug_folder);
    s->n_modules++;
    return m->elf;
}

/* Demangle a name; one that is not C++ stays as it is. */
static void put_symbol_name(struct tmk_symbol_reply *ret, const char *name)
{
    bool is_mangled = name[0] == '_' && strnlen(name, MAX_MANGLED_BYTES) < MAX_MANGLED_BYTES;
    char *plain = is_mangled ? cplus_demangle_v3(name, DMGL_NO_OPTS) : NULL;
    snprintf(ret->text, MAX_NAME_BYTES, "%s", plain ? plain : name);
    free(plain);
}

/* Look up by line, else by symbol. A return address is that of the next instruction, so the call
 * lies before it. */
static void look_up_address(struct tmk_elf *elf, uint64_t address, struct tmk_symbol_reply *ret)
{
    uint64_t at = address - (address > 0), offset = 0;
    struct tmk_symbol found = {0};
    const char *symbol = NULL;
    bool has_line = tmk_elf_line(elf, at, &found);
    if (!found.function && tmk_elf_symbol(elf, at, &symbol, &offset))
        found.function = symbol;
    if (found.function)
        put_symbol_name(ret, found.function);
    size_t n = strlen(ret->text);
    if (found.function && !has_line)
        snprintf(ret->text + n, sizeof ret->text - n, "+%#" PRIx64, offset + (address > 0));
    if (found.function && has_line) {
        ret->line = found.line;
        ret->file_at = (uint32_t)n + 1;
        snprintf(ret->text + n + 1, sizeof ret->text - n - 1, "%s", found.file);
    }
}

void tmk_symbol_server_main(int fd, const char *debug_folder)
{
    struct symbol_server s = {.debug_folder = debug_folder};
    struct tmk_symbol_request request;
    while (recv(fd, &request, sizeof request, 0) == (ssize_t)sizeof request) {
        static struct tmk_symbol_reply reply;
        memset(&reply, 0, sizeof reply);
        struct tmk_elf *elf = requested_file(&s, &request);
        if (elf)
            look_up_address(elf, request.address, &reply);
        if (send(fd, &reply, sizeof reply, MSG_NOSIGNAL) != (ssize_t)sizeof reply)
            return;
    }
}
