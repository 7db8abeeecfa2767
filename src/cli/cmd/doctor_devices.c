/* SPDX-License-Identifier: MIT */
/* cli/cmd/doctor_devices.c - doctor's rows about drivers, devices, the host's memory and torch.
 *
 * What makes a row fair or bad is what would make a training fail or wait; each has its advice. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/cmd/doctor.h"
#include "device/device.h"
#include "device/host.h"
#include "kit/amount.h"
#include "kit/language.h"

static const char *plural_ending(unsigned n)
{
    return n == 1 ? "" : "s";
}

/* ---- NVIDIA's driver and NVML ---- */

/* Advice by the driver's state. A GPU that this container is not given is often meant that way:
 * fair. */
static const struct advice {
    enum tmk_grade grade;
    const char *fix;
} advices[] = {
    [TMK_DRIVER_ABSENT] = {TMK_GRADE_GOOD, ""},
    [TMK_DRIVER_READY] = {TMK_GRADE_GOOD, ""},
    [TMK_DRIVER_NOT_LOADED] =
        {TMK_GRADE_FAIR, N_("install NVIDIA's driver; if it is installed: sudo modprobe nvidia")},
    [TMK_DRIVER_NO_LIBRARY] = {TMK_GRADE_FAIR,
                               N_("in a container: start it with --gpus all; else install the "
                                  "driver's libraries (Debian: libnvidia-ml1)")},
    [TMK_DRIVER_MISMATCH] = {TMK_GRADE_BAD, N_("the driver was updated while it ran: restart the "
                                               "machine (a container: start it anew)")},
    [TMK_DRIVER_NO_PERMISSION] = {TMK_GRADE_BAD,
                                  N_("ls -l /dev/nvidia*, then join that group: sudo usermod -aG "
                                     "GROUP $USER, and log in again")},
    [TMK_DRIVER_HIDDEN] = {TMK_GRADE_FAIR,
                           N_("in a container: start it with --gpus all; else: sudo "
                              "nvidia-modprobe -c 0 -u")},
    [TMK_DRIVER_FAILED] = {TMK_GRADE_BAD, N_("see what nvidia-smi says, and dmesg | grep NVRM")},
};

static void advise_on_driver(struct tmk_doctor_row *row, const struct tmk_driver *driver)
{
    tmk_doctor_say(row, advices[driver->state].grade, "%s", _(driver->reason));
    tmk_doctor_fix(row, "%s", _(advices[driver->state].fix));
}

static unsigned count_doctor_cards(const struct tmk_devices *devices, enum tmk_device_kind kind)
{
    unsigned n = 0;
    for (unsigned i = 0; i < tmk_devices_count(devices); i++) {
        const struct tmk_device *device = tmk_devices_get(devices, i);
        n += device->kind == kind && device->mig != TMK_MIG_PART;
    }
    return n;
}

static const char *version_text(const char *version)
{
    return version[0] ? version : _("version not known");
}

static void say_nvml(struct tmk_doctor_row *row, const struct tmk_driver *driver, unsigned n_cards)
{
    if (driver->state != TMK_DRIVER_READY) {
        advise_on_driver(row, driver);
        return;
    }
    char cuda[40] = "";
    if (driver->cuda_version)
        snprintf(cuda, sizeof cuda, _(", runs CUDA up to %u.%u"), driver->cuda_version / 1000,
                 driver->cuda_version % 1000 / 10);
    tmk_doctor_say(row, TMK_GRADE_GOOD, "%s%s, %u GPU%s", version_text(driver->library_version),
                   cuda, n_cards, plural_ending(n_cards));
    if (driver->reason[0])
        tmk_doctor_say(row, TMK_GRADE_BAD, "%s", driver->reason);
    else if (n_cards == 0)
        row->grade = TMK_GRADE_FAIR;
    if (n_cards == 0)
        tmk_doctor_fix(row, "%s", advices[TMK_DRIVER_FAILED].fix);
}

