/* SPDX-License-Identifier: MIT */
/* cli/run/run_content.h - what lies at the place where a run will go. Looking opens nothing for
 * writing, follows no link and changes nothing. */
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

/* Look at `folder`. Where a living run or something foreign is there, `text` (of that size) says
 * what it is, to stand after "NAME ": "is a symbolic link". */
enum tmk_run_content tmk_run_content_look(const char *folder, char *text);

#endif
