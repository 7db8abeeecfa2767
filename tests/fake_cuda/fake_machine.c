/* SPDX-License-Identifier: MIT */
#include "fake_machine.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_use.h"

enum { STATE_BYTES = 1 << 17 };

static void wrong(const char *line)
{
    fprintf(stderr, "fake_machine: $FAKE_CUDA_STATE: cannot read: %s\n", line);
    abort();
}

static void add_device(struct fake_machine *m, const char *line, bool is_part)
{
    if (m->n_devices == FAKE_MOST_DEVICES)
        wrong(line);
    int self = m->n_devices++, card = self;
    struct tmk_nvml_device *d = &m->devices[self];
    unsigned number = 0;
    for (int i = self - 1; i >= 0; i--) {
        if (is_part && !m->devices[i].is_part) {
            card = i;
            break;
        }
        number += m->devices[i].is_part == is_part;
    }
    *d = (struct tmk_nvml_device){.card = card,
                                  .is_part = is_part,
                                  .number = number,
                                  .mig_mode = -1,
                                  .busy_percent = -1,
                                  .power_mw = -1,
                                  .power_limit_mw = -1,
                                  .temperature_c = -1};
    if (sscanf(line, "%*s %" SCNu64 " %95[^\n]", &d->total_bytes, d->name) != 2)
        wrong(line);
    if (is_part)
        snprintf(d->uuid, sizeof d->uuid, "MIG-%u-%u", m->devices[card].number, number);
    else
        snprintf(d->uuid, sizeof d->uuid, "GPU-%u", number);
}

static struct fake_process *add_process(struct fake_machine *m, const char *line)
{
    if (m->n_processes == FAKE_MOST_PROCESSES)
        wrong(line);
    return &m->processes[m->n_processes++];
}

static void read_process(struct fake_machine *m, const char *line, bool is_graphics)
{
    struct fake_process *p = add_process(m, line);
    char bytes[24];
    if (sscanf(line, "%*s %u %23s", &p->pid, bytes) != 2)
        wrong(line);
    p->is_user = false;
    p->device = m->n_devices - 1;
    p->is_graphics = is_graphics;
    p->used_bytes = bytes[0] == '-' ? TMK_NVML_UNAVAILABLE : strtoull(bytes, NULL, 10);
}

static void add_failure(struct fake_machine *m, const char *line)
{
    struct fake_failure *f = &m->failures[m->n_failures++];
    if (m->n_failures == FAKE_MOST_FAILURES ||
        sscanf(line, "%*s %63s %d", f->function, &f->code) != 2)
        wrong(line);
    f->device = m->n_devices ? m->n_devices - 1 : FAKE_EVERYWHERE;
}

/* A line about the card or part above it; false: it is not one. */
static bool read_detail(struct fake_machine *m, const char *line)
{
    struct tmk_nvml_device *d = &m->devices[m->n_devices ? m->n_devices - 1 : 0];
    return sscanf(line, "uuid %95s", d->uuid) == 1 ||
           sscanf(line, "reserved %" SCNu64, &d->reserved_bytes) == 1 ||
           sscanf(line, "hidden %" SCNu64, &d->hidden_bytes) == 1 ||
           sscanf(line, "busy %d", &d->busy_percent) == 1 ||
           sscanf(line, "power %d %d", &d->power_mw, &d->power_limit_mw) >= 1 ||
           sscanf(line, "temperature %d", &d->temperature_c) == 1 ||
           sscanf(line, "mode %u", &d->mode) == 1 || sscanf(line, "migmode %d", &d->mig_mode) == 1;
}

static void read_line(struct fake_machine *m, const char *line)
{
    if (strncmp(line, "device ", 7) == 0)
        add_device(m, line, false);
    else if (strncmp(line, "mig ", 4) == 0)
        add_device(m, line, true);
    else if (strncmp(line, "process ", 8) == 0)
        read_process(m, line, false);
    else if (strncmp(line, "graphics ", 9) == 0)
        read_process(m, line, true);
    else if (strncmp(line, "fail ", 5) == 0)
        add_failure(m, line);
    else if (sscanf(line, "driver %79s", m->driver) != 1 &&
             sscanf(line, "cuda %d", &m->cuda) != 1 && !read_detail(m, line))
        wrong(line);
}

