/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_define.c - records and definitions of an imported trace; see torch_maker.h.
 */
#include <string.h>

#include "base/error.h"
#include "interop/torch/torch_maker.h"
#include "interop/torch/torch_names.h"
#include "kit/grow.h"
#include "trace/kinds.h"
#include "trace/layout.h"
#include "trace/packer.h"

enum { C10_MODULE = 1, C10_ADDRESS = 1 }; /* the only module */
static const char c10_path[] = "libc10_cuda.so";

/* ---- putting records ---- */

int tmk_import_put(struct tmk_import_maker *m, struct tmk_input *in)
{
    in->ns = m->now_ns;
    int rc = tmk_packer_add(m->packer, in);
    if (rc > 0)
        rc = tmk_packer_flush(m->packer);
    if (rc < 0 && m->writer.error.text[0])
        *m->err = m->writer.error;
    else if (rc < 0)
        tmk_fail(m->err, rc, "%s", tmk_result_text(rc));
    return rc;
}

static int put_definition(struct tmk_import_maker *m, uint8_t kind, uint32_t id, uint64_t a,
                          const void *text, size_t bytes)
{
    return tmk_import_put(
        m, &(struct tmk_input){
               .kind = kind, .id = id, .a = a, .text = text, .text_bytes = (uint32_t)bytes});
}

static int put_stack(struct tmk_import_maker *m, uint32_t id)
{
    const struct tmk_name_stack *stack = &m->s->names.stacks[id - 1];
    return put_definition(m, TMK_KIND_DEF_STACK, id, 0, m->s->names.stack_frames + stack->first,
                          (size_t)stack->n * sizeof(uint32_t));
}

/* ---- definitions ---- */

static int define_frames(struct tmk_import_maker *m)
{
    const struct tmk_names *names = &m->s->names;
    int rc = 0;
    for (uint64_t i = 0; i < names->n_frames && rc == 0; i++) {
        const struct tmk_name_frame *f = &names->frames[i];
        rc = tmk_import_put(m, &(struct tmk_input){.kind = TMK_KIND_DEF_FRAME,
                                                   .id = (uint32_t)i + 1,
                                                   .a = (uint64_t)f->file << 32 | f->function,
                                                   .b = f->line});
    }
    if (rc == 0)
        rc = put_definition(m, TMK_KIND_DEF_MODULE, C10_MODULE, 0, c10_path, strlen(c10_path));
    m->c10_frame = (uint32_t)names->n_frames + 1;
    if (rc == 0)
        rc = tmk_import_put(m, &(struct tmk_input){.kind = TMK_KIND_DEF_NATIVE_FRAME,
                                                   .id = m->c10_frame,
                                                   .a = C10_MODULE,
                                                   .b = C10_ADDRESS});
    return rc;
}

int tmk_import_define(struct tmk_import_maker *m)
{
    const struct tmk_names *names = &m->s->names;
    int rc = 0;
    for (uint64_t i = 0; i < names->n_strings && rc == 0; i++)
        rc = put_definition(m, TMK_KIND_DEF_STRING, (uint32_t)i + 1, 0, names->strings[i].text,
                            names->strings[i].bytes);
    if (rc == 0)
        rc = define_frames(m);
    for (uint64_t i = 0; i < names->n_stacks && rc == 0; i++)
        rc = put_stack(m, (uint32_t)i + 1);
    for (uint64_t i = 0; i < m->s->n_streams && rc == 0; i++)
        rc = tmk_import_put(m,
                            &(struct tmk_input){.kind = TMK_KIND_DEF_STREAM,
                                                .id = (uint32_t)i + 1,
                                                .device = tmk_cuda_device(m->s->streams[i].device),
                                                .a = m->s->streams[i].handle});
    return rc;
}

uint32_t tmk_import_own_string(struct tmk_import_maker *m, const char *text)
{
    uint64_t n = m->s->names.n_strings;
    uint32_t id = tmk_names_string(&m->s->names, text, strlen(text));
    if (id > n && put_definition(m, TMK_KIND_DEF_STRING, id, 0, text, strlen(text)) < 0)
        return 0;
    return id;
}

uint32_t tmk_import_driver_stack(struct tmk_import_maker *m, uint32_t stack)
{
    uint64_t room = m->driver_stack_room;
    if (TMK_GROW(m->driver_stacks, (uint64_t)stack + 1, m->driver_stack_room) < 0)
        return 0;
    if (m->driver_stack_room > room)
        memset(m->driver_stacks + room, 0,
               (size_t)(m->driver_stack_room - room) * sizeof *m->driver_stacks);
    if (m->driver_stacks[stack])
        return m->driver_stacks[stack];
    struct tmk_names *names = &m->s->names;
    uint32_t frames[TMK_NAMES_MAX_FRAMES] = {m->c10_frame}, n = 1;
    const struct tmk_name_stack *old = stack ? &names->stacks[stack - 1] : NULL;
    for (uint32_t i = 0; old && i < old->n && n < TMK_NAMES_MAX_FRAMES; i++)
        frames[n++] = names->stack_frames[old->first + i];
    uint32_t id = tmk_names_stack(names, frames, n);
    if (id == 0 || put_stack(m, id) < 0)
        return 0;
    return m->driver_stacks[stack] = id;
}
