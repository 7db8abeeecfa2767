/* SPDX-License-Identifier: MIT */
/* cli/cmd/doctor.h - the page that `tidemark doctor` fills, with a row for each thing that it
 * checks. */
#ifndef TMK_CLI_CMD_DOCTOR_H
#define TMK_CLI_CMD_DOCTOR_H

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

#endif
