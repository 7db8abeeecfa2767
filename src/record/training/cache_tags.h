/* SPDX-License-Identifier: MIT */
/* record/training/cache_tags.h - tag what inference keeps from call to call: KV caches.
 *
 * A tensor is taken for a part of a cache by the name that it is held under (docs/owners.md): an
 * argument of the model's call, or an attribute of one of its modules. All of it needs the
 * interpreter's lock. */
#ifndef TMK_RECORD_CACHE_TAGS_H
#define TMK_RECORD_CACHE_TAGS_H

#include <stdbool.h>
#include <stddef.h>

struct tmk_object;

/* Called after a root module's call in inference has returned `result`: tag what its caches hold
 * now. False when something was raised meanwhile that belongs to the program. */
bool tmk_cache_tags_note(struct tmk_object *root, struct tmk_object *const *values, size_t n,
                         struct tmk_object *keywords, struct tmk_object *result);
/* Called when a module is gone. */
void tmk_cache_tags_forget(const void *root);
void tmk_cache_tags_reset(void);

/* For bridge.py: is_cache_name(name), and caches(root, mask of positional arguments, list of (weak
 * reference to a module, attribute)), which says where the root's caches are. */
struct tmk_object *tmk_cache_tags_is_name(struct tmk_object *self, struct tmk_object *arguments);
struct tmk_object *tmk_cache_tags_places(struct tmk_object *self, struct tmk_object *arguments);

#endif