static void add_nvidia(struct tmk_doctor *d, const struct tmk_devices *devices,
                       const struct tmk_device_roots *roots)
{
    const struct tmk_driver *driver = tmk_devices_driver(devices, TMK_DEVICE_NVIDIA);
    struct tmk_doctor_row *row = tmk_doctor_add(d, "NVIDIA driver");
    if (driver->state == TMK_DRIVER_ABSENT) {
        tmk_doctor_say(row, TMK_GRADE_GOOD, "no NVIDIA GPU here");
        if (access(roots->sys, X_OK) < 0)
            tmk_doctor_say(row, TMK_GRADE_FAIR,
                           "unknown: no driver, and there is no %s to find a GPU in", roots->sys);
        return;
    }
    if (driver->state == TMK_DRIVER_NOT_LOADED) {
        advise_on_driver(row, driver);
        return;
    }
    tmk_doctor_say(row, TMK_GRADE_GOOD, "%s", version_text(driver->module_version));
    say_nvml(tmk_doctor_add(d, "NVML"), driver, count_doctor_cards(devices, TMK_DEVICE_NVIDIA));
}

/* ---- a card ---- */

/* What the driver says about a GPU's memory. */
struct card {
    const struct tmk_device *device;
    struct tmk_device_memory memory;
    struct tmk_device_processes processes;
    bool has_processes;
    unsigned n_unseen, n_parts;
    uint64_t hidden_bytes; /* used, but by no process that is listed */
};

static bool shares_memory(const struct card *card)
{
    return card->memory.total_bytes == TMK_BYTES_UNKNOWN;
}

/* Count the processes. Only NVML tells all that a process holds, and not on a divided GPU. */
static void count_processes(struct card *card)
{
    uint64_t known = 0;
    bool exact = card->has_processes && !shares_memory(card) && card->processes.n_left_out == 0 &&
                 card->device->kind == TMK_DEVICE_NVIDIA && card->device->mig <= TMK_MIG_OFF;
    for (unsigned i = 0; i < card->processes.n; i++) {
        const struct tmk_device_process *p = &card->processes.items[i];
        card->n_unseen += p->inner_pid == 0;
        exact &= p->used_bytes != TMK_BYTES_UNKNOWN;
        known += p->used_bytes;
    }
    if (exact && card->memory.used_bytes > known)
        card->hidden_bytes = card->memory.used_bytes - known;
}

static const char *mode_text(enum tmk_compute_mode mode)
{
    static const char *const texts[] = {
        [TMK_COMPUTE_UNKNOWN] = "",
        [TMK_COMPUTE_DEFAULT] = N_("; compute mode default"),
        [TMK_COMPUTE_EXCLUSIVE] = N_("; compute mode exclusive"),
        [TMK_COMPUTE_PROHIBITED] = N_("; compute mode prohibited"),
    };
    return _(texts[mode]);
}

static const char *mig_text(const struct card *card, char *buffer, size_t size)
{
    switch (card->device->mig) {
    case TMK_MIG_OFF:
        return _("; MIG off");
    case TMK_MIG_ON:
        snprintf(buffer, size, _("; MIG on, %u part%s"), card->n_parts,
                 plural_ending(card->n_parts));
        return buffer;
    case TMK_MIG_PART:
        snprintf(buffer, size, "; %s", card->device->id);
        return buffer;
    default:
        return "";
    }
}

static const char *users_text(const struct card *card, char *buffer, size_t size)
{
    unsigned n = card->processes.n + card->processes.n_left_out;
    if (!card->has_processes)
        return "";
    int length = snprintf(buffer, size, _(" by %u process%s"), n, n == 1 ? "" : "es");
    if (card->n_unseen)
        snprintf(buffer + length, size - (size_t)length, _(" (%u not visible from here)"),
                 card->n_unseen);
    return buffer;
}

static void describe_shared(struct tmk_doctor_row *row, const struct card *card)
{
    char users[64];
    tmk_doctor_say(row, TMK_GRADE_GOOD, "%s, in the host's memory, used%s%s", card->device->name,
                   users_text(card, users, sizeof users), mode_text(card->device->compute_mode));
}

static void describe_card(struct tmk_doctor_row *row, const struct card *card)
{
    char used[TMK_AMOUNT_BYTES], total[TMK_AMOUNT_BYTES], kept[TMK_AMOUNT_BYTES];
    char users[64], mig[TMK_DEVICE_TEXT_BYTES + 8];
    const struct tmk_device_memory *m = &card->memory;
    bool has_reserved = m->reserved_bytes != TMK_BYTES_UNKNOWN && m->reserved_bytes > 0;
    tmk_doctor_say(row, TMK_GRADE_GOOD, "%s, %s of %s used%s%s%s%s%s", card->device->name,
                   tmk_size_text(m->used_bytes, used), tmk_size_text(m->total_bytes, total),
                   users_text(card, users, sizeof users), has_reserved ? ", reserved " : "",
                   has_reserved ? tmk_size_text(m->reserved_bytes, kept) : "",
                   mode_text(card->device->compute_mode), mig_text(card, mig, sizeof mig));
}

