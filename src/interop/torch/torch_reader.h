/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_reader.h - words, values and frames, shared by the parts of the snapshot
 * reader and private to it; torch_snapshot.h is for others. */
#ifndef TMK_INTEROP_TORCH_TORCH_READER_H
#define TMK_INTEROP_TORCH_TORCH_READER_H

#include "interop/pickle/feed.h"
#include "interop/pickle/pickle_value.h"
#include "interop/torch/torch_snapshot.h"

/* Keys, actions and states. */
#define TMK_IMPORT_WORDS(X)                                                                        \
    X(action)                                                                                      \
    X(addr)                                                                                        \
    X(address)                                                                                     \
    X(active_allocated)                                                                            \
    X(active_awaiting_free)                                                                        \
    X(active_pending_free)                                                                         \
    X(alloc)                                                                                       \
    X(annotate)                                                                                    \
    X(blocks)                                                                                      \
    X(category)                                                                                    \
    X(device)                                                                                      \
    X(device_free)                                                                                 \
    X(filename)                                                                                    \
    X(frames)                                                                                      \
    X(free)                                                                                        \
    X(free_completed)                                                                              \
    X(free_requested)                                                                              \
    X(history)                                                                                     \
    X(is_expandable)                                                                               \
    X(line)                                                                                        \
    X(name)                                                                                        \
    X(oom)                                                                                         \
    X(real_size)                                                                                   \
    X(requested_size)                                                                              \
    X(segment_alloc)                                                                               \
    X(segment_free)                                                                                \
    X(segment_map)                                                                                 \
    X(segment_unmap)                                                                               \
    X(size)                                                                                        \
    X(snapshot)                                                                                    \
    X(stage)                                                                                       \
    X(state)                                                                                       \
    X(stream)                                                                                      \
    X(time_us)                                                                                     \
    X(total_size)                                                                                  \
    X(user_metadata)                                                                               \
    X(END)                                                                                         \
    X(START)

enum tmk_import_word {
    TMK_WORD_NOT_ASKED, /* a tag of 0 */
#define X(name) TMK_WORD_##name,
    TMK_IMPORT_WORDS(X)
#undef X
        TMK_WORD_OTHER,
};

/* The cost of an event, a block or an annotation beside the values in it: it becomes a few
 * hundred bytes of memory or of the trace. */
enum { TMK_IMPORT_ITEM_STEPS = 32 };

struct tmk_import_reader {
    struct tmk_import_snapshot *s;
    struct tmk_pickle *pickle;
    const struct tmk_feed *feed;
    const char *folder;
    void (*tell)(void *arg, uint32_t done, uint32_t total);
    void *tell_arg;
};

/* The word that a text is; TMK_WORD_OTHER: another text, or no text. */
enum tmk_import_word tmk_import_word_of(const struct tmk_pickle_value *v);
/* Read a size, an address or a time. Returns false when it is none; *ret is untouched. */
bool tmk_import_amount(const struct tmk_pickle_value *v, uint64_t *ret);
/* The numbers of names; 0: none. A list of frames is folded. */
uint32_t tmk_import_string(struct tmk_import_reader *r, const struct tmk_pickle_value *v);
uint32_t tmk_import_stack(struct tmk_import_reader *r, const struct tmk_pickle_value *v);
/* The number of a stream; the default stream is 0, as in a trace. */
uint16_t tmk_import_stream(struct tmk_import_reader *r, uint16_t device,
                           const struct tmk_pickle_value *v);

/* Note that the device occurs. */
int tmk_import_set_device(struct tmk_import_snapshot *s, uint64_t device, struct tmk_error *err);
/* Add one entry of "segments", with its blocks. */
int tmk_import_add_segment(struct tmk_import_reader *r, const struct tmk_pickle_object *dict,
                           struct tmk_error *err);

/* Write the allocator's settings as PYTORCH_CUDA_ALLOC_CONF would say them: the variable itself if
 * the snapshot has it and it makes sense, else those of the values in force that are not torch's
 * defaults. "" when all are. */
void tmk_import_settings_text(const struct tmk_pickle_object *settings, char *to, size_t room);

#endif