/* Who uses libcuda.so.1, card by card. */
static void add_users(struct fake_machine *m)
{
    struct fake_use uses[FAKE_MOST_PROCESSES];
    int n = fake_use_list(uses, FAKE_MOST_PROCESSES);
    for (int i = 0; i < n; i++) {
        const struct tmk_nvml_device *card =
            fake_machine_find(m, false, FAKE_EVERYWHERE, uses[i].card);
        if (card)
            *add_process(m, "too many processes") =
                (struct fake_process){.device = card->card,
                                      .pid = uses[i].pid,
                                      .used_bytes = uses[i].bytes,
                                      .is_user = true};
    }
}

/* The text of the state; how much, or -1. */
static ssize_t read_text(char *text, size_t room)
{
    const char *path = getenv("FAKE_CUDA_STATE");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, room - 1);
    close(fd);
    if (n == (ssize_t)room - 1)
        wrong("too long a state");
    if (n >= 0)
        text[n] = '\0';
    return n;
}

static void parse(struct fake_machine *m, char *text)
{
    m->n_devices = m->n_processes = m->n_failures = 0;
    for (char *rest = text, *line; (line = strsep(&rest, "\n")) != NULL;)
        if (line[0])
            read_line(m, line);
}

/* The file is read each time, since tests change it at any moment, and taken apart when it has
 * changed: NVIDIA's library takes some microseconds, and so shall this. */
bool fake_machine_read(struct fake_machine *m)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static char last[STATE_BYTES];
    static ssize_t n_last;
    static const struct fake_machine *last_m; /* has what `last` says, then users */
    static int n_processes;
    char text[STATE_BYTES];
    ssize_t n = read_text(text, sizeof text);
    if (n < 0) {
        m->n_devices = m->n_processes = m->n_failures = 0;
        last_m = NULL;
        return false;
    }
    pthread_mutex_lock(&mutex);
    if (m != last_m || n != n_last || memcmp(text, last, (size_t)n) != 0) {
        memcpy(last, text, (size_t)n);
        parse(m, text);
        n_last = n;
        last_m = m;
        n_processes = m->n_processes;
    }
    m->n_processes = n_processes;
    add_users(m);
    pthread_mutex_unlock(&mutex);
    return true;
}

struct tmk_nvml_device *fake_machine_find(struct fake_machine *m, bool is_part, int card,
                                          unsigned number)
{
    for (int i = 0; i < m->n_devices; i++) {
        struct tmk_nvml_device *d = &m->devices[i];
        if (d->is_part == is_part && d->number == number && (!is_part || d->card == card))
            return d;
    }
    return NULL;
}

bool fake_machine_is_on(const struct fake_machine *m, int index, const struct tmk_nvml_device *d)
{
    int self = (int)(d - m->devices);
    return index == self || m->devices[index].card == self;
}

/* By processes, the users of libcuda.so.1 among them or not, and by who is hidden. */
static uint64_t used(const struct fake_machine *m, const struct tmk_nvml_device *d, bool with_users)
{
    uint64_t sum = 0;
    for (int i = 0; i < m->n_processes; i++) {
        const struct fake_process *p = &m->processes[i];
        if (fake_machine_is_on(m, p->device, d) && p->used_bytes != TMK_NVML_UNAVAILABLE &&
            (with_users || !p->is_user))
            sum += p->used_bytes;
    }
    for (int i = 0; i < m->n_devices; i++)
        if (fake_machine_is_on(m, i, d))
            sum += m->devices[i].hidden_bytes;
    return sum;
}

uint64_t fake_machine_used(const struct fake_machine *m, const struct tmk_nvml_device *d)
{
    return used(m, d, true);
}

uint64_t fake_machine_capacity(const struct fake_machine *m, const struct tmk_nvml_device *d)
{
    uint64_t gone = d->reserved_bytes + used(m, d, false);
    return gone < d->total_bytes ? d->total_bytes - gone : 0;
}