/* Judge a GPU by what would stop a training, the worst first. */
static void judge_card(struct tmk_doctor_row *row, const struct card *card)
{
    const struct tmk_device *device = card->device;
    char size[TMK_AMOUNT_BYTES];
    if (device->compute_mode == TMK_COMPUTE_PROHIBITED) {
        row->grade = TMK_GRADE_BAD;
        tmk_doctor_fix(row, "no program may use it: sudo nvidia-smi -i %u -c DEFAULT",
                       device->number);
    } else if (device->mig == TMK_MIG_ON && card->n_parts == 0) {
        row->grade = TMK_GRADE_BAD;
        tmk_doctor_fix(row,
                       "no program can use it: sudo nvidia-smi -i %u -mig 0, or make parts: "
                       "nvidia-smi mig -cgi",
                       device->number);
    } else if (device->compute_mode == TMK_COMPUTE_EXCLUSIVE && card->processes.n) {
        row->grade = TMK_GRADE_FAIR;
        tmk_doctor_fix(row, "taken by one process; to share it: sudo nvidia-smi -i %u -c DEFAULT",
                       device->number);
    } else if (!shares_memory(card) &&
               card->memory.used_bytes > card->memory.total_bytes / 10 * 9) {
        row->grade = TMK_GRADE_FAIR;
        tmk_doctor_fix(row, "almost full: another program will soon run out of memory here");
    } else if (card->hidden_bytes > 1ull << 30) {
        row->grade = TMK_GRADE_FAIR;
        tmk_doctor_fix(row,
                       "%s are used by processes that cannot be seen from here; in a "
                       "container: start it with --pid=host",
                       tmk_size_text(card->hidden_bytes, size));
    }
}

static unsigned count_parts(const struct tmk_devices *devices, unsigned index)
{
    unsigned n = 0;
    for (unsigned i = index + 1; i < tmk_devices_count(devices); i++)
        n += tmk_devices_get(devices, i)->card == index;
    return n;
}

static struct tmk_doctor_row *name_card(struct tmk_doctor *d, const struct tmk_devices *devices,
                                        const struct tmk_device *device)
{
    if (device->kind == TMK_DEVICE_AMD)
        return tmk_doctor_add(d, "AMD GPU%u", device->number);
    if (device->mig == TMK_MIG_PART)
        return tmk_doctor_add(d, "device %u:%u", tmk_devices_get(devices, device->card)->number,
                              device->number);
    return tmk_doctor_add(d, "device %u", device->number);
}

static void add_doctor_card(struct tmk_doctor *d, struct tmk_devices *devices, unsigned index)
{
    struct tmk_error err = {0};
    struct card card = {.device = tmk_devices_get(devices, index)};
    struct tmk_doctor_row *row = name_card(d, devices, card.device);
    if (tmk_devices_memory(devices, index, &card.memory, &err) < 0) {
        tmk_doctor_say(row, TMK_GRADE_BAD, "%s", err.text);
        tmk_doctor_fix(row, "see what dmesg says of it; a lost GPU needs a restart of the machine");
        return;
    }
    card.has_processes = tmk_devices_processes(devices, index, &card.processes, NULL) == 0;
    card.n_parts = count_parts(devices, index);
    count_processes(&card);
    if (shares_memory(&card))
        describe_shared(row, &card);
    else
        describe_card(row, &card);
    judge_card(row, &card);
}

/* ---- the host ---- */

