/* SPDX-License-Identifier: MIT */
/* monitor/selection.c - see selection.h. */
#include "monitor/selection.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "monitor/visible.h"

#define VISIBLE "visible"
#define CUDA "cuda" /* torch's name for one of these */

static bool is_whole_gpu(const struct tmk_device *device)
{
    return device->kind != TMK_DEVICE_HOST && device->mig != TMK_MIG_PART;
}

/* How many whole GPUs come before the device at `index`. */
static unsigned count_cards_before(const struct tmk_devices *d, unsigned index)
{
    unsigned n = 0;
    for (unsigned i = 0; i < index; i++)
        n += is_whole_gpu(tmk_devices_get(d, i));
    return n;
}

const char *tmk_device_label(const struct tmk_devices *d, unsigned index, char *buffer)
{
    const struct tmk_device *device = tmk_devices_get(d, index);
    if (device->kind == TMK_DEVICE_HOST && count_cards_before(d, index) > 0)
        snprintf(buffer, TMK_LABEL_BYTES, "host");
    else if (device->mig == TMK_MIG_PART)
        snprintf(buffer, TMK_LABEL_BYTES, "%u:%u", count_cards_before(d, device->card) & 0xffff,
                 device->number & 0xffff);
    else
        snprintf(buffer, TMK_LABEL_BYTES, "%u", count_cards_before(d, index));
    return buffer;
}

/* ---- from names to devices ---- */

static bool is_name_text(const char *name, size_t n, const char *text)
{
    return strlen(text) == n && memcmp(name, text, n) == 0;
}

/* Whether the name is `word`, a colon and a number. */
static bool is_numbered(const char *name, size_t n, const char *word)
{
    size_t first = strlen(word) + 1;
    return n > first && memcmp(name, word, first - 1) == 0 && name[first - 1] == ':' &&
           strspn(name + first, "0123456789") >= n - first;
}

/* Whether the name is "visible", or like "visible:0" or "cuda:0". */
static bool is_visible(const char *name, size_t n)
{
    return is_name_text(name, n, VISIBLE) || is_numbered(name, n, VISIBLE) ||
           is_numbered(name, n, CUDA);
}

/* Whether that name means the visible device of this number: the host, which may stand in their
 * place, is no CUDA device. */
static bool is_meant_visible(const struct tmk_devices *d, unsigned index, unsigned number,
                             const char *name, size_t n)
{
    char visible[TMK_LABEL_BYTES + sizeof VISIBLE], cuda[TMK_LABEL_BYTES + sizeof CUDA];
    snprintf(visible, sizeof visible, VISIBLE ":%u", number);
    snprintf(cuda, sizeof cuda, CUDA ":%u", number);
    return is_name_text(name, n, VISIBLE) || is_name_text(name, n, visible) ||
           (is_name_text(name, n, cuda) && tmk_devices_get(d, index)->kind != TMK_DEVICE_HOST);
}

static bool is_meant(const struct tmk_devices *d, unsigned index, const char *name, size_t n)
{
    const struct tmk_device *device = tmk_devices_get(d, index);
    char label[TMK_LABEL_BYTES];
    if (is_name_text(name, n, "all"))
        return is_whole_gpu(device) ||
               (device->kind == TMK_DEVICE_HOST && count_cards_before(d, index) == 0);
    return is_name_text(name, n, tmk_device_label(d, index, label)) ||
           (device->kind == TMK_DEVICE_HOST && is_name_text(name, n, "host")) ||
           (device->id[0] && is_name_text(name, n, device->id));
}

/* Whether the name could be a device's on another machine. */
static bool is_name(const char *name, size_t n)
{
    static const char digits[] = "0123456789";
    static const char *const ids[] = {"GPU-", "MIG-"};
    for (size_t i = 0; i < TMK_N(ids); i++)
        if (n > strlen(ids[i]) && memcmp(name, ids[i], strlen(ids[i])) == 0)
            return true;
    if (is_visible(name, n))
        return true;
    size_t card = strspn(name, digits);
    if (card == 0 || card >= n)
        return card > 0;
    size_t part = strspn(name + card + 1, digits);
    return name[card] == ':' && part > 0 && card + 1 + part >= n;
}

/* The devices chosen so far. */
struct device_choice {
    const struct tmk_devices *d;
    struct tmk_selection visible;
    bool chosen[TMK_DEVICES_MOST];  /* indices of the list */
    bool numbers[TMK_DEVICES_MOST]; /* numbers of visible devices */
    bool is_visible, has_any;
    char absent[96]; /* "'7', '8'": names of missing devices */
};

/* Mark the devices that `name` means. */
static bool choose_by_name(struct device_choice *c, const char *name, size_t n)
{
    bool found = false;
    for (unsigned i = 0; i < c->visible.n; i++) {
        bool meant = is_meant_visible(c->d, c->visible.items[i], i, name, n);
        c->numbers[i] |= meant;
        c->is_visible |= meant;
        found |= meant;
    }
    for (unsigned i = 0; i < tmk_devices_count(c->d); i++) {
        bool meant = is_meant(c->d, i, name, n);
        c->chosen[i] |= meant;
        found |= meant;
    }
    return found;
}

