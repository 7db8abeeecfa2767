/* SPDX-License-Identifier: MIT */
/* interop/torch/torch_settings.c - the allocator settings of a snapshot; see torch_reader.h. */
#include "interop/pickle/pickle.h"
#include "interop/pickle/pickle_value.h"
#include "interop/torch/torch_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/alloc_conf.h"

enum { MIB = 1 << 20 };

struct settings_line {
    char *to;
    size_t room, n;
};

static void add_setting_text(struct settings_line *l, const char *text)
{
    int n = snprintf(l->to + l->n, l->room - l->n, "%s%s", l->n ? "," : "", text);
    if (n > 0 && l->n + (size_t)n < l->room)
        l->n += (size_t)n;
    else
        l->to[l->n] = '\0'; /* does not fit: leave it out */
}

static void add_split_setting(struct settings_line *l, const struct tmk_pickle_value *v)
{
    char text[64];
    if (!v || v->kind != TMK_PICKLE_INT || v->number < MIB)
        return; /* -1: no bound */
    snprintf(text, sizeof text, "max_split_size_mb:%" PRId64, v->number / MIB);
    add_setting_text(l, text);
}

static void add_threshold(struct settings_line *l, const struct tmk_pickle_value *v)
{
    char text[64];
    if (!v || v->kind != TMK_PICKLE_FLOAT || !(v->real > 0 && v->real < 1))
        return;
    snprintf(text, sizeof text, "garbage_collection_threshold:%g", v->real);
    add_setting_text(l, text);
}

/* Add {"1": 0, "2": 4, ...}: divisions for sizes from that many MiB on. */
static void add_roundup(struct settings_line *l, const struct tmk_pickle_value *v)
{
    char text[400] = "roundup_power2_divisions:[";
    size_t n = strlen(text);
    bool some = false;
    for (uint32_t i = 0; v && v->kind == TMK_PICKLE_DICT && i + 1 < v->object->n; i += 2) {
        const struct tmk_pickle_value *key = &v->object->items[i], *value = key + 1;
        if (key->kind != TMK_PICKLE_TEXT || value->kind != TMK_PICKLE_INT ||
            strspn(key->object->text, "0123456789") != key->object->n)
            return;
        some = some || value->number > 0;
        int m = snprintf(text + n, sizeof text - n, "%s%.8s:%" PRId64, i ? "," : "",
                         key->object->text, value->number);
        n += m > 0 ? (size_t)m : 0;
        if (n + 2 >= sizeof text)
            return;
    }
    if (!some)
        return;
    memcpy(text + n, "]", 2);
    add_setting_text(l, text);
}

void tmk_import_settings_text(const struct tmk_pickle_object *settings, char *to, size_t room)
{
    struct tmk_alloc_conf conf;
    struct settings_line l = {.to = to, .room = room};
    to[0] = '\0';
    const struct tmk_pickle_value *said = tmk_pickle_get(settings, "PYTORCH_CUDA_ALLOC_CONF");
    if (said && said->kind == TMK_PICKLE_TEXT && said->object->n > 0 && said->object->n < room &&
        tmk_alloc_conf_parse(said->object->text, &conf, NULL) == 0) {
        memcpy(to, said->object->text, said->object->n + 1);
        return;
    }
    add_split_setting(&l, tmk_pickle_get(settings, "max_split_size"));
    add_threshold(&l, tmk_pickle_get(settings, "garbage_collection_threshold"));
    const struct tmk_pickle_value *expandable = tmk_pickle_get(settings, "expandable_segments");
    if (expandable && expandable->kind == TMK_PICKLE_BOOL && expandable->number)
        add_setting_text(&l, "expandable_segments:True");
    add_roundup(&l, tmk_pickle_get(settings, "roundup_power2_divisions"));
}
