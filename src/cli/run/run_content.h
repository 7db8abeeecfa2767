/* SPDX-License-Identifier: MIT */
/* cli/run/run_content.h - what is at the place where a run shall go? Nothing is opened for writing,
 * followed or changed by asking. */
#ifndef TMK_CLI_RUN_RUN_CONTENT_H
#define TMK_CLI_RUN_RUN_CONTENT_H

enum tmk_run_content {
    TMK_RUN_CONTENT_NOTHING,
    TMK_RUN_CONTENT_EMPTY,   /* a folder of this user with nothing in it */
    TMK_RUN_CONTENT_ENDED,   /* a run of this user that nobody records into */
    TMK_RUN_CONTENT_LIVING,  /* one that somebody does, or may */
    TMK_RUN_CONTENT_FOREIGN, /* anything else */
};

enum { TMK_RUN_CONTENT_TEXT_BYTES = 384 };

/* `text`, of that size, says of a living or foreign one what it is, after "NAME ": "is a symbolic
 * link". */
enum tmk_run_content tmk_run_content_look(const char *folder, char *text);

#endif