static void add_host(struct tmk_doctor *d, struct tmk_devices *devices, unsigned index,
                     const struct tmk_device_roots *roots)
{
    char used[TMK_AMOUNT_BYTES], total[TMK_AMOUNT_BYTES];
    struct tmk_device_memory m;
    struct tmk_error err = {0};
    unsigned waiting = 0;
    struct tmk_doctor_row *row = tmk_doctor_add(d, "host memory");
    if (tmk_devices_memory(devices, index, &m, &err) < 0) {
        tmk_doctor_say(row, TMK_GRADE_FAIR, "%s", err.text);
        return;
    }
    tmk_doctor_say(row, TMK_GRADE_GOOD, "%s of %s used", tmk_size_text(m.used_bytes, used),
                   tmk_size_text(m.total_bytes, total));
    if (tmk_host_pressure_read(roots, &waiting, NULL) == 0 && waiting >= 1000) {
        tmk_doctor_say(row, TMK_GRADE_FAIR,
                       "%s of %s used; programs wait for memory %u %% of "
                       "the time",
                       used, total, waiting / 100);
        tmk_doctor_fix(row, "end what is not needed: see top, key M");
    } else if (m.used_bytes > m.total_bytes / 20 * 19) {
        row->grade = TMK_GRADE_FAIR;
        tmk_doctor_fix(row, "almost full: the kernel will soon kill programs; see top, key M");
    }
}

static void add_card_limit(struct tmk_doctor *d, const struct tmk_device_roots *roots)
{
    char used[TMK_AMOUNT_BYTES], limit[TMK_AMOUNT_BYTES];
    struct tmk_host_limit l;
    struct tmk_doctor_row *row = tmk_doctor_add(d, "memory limit");
    if (access(roots->proc, X_OK) < 0 || access(roots->sys, X_OK) < 0) {
        tmk_doctor_say(row, TMK_GRADE_FAIR, "unknown: there is no %s",
                       access(roots->proc, X_OK) < 0 ? roots->proc : roots->sys);
        return;
    }
    if (tmk_host_limit_read(roots, &l, NULL) < 0 || l.limit_bytes == TMK_BYTES_UNKNOWN) {
        tmk_doctor_say(row, TMK_GRADE_GOOD, "none by a control group");
        return;
    }
    bool known = l.used_bytes != TMK_BYTES_UNKNOWN;
    tmk_doctor_say(row, TMK_GRADE_GOOD, "%s by the control group%s%s",
                   tmk_size_text(l.limit_bytes, limit), known ? ", used " : "",
                   known ? tmk_size_text(l.used_bytes, used) : "");
    if (known && l.used_bytes > l.limit_bytes / 10 * 9) {
        row->grade = TMK_GRADE_FAIR;
        tmk_doctor_fix(row, "almost reached: give the container more (--memory), or end what is "
                            "not needed");
    }
}

/* ---- torch ---- */

/* Returns "12.8" as the driver writes it: 12080. */
static unsigned cuda_number(const char *text)
{
    char *dot;
    unsigned long major = strtoul(text, &dot, 10);
    return (unsigned)(major * 1000 + (*dot == '.' ? strtoul(dot + 1, NULL, 10) * 10 : 0));
}

/* Judge torch's CUDA version against the driver's. Within one major version programs run on older
 * drivers, but code that is compiled while they run (PTX) may not load. */
static void judge_cuda(struct tmk_doctor_row *row, const struct tmk_torch_version *torch,
                       unsigned driver)
{
    unsigned wanted = cuda_number(torch->cuda);
    if (driver >= wanted)
        return;
    bool same_major = driver / 1000 == wanted / 1000;
    row->grade = same_major ? TMK_GRADE_FAIR : TMK_GRADE_BAD;
    tmk_doctor_fix(row,
                   "the driver runs CUDA up to %u.%u%s: update it, or install a torch for "
                   "CUDA %u.%u or older",
                   driver / 1000, driver % 1000 / 10,
                   same_major ? _("; most works, kernels compiled at run time may not") : "",
                   driver / 1000, driver % 1000 / 10);
}

static void judge_torch(struct tmk_doctor_row *row, const struct tmk_torch_version *torch,
                        const struct tmk_devices *devices)
{
    const struct tmk_driver *driver = tmk_devices_driver(devices, TMK_DEVICE_NVIDIA);
    bool has_nvidia = count_doctor_cards(devices, TMK_DEVICE_NVIDIA) > 0;
    bool has_amd = count_doctor_cards(devices, TMK_DEVICE_AMD) > 0;
    if (torch->cuda[0] && has_nvidia && driver->cuda_version)
        judge_cuda(row, torch, driver->cuda_version);
    else if ((has_nvidia && !torch->cuda[0]) || (has_amd && !has_nvidia && !torch->hip[0])) {
        row->grade = TMK_GRADE_FAIR;
        tmk_doctor_fix(row,
                       "it cannot use the GPU%s here: install one for %s (pytorch.org, Get "
                       "Started)",
                       plural_ending(tmk_devices_count(devices) - 1), has_nvidia ? "CUDA" : "ROCm");
    }
}