/* ---- the selection ---- */

static void add_selected(struct tmk_selection *s, unsigned index, const char *label)
{
    s->items[s->n] = index;
    snprintf(s->labels[s->n++], TMK_LABEL_BYTES, "%s", label);
}

static int take_visible(const struct device_choice *c, struct tmk_selection *ret,
                        struct tmk_error *err)
{
    unsigned host = tmk_devices_count(c->d) - 1;
    char label[TMK_LABEL_BYTES];
    bool has_host = false;
    for (unsigned i = 0; i < host; i++)
        if (c->chosen[i])
            return tmk_fail(err, TMK_EINVAL,
                            VISIBLE " devices are numbered as CUDA does, %s as the driver does: "
                                    "ask for one or the other",
                            tmk_device_label(c->d, i, label));
    ret->n = 0;
    for (unsigned i = 0; i < c->visible.n; i++) {
        snprintf(label, sizeof label, "%u", i);
        if (c->numbers[i])
            add_selected(ret, c->visible.items[i], label);
        has_host |= c->visible.items[i] == host;
    }
    if (c->chosen[host] && !has_host)
        add_selected(ret, host, "host");
    return 0;
}

static int take_choice(const struct device_choice *c, struct tmk_selection *ret,
                       struct tmk_error *err)
{
    char label[TMK_LABEL_BYTES];
    if (c->is_visible)
        return take_visible(c, ret, err);
    ret->n = 0;
    for (unsigned i = 0; i < tmk_devices_count(c->d); i++)
        if (c->chosen[i])
            add_selected(ret, i, tmk_device_label(c->d, i, label));
    return 0;
}

static int refuse_word(const char *name, size_t n, struct tmk_error *err)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)n, name);
    return tmk_fail(err, TMK_EINVAL,
                    "'%s' is no device's name: 0, 0:1, cuda:0, host, all, " VISIBLE " or an id are",
                    word);
}

/* Mark the devices that all values mean. TMK_ENOENT: some are missing, and their names are in
 * c->absent. */
static int choose_all(struct device_choice *c, const char *const *values, unsigned n_values,
                      struct tmk_error *err)
{
    struct tmk_text absent;
    tmk_text_init(&absent, c->absent, sizeof c->absent);
    for (unsigned i = 0; i < n_values; i++) {
        const char *name = values[i];
        for (;;) {
            size_t n = strcspn(name, ",");
            bool found = choose_by_name(c, name, n);
            c->has_any |= found;
            if (!found && !is_name(name, n))
                return refuse_word(name, n, err);
            if (!found) {
                tmk_text_string(&absent, c->absent[0] ? ", '" : "'");
                tmk_text_bytes(&absent, name, n);
                tmk_text_char(&absent, '\'');
            }
            if (!name[n])
                break;
            name += n + 1;
        }
    }
    return c->absent[0] ? TMK_ENOENT : 0;
}

static int refuse_choice(const struct device_choice *c, struct tmk_error *err)
{
    char there[160] = "", label[TMK_LABEL_BYTES];
    struct tmk_text text;
    tmk_text_init(&text, there, sizeof there);
    for (unsigned i = 0; i < tmk_devices_count(c->d); i++)
        tmk_text_add(&text, i ? ", %s" : "%s", tmk_device_label(c->d, i, label));
    return tmk_fail(err, TMK_ENOENT, "there is no device %s; there is: %s", c->absent, there);
}

static int parse_selection(const struct tmk_devices *d, const char *const *values,
                           unsigned n_values, bool needs_all, struct tmk_selection *ret,
                           struct tmk_error *err)
{
    static const char *const everything[] = {"all"};
    struct device_choice c = {.d = d};
    tmk_visible_devices(d, NULL, &c.visible);
    if (c.visible.n == 0)
        c.visible.items[c.visible.n++] = tmk_devices_count(d) - 1; /* the host takes their place */
    if (n_values == 0) {
        values = everything;
        n_values = 1;
    }
    int rc = choose_all(&c, values, n_values, err);
    if (rc == TMK_ENOENT)
        rc = refuse_choice(&c, err);
    if (rc < 0 && (needs_all || rc != TMK_ENOENT || !c.has_any))
        return rc;
    return take_choice(&c, ret, err);
}

int tmk_selection_parse(const struct tmk_devices *d, const char *const *values, unsigned n_values,
                        struct tmk_selection *ret, struct tmk_error *err)
{
    return parse_selection(d, values, n_values, true, ret, err);
}

int tmk_selection_parse_present(const struct tmk_devices *d, const char *const *values,
                                unsigned n_values, struct tmk_selection *ret, struct tmk_error *err)
{
    return parse_selection(d, values, n_values, false, ret, err);
}
