/* SPDX-License-Identifier: MIT */
/* tui/picture_devices.c - draw devices, a line each:
 *
 *     GPU   NAME              UTIL  TEMP        POWER  MEMORY
 *     0     H100 80GB HBM3    97 % 61 °C    512/700 W  ━━━━━━───  41.50 / 80.00 GiB  52 %
 *
 * What there is no room for is left out from the middle: label, bar and percent of the memory come
 * first. Unknown values are dashes. */
#include <inttypes.h>
#include <string.h>

#include "device/device.h"
#include "kit/amount.h"
#include "kit/language.h"
#include "tui/grid.h"
#include "tui/picture_parts.h"
#include "tui/top_model.h"

enum {
    LABEL_WIDTH = 5,
    NAME_WIDTH = 15, /* without the maker */
    LONG_NAME_WIDTH = 26,
    UTIL_WIDTH = 5,
    UTIL_BAR_WIDTH = 10,
    TEMPERATURE_WIDTH = 5,
    POWER_WIDTH = 11,
    LONG_FIGURES_WIDTH = 25, /* "141.00 / 141.00 GiB  77 %" */
    FIGURES_WIDTH = 20,      /* "141.00/141.00G  77 %" */
    SHORT_FIGURES_WIDTH = 13,
    UTIL_FROM = 44, /* columns of the screen from which on things are shown */
    TEMPERATURE_FROM = 58,
    POWER_FROM = 66,
    NAME_FROM = 78,
    WIDE_FROM = 120,
    HEADS_FROM = 8, /* lines from which on there are titles, even if a device has no line */
};

/* The columns of one line; a width of 0: not shown. */
struct device_line {
    unsigned label, name, util_bar, util, temperature, power, memory, memory_width;
    unsigned name_width, power_width;
};

static double gib(uint64_t bytes)
{
    return (double)bytes / (double)(1 << 30);
}

uint64_t tmk_picture_taken(const struct tmk_device_memory *memory, uint64_t used)
{
    bool has_reserved = memory->reserved_bytes != TMK_BYTES_UNKNOWN;
    uint64_t taken = used + (has_reserved ? memory->reserved_bytes : 0);
    return taken < memory->total_bytes ? taken : memory->total_bytes;
}

/* ---- columns ---- */

static unsigned take_columns(unsigned *x, unsigned n)
{
    unsigned at = *x;
    *x += n + 1;
    return at;
}

static struct device_line line_up(const struct tmk_area *area)
{
    struct device_line l = {0};
    unsigned x = area->x + 1, end = area->x + area->width - (area->width > 1);
    bool is_wide = area->width >= WIDE_FROM;
    l.label = take_columns(&x, LABEL_WIDTH - 1);
    if (area->width >= NAME_FROM) {
        l.name_width = is_wide ? LONG_NAME_WIDTH : NAME_WIDTH;
        l.name = take_columns(&x, l.name_width);
    }
    if (is_wide)
        l.util_bar = take_columns(&x, UTIL_BAR_WIDTH);
    if (area->width >= UTIL_FROM)
        l.util = take_columns(&x, UTIL_WIDTH);
    if (area->width >= TEMPERATURE_FROM)
        l.temperature = take_columns(&x, TEMPERATURE_WIDTH);
    if (area->width >= POWER_FROM)
        l.power = take_columns(&x, POWER_WIDTH);
    l.memory = x + (is_wide && l.power);
    l.memory_width = end > l.memory ? end - l.memory : 0;
    return l;
}

/* ---- lines ---- */

static void put_known(struct tmk_grid *g, unsigned x, unsigned y, unsigned width, bool is_known,
                      const char *text)
{
    tmk_grid_right(g, x, y, width, is_known ? TMK_INK_PLAIN : TMK_INK_DIM, is_known ? text : "-");
}

/* Write "512/700 W"; each half may be unknown. */
static void put_power(struct tmk_grid *g, unsigned x, unsigned y, const struct tmk_device_load *l)
{
    char text[48], limit[16] = "";
    bool has_limit = l->power_limit_mw != TMK_LOAD_UNKNOWN;
    if (has_limit)
        snprintf(limit, sizeof limit, "/%" PRIu32, (l->power_limit_mw + 500) / 1000);
    snprintf(text, sizeof text, "%" PRIu32 "%s W", (l->power_mw + 500) / 1000, limit);
    put_known(g, x, y, POWER_WIDTH, l->power_mw != TMK_LOAD_UNKNOWN, text);
}

static void draw_load(struct tmk_grid *g, unsigned y, const struct device_line *l,
                      const struct tmk_top_device *d)
{
    char text[32];
    const struct tmk_device_load *load = &d->load;
    bool has_busy = load->busy_percent != TMK_LOAD_UNKNOWN;
    bool is_host = d->about.kind == TMK_DEVICE_HOST;
    snprintf(text, sizeof text, "%" PRIu32 " %%", load->busy_percent);
    if (l->util_bar && has_busy)
        tmk_picture_bar(g, l->util_bar, y, UTIL_BAR_WIDTH, TMK_INK_GRAPH, load->busy_percent, 100);
    if (l->util)
        put_known(g, l->util, y, UTIL_WIDTH, has_busy, text);
    if (is_host && l->power && d->stalled != TMK_LOAD_UNKNOWN && d->stalled >= 100)
        tmk_grid_putf(g, l->temperature + 1, y, l->power + POWER_WIDTH - l->temperature - 1,
                      TMK_INK_WARN, _("stalled %u %%"), d->stalled / 100);
    if (is_host)
        return; /* sensors of the host are not asked */
    snprintf(text, sizeof text, g->ascii ? "%" PRIu32 " C" : "%" PRIu32 " °C", load->temperature_c);
    if (l->temperature)
        put_known(g, l->temperature, y, TEMPERATURE_WIDTH, load->temperature_c != TMK_LOAD_UNKNOWN,
                  text);
    if (l->power)
        put_power(g, l->power, y, load);
}