/* Judge the version by those whose frames the recorder can read. */
static void add_python(struct tmk_doctor *d, const char *python)
{
    enum { LEAST_MINOR = 9, MOST_MINOR = 14 };
    struct tmk_doctor_row *row = tmk_doctor_add(d, "Python");
    int minor = python[0] ? tmk_python_minor(python) : -1;
    if (!python[0]) {
        tmk_doctor_say(row, TMK_GRADE_GOOD, "none on PATH");
    } else if (minor < 0) {
        tmk_doctor_say(row, TMK_GRADE_GOOD, "version not known, %s", python);
    } else if (minor < LEAST_MINOR || minor > MOST_MINOR) {
        tmk_doctor_say(row, TMK_GRADE_FAIR, "3.%d, %s: stacks have no Python lines", minor, python);
        tmk_doctor_fix(row, "use Python 3.%d to 3.%d", LEAST_MINOR, MOST_MINOR);
    } else {
        tmk_doctor_say(row, TMK_GRADE_GOOD, "3.%d, %s", minor, python);
    }
}

/* Judge torch's own version: before 1.13 its allocator reports in another way. */
static bool is_old_torch(const char *version)
{
    char *dot;
    unsigned long major = strtoul(version, &dot, 10);
    return major < 1 || (major == 1 && *dot == '.' && strtoul(dot + 1, NULL, 10) < 13);
}

/* Say that the Python that the shell would start has no torch, and which one has. */
static void say_no_torch(struct tmk_doctor *d, struct tmk_doctor_row *row, const char *python)
{
    struct tmk_torch_version other;
    tmk_doctor_say(row, d->python ? TMK_GRADE_BAD : TMK_GRADE_GOOD, "none for %s",
                   python[0]   ? python
                   : d->python ? d->python
                               : _("a Python: there is none on PATH"));
    if (d->python) {
        tmk_doctor_fix(row, "name the program that runs the training: --python PROGRAM");
    } else if (tmk_torch_version_search(&other)) {
        tmk_doctor_say(row, TMK_GRADE_GOOD, "none for %s, but %s for %s", python, other.version,
                       other.python);
        tmk_doctor_fix(row, "train with that one: tidemark run -- %s TRAIN.py", other.python);
    }
}

static void add_torch(struct tmk_doctor *d, const struct tmk_devices *devices)
{
    struct tmk_torch_version torch;
    bool is_found = tmk_torch_version_find(d->python, &torch);
    add_python(d, torch.python);
    struct tmk_doctor_row *row = tmk_doctor_add(d, "torch");
    if (!is_found) {
        say_no_torch(d, row, torch.python);
        return;
    }
    const char *kind = torch.cuda[0]  ? _("for CUDA ")
                       : torch.hip[0] ? _("for ROCm ")
                                      : _("for the CPU");
    tmk_doctor_say(row, TMK_GRADE_GOOD, "%s %s%s, of %s", torch.version, kind,
                   torch.cuda[0] ? torch.cuda : torch.hip, torch.python);
    judge_torch(row, &torch, devices);
    if (is_old_torch(torch.version)) {
        row->grade = TMK_GRADE_FAIR;
        tmk_doctor_fix(row, "older than what tidemark is tried with: torch 1.13 or later");
    }
}

void tmk_doctor_devices(struct tmk_doctor *d)
{
    struct tmk_devices *devices = NULL;
    struct tmk_device_roots roots = tmk_device_roots_get();
    struct tmk_error err = {0};
    if (tmk_devices_open(&roots, &devices, &err) < 0) {
        tmk_doctor_say(tmk_doctor_add(d, "devices"), TMK_GRADE_BAD, "%s", err.text);
        return;
    }
    add_nvidia(d, devices, &roots);
    for (unsigned i = 0; i < tmk_devices_count(devices); i++) {
        if (tmk_devices_get(devices, i)->kind == TMK_DEVICE_HOST)
            add_host(d, devices, i, &roots);
        else
            add_doctor_card(d, devices, i);
    }
    add_card_limit(d, &roots);
    add_torch(d, devices);
    tmk_devices_close(devices);
}
