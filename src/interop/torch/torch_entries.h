/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_entries.h - the dictionaries that make up a torch snapshot.
 *
 * Frequent words (keys, actions, categories) are put into the memo at the start of the file;
 * stacks, frames and names when they first come. So a stack is in the file once, however many
 * blocks have it, and all of them share one list when it is loaded. */
#ifndef TMK_INTEROP_TORCH_TORCH_ENTRIES_H
#define TMK_INTEROP_TORCH_TORCH_ENTRIES_H

#include "interop/out/out.h"
#include "interop/out/pickle_out.h"
#include "model/run.h"
#include "tidemark/tidemark.h"

#define TMK_TORCH_WORDS(X)                                                                         \
    X(action)                                                                                      \
    X(active_allocated)                                                                            \
    X(active_pending_free)                                                                         \
    X(active_size)                                                                                 \
    X(addr)                                                                                        \
    X(address)                                                                                     \
    X(alloc)                                                                                       \
    X(allocated_size)                                                                              \
    X(blocks)                                                                                      \
    X(category)                                                                                    \
    X(device)                                                                                      \
    X(device_free)                                                                                 \
    X(END)                                                                                         \
    X(filename)                                                                                    \
    X(frames)                                                                                      \
    X(free_completed)                                                                              \
    X(free_requested)                                                                              \
    X(inactive)                                                                                    \
    X(is_expandable)                                                                               \
    X(large)                                                                                       \
    X(line)                                                                                        \
    X(name)                                                                                        \
    X(oom)                                                                                         \
    X(requested_size)                                                                              \
    X(segment_alloc)                                                                               \
    X(segment_free)                                                                                \
    X(segment_map)                                                                                 \
    X(segment_pool_id)                                                                             \
    X(segment_type)                                                                                \
    X(segment_unmap)                                                                               \
    X(size)                                                                                        \
    X(small)                                                                                       \
    X(snapshot)                                                                                    \
    X(stage)                                                                                       \
    X(START)                                                                                       \
    X(state)                                                                                       \
    X(stream)                                                                                      \
    X(time_us)                                                                                     \
    X(total_size)                                                                                  \
    X(user_metadata)

enum tmk_torch_word {
#define X(word) TMK_WORD_##word,
    TMK_TORCH_WORDS(X)
#undef X
        TMK_N_TORCH_WORDS,
};

enum { TMK_N_CATEGORIES = TIDEMARK_KV_CACHE + 1 };

struct tmk_torch_file {
    const struct tmk_process *p;
    struct tmk_out out;
    struct tmk_pickler pickle;
    uint32_t words[TMK_N_TORCH_WORDS]; /* their numbers in the memo */
    uint32_t categories[TMK_N_CATEGORIES];
    uint32_t *stacks, *frames, *strings; /* by id: number in the memo + 1; 0: not in it yet */
    uint32_t *contexts;
    uint64_t context_room;
    uint64_t n_entries;
    uint32_t n_in_portion;
    bool failed; /* no memory */
};

/* Begin the file: its outermost dict, with an entry "tidemark" that says where it comes from.
 * Returns 0 or TMK_ENOMEM. fini takes a zeroed or half-made one. */
int tmk_torch_file_init(struct tmk_torch_file *f, const struct tmk_process *p, int fd);
void tmk_torch_file_fini(struct tmk_torch_file *f);
/* End the file. */
int tmk_torch_file_finish(struct tmk_torch_file *f, struct tmk_error *err);

/* Begin an entry of the outermost dict; one value is to follow, then end. */
void tmk_torch_begin_item(struct tmk_torch_file *f, const char *key);
void tmk_torch_end_item(struct tmk_torch_file *f);

/* Begin a list, which is written in portions: call next before each element. Lists do not nest. */
void tmk_torch_begin_list(struct tmk_torch_file *f);
void tmk_torch_next(struct tmk_torch_file *f);
void tmk_torch_end_list(struct tmk_torch_file *f);

/* Begin a dict; its pairs follow, written by the pickler or by the functions below. */
void tmk_torch_begin_dict(struct tmk_torch_file *f);
void tmk_torch_end_dict(struct tmk_torch_file *f);
void tmk_torch_word(struct tmk_torch_file *f, enum tmk_torch_word word);
void tmk_torch_pair(struct tmk_torch_file *f, enum tmk_torch_word key, enum tmk_torch_word value);
void tmk_torch_number(struct tmk_torch_file *f, enum tmk_torch_word key, uint64_t value);
/* Write microseconds since 1970, as torch does. */
void tmk_torch_time(struct tmk_torch_file *f, uint64_t trace_ns);
/* Write "frames": empty where the stack is not known. */
void tmk_torch_frames(struct tmk_torch_file *f, uint32_t stack);
/* Write "user_metadata": the stage and module that were open; nothing where none were. */
void tmk_torch_context(struct tmk_torch_file *f, const struct tmk_state *s, uint32_t context);
/* Write "category". Returns its place, for change(). */
uint64_t tmk_torch_category(struct tmk_torch_file *f, uint8_t category);
void tmk_torch_change_category(struct tmk_torch_file *f, uint64_t place, uint8_t category);
/* Write a string of the trace. */
void tmk_torch_string(struct tmk_torch_file *f, uint32_t string);

#endif