static void draw_figures(struct tmk_grid *g, unsigned x, unsigned y, unsigned width,
                         const struct tmk_device_memory *memory)
{
    char percent[TMK_AMOUNT_BYTES], text[64];
    tmk_percent_text(tmk_picture_taken(memory, memory->used_bytes), memory->total_bytes, percent);
    double used = gib(memory->used_bytes), total = gib(memory->total_bytes);
    if (width >= LONG_FIGURES_WIDTH)
        snprintf(text, sizeof text, "%.2f / %.2f GiB %5s", used, total, percent);
    else if (width >= FIGURES_WIDTH)
        snprintf(text, sizeof text, "%.2f/%.2fG %5s", used, total, percent);
    else
        snprintf(text, sizeof text, "%.2fG %5s", used, percent);
    tmk_grid_right(g, x, y, width, TMK_INK_PLAIN, text);
}

static bool has_device_memory(const struct tmk_top_device *d)
{
    return d->memory.total_bytes != TMK_BYTES_UNKNOWN && d->memory.used_bytes != TMK_BYTES_UNKNOWN;
}

static void draw_memory(struct tmk_grid *g, unsigned y, const struct device_line *l,
                        const struct tmk_top_device *d)
{
    if (!has_device_memory(d)) {
        const char *why = d->reason[0] ? d->reason : _("uses the memory of the host");
        tmk_grid_putf(g, l->memory, y, l->memory_width, d->reason[0] ? TMK_INK_WARN : TMK_INK_DIM,
                      "- %s", why);
        return;
    }
    unsigned figures = l->memory_width >= LONG_FIGURES_WIDTH + 20 ? LONG_FIGURES_WIDTH
                       : l->memory_width >= FIGURES_WIDTH + 5     ? FIGURES_WIDTH
                                                                  : SHORT_FIGURES_WIDTH;
    uint64_t taken = tmk_picture_taken(&d->memory, d->memory.used_bytes);
    uint64_t total = d->memory.total_bytes;
    if (l->memory_width > figures + 2)
        tmk_picture_bar(g, l->memory, y, l->memory_width - figures - 1,
                        tmk_picture_level(taken, total), taken, total);
    else
        figures = l->memory_width;
    draw_figures(g, l->memory + l->memory_width - figures, y, figures, &d->memory);
}

const char *tmk_picture_device_name(const struct tmk_top_device *d, bool is_short)
{
    static const char *const makers[] = {"NVIDIA ", "AMD ", "Tesla "};
    const char *name = d->about.kind == TMK_DEVICE_HOST ? _("host memory") : d->about.name;
    for (size_t i = 0; is_short && i < sizeof makers / sizeof *makers; i++)
        if (strncmp(name, makers[i], strlen(makers[i])) == 0)
            name += strlen(makers[i]);
    return name[0] ? name : "-";
}

static void draw_device(struct tmk_grid *g, unsigned y, const struct device_line *l,
                        const struct tmk_top_device *d)
{
    tmk_grid_put(g, l->label, y, LABEL_WIDTH - 1, TMK_INK_STRONG, d->label);
    if (l->name_width)
        tmk_grid_put(g, l->name, y, l->name_width, TMK_INK_PLAIN,
                     tmk_picture_device_name(d, l->name_width < LONG_NAME_WIDTH));
    if (d->reason[0] == '\0')
        draw_load(g, y, l, d);
    draw_memory(g, y, l, d);
}

static void draw_device_heads(struct tmk_grid *g, const struct tmk_area *area,
                              const struct device_line *l)
{
    unsigned y = area->y;
    tmk_grid_put(g, l->label, y, LABEL_WIDTH, TMK_INK_DIM, "GPU");
    if (l->util)
        tmk_grid_right(g, l->util, y, UTIL_WIDTH, TMK_INK_DIM, "UTIL");
    if (l->temperature)
        tmk_grid_right(g, l->temperature, y, TEMPERATURE_WIDTH, TMK_INK_DIM, "TEMP");
    if (l->power)
        tmk_grid_right(g, l->power, y, POWER_WIDTH, TMK_INK_DIM, "POWER");
    tmk_grid_put(g, l->memory, y, l->memory_width, TMK_INK_DIM, "MEMORY");
}

/* The titles go first where there is too little room. */
void tmk_picture_devices(struct tmk_grid *g, struct tmk_area area, const struct tmk_top_model *m)
{
    struct device_line l = line_up(&area);
    if (area.height > m->n_devices || area.height > HEADS_FROM) {
        draw_device_heads(g, &area, &l);
        area.y++;
        area.height--;
    }
    bool fits = m->n_devices <= area.height;
    unsigned n = fits ? m->n_devices : area.height > 0 ? area.height - 1 : 0;
    for (unsigned i = 0; i < n; i++)
        draw_device(g, area.y + i, &l, &m->devices[i]);
    if (!fits && area.height > 0)
        tmk_grid_putf(g, area.x + 1, area.y + n, area.width - 1, TMK_INK_DIM,
                      _("and %u more: a taller window, or: tidemark top --once"), m->n_devices - n);
}
