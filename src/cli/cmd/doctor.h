/* SPDX-License-Identifier: MIT */
/* cli/cmd/doctor.h - the page that `tidemark doctor` fills, with a row for each thing that it
 * checks. */
#ifndef TMK_CLI_CMD_DOCTOR_H
#define TMK_CLI_CMD_DOCTOR_H

#include <stdbool.h>

#include "device/device.h"

/* Fair: it works, with a restriction. */
enum tmk_grade { TMK_GRADE_GOOD, TMK_GRADE_FAIR, TMK_GRADE_BAD };

struct tmk_doctor_row {
    enum tmk_grade grade;
    char name[24];
    char text[480];
    char fix[320]; /* "" when there is nothing to fix */
};

enum { TMK_DOCTOR_ROWS_MOST = TMK_DEVICES_MOST + 32 };

struct tmk_doctor {
    const char *python; /* the program that the user named; NULL: find one */
    unsigned n;
    struct tmk_doctor_row rows[TMK_DOCTOR_ROWS_MOST];
};

/* Add a row, good and empty. */
struct tmk_doctor_row *tmk_doctor_add(struct tmk_doctor *d, const char *format, ...)
    __attribute__((format(printf, 2, 3), returns_nonnull));
void tmk_doctor_say(struct tmk_doctor_row *row, enum tmk_grade grade, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void tmk_doctor_fix(struct tmk_doctor_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Add the rows for drivers, devices, the host's memory and torch. */
void tmk_doctor_devices(struct tmk_doctor *d);

/* Add those for limits, the container and the folders around a process, and for what people see:
 * terminal, locale, fonts. */
void tmk_doctor_place(struct tmk_doctor *d);
void tmk_doctor_screen(struct tmk_doctor *d);

/* Which torch a Python has, found without running it: torch/version.py is read as text. Importing
 * torch would take seconds, and would run foreign code. */
struct tmk_torch_version {
    char python[512]; /* the program whose torch it is; "": there is no Python */
    char version[64];
    char cuda[16]; /* "13.0"; "": built without */
    char hip[32];  /* ROCm's; "": built without */
};

/* Look at `python` (a path, or a name on PATH); NULL: at $VIRTUAL_ENV, $CONDA_PREFIX, or the first
 * python3 on PATH. False: there is no torch; `python` is filled in then too. */
bool tmk_torch_version_find(const char *python, struct tmk_torch_version *ret);
/* Look at every python3 on PATH for the first that has torch. False: none has. */
bool tmk_torch_version_search(struct tmk_torch_version *ret);
/* Returns x of Python 3.x, by the names of its files; -1: not known. */
int tmk_python_minor(const char *python);

#endif
